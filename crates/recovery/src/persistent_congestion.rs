//! Persistent congestion, RFC 9002 §7.6.

use std::time::Duration;

use courser_base::Time;

use crate::{RttEstimator, Sent, SentPackets};

/// Notices when everything sent over several probe timeouts was lost.
///
/// One per packet number space: acknowledgements of other spaces are not looked at, which
/// RFC 9002 §7.6.2 allows. A run of losses may be reported in several pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PersistentCongestion {
    /// The last number of the run of lost packets.
    last: Option<u64>,
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
    ///
    /// `sent` is the ring that they were taken from; it knows the numbers that were skipped.
    pub fn judge<F>(
        &mut self,
        lost: &[(u64, Sent<F>)],
        sent: &SentPackets<F>,
        rtt: &RttEstimator,
        max_ack_delay: Duration,
    ) -> bool {
        let threshold = Self::duration(rtt, max_ack_delay);
        let mut is_established = false;
        for (number, packet) in lost {
            if !self.is_continued_by(*number, sent) {
                self.start = None;
            }
            self.last = Some(*number);
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

    /// Forgets the run, for a path that has changed.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// True when nothing between the run and `number` was ever acknowledged: only numbers that
    /// were never sent lie between.
    fn is_continued_by<F>(&self, number: u64, sent: &SentPackets<F>) -> bool {
        let Some(last) = self.last else { return false };
        let between = last.saturating_add(1)..number;
        number > last
            && between.end - between.start <= LONGEST_SKIP
            && between.into_iter().all(|number| sent.was_skipped(number))
    }
}

/// kPersistentCongestionThreshold of RFC 9002 §7.6.1.
const THRESHOLD: u32 = 3;

/// A longer skip ends a run; that errs towards not seeing persistent congestion.
const LONGEST_SKIP: u64 = 8;

#[cfg(test)]
mod tests;
