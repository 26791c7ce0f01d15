//! Persistent congestion, RFC 9002 §7.6.

use std::time::Duration;

use courser_base::Time;

use crate::rtt::RttEstimator;
use crate::sent::Sent;

/// Notices when everything sent over several probe timeouts was lost.
///
/// One per packet number space: acknowledgements of other spaces are not looked at, which
/// RFC 9002 §7.6.2 allows. A run of losses may be reported in several pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PersistentCongestion {
    /// The order of the last packet of the run of lost ones.
    last: Option<u32>,
    /// When the first ack-eliciting packet of the run was sent.
    start: Option<Time>,
}

impl PersistentCongestion {
    /// No losses so far.
    pub const fn new() -> Self {
        Self {
            last: None,
            start: None,
        }
    }

    /// Looks at packets just declared lost, in ascending order; true when they complete a
    /// stretch longer than the persistent congestion duration with nothing acknowledged in it.
    pub fn judge<F>(
        &mut self,
        lost: &[(u64, Sent<F>)],
        rtt: &RttEstimator,
        max_ack_delay: Duration,
    ) -> bool {
        let threshold = Self::duration(rtt, max_ack_delay);
        let mut is_established = false;
        for (_, packet) in lost {
            // Nothing that was in flight lies between, so nothing there was acknowledged.
            let is_continued = self
                .last
                .is_some_and(|last| last.wrapping_add(1) == packet.order);
            if !is_continued {
                self.start = None;
            }
            self.last = Some(packet.order);
            // A lost MTU probe is no sign of congestion: RFC 9000 §14.4.
            let counts = packet.ack_eliciting
                && !packet.is_mtu_probe
                && rtt
                    .first_sample_time()
                    .is_some_and(|first| packet.time > first);
            if !counts {
                continue;
            }
            let start = *self.start.get_or_insert(packet.time);
            if packet.time.saturating_since(start) > threshold {
                is_established = true;
                self.start = None;
            }
        }
        is_established
    }

    /// `(smoothed + max(4 * rttvar, granularity) + max_ack_delay) * 3`. RFC 9002 §7.6.1.
    pub fn duration(rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
        rtt.pto_base()
            .saturating_add(max_ack_delay)
            .saturating_mul(THRESHOLD)
    }

    /// Forgets the run, for a path that has changed and when an ACK-only packet was acknowledged,
    /// whose place among the others is not known.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

/// kPersistentCongestionThreshold of RFC 9002 §7.6.1.
const THRESHOLD: u32 = 3;

#[cfg(test)]
mod tests;
