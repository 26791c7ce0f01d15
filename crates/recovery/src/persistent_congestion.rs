//! Persistent congestion, RFC 9002 §7.6.

use std::time::Duration;

use courser_base::Time;

use crate::rtt::RttEstimator;
use crate::sent::Sent;

/// Detects that everything sent during several probe timeouts was lost.
///
/// Each packet number space has its own detector. Acknowledgements in other spaces are ignored,
/// which RFC 9002 §7.6.2 allows. A run of losses may be reported in several parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PersistentCongestion {
    /// The order of the last packet in the run of lost packets.
    last: Option<u32>,
    /// The time at which the first ack-eliciting packet of the run was sent.
    start: Option<Time>,
    /// `kPersistentCongestionThreshold`.
    threshold: u32,
}

impl PersistentCongestion {
    /// Creates a detector without losses, with the threshold of RFC 9002.
    pub const fn new() -> Self {
        Self::with_threshold(THRESHOLD)
    }

    /// Creates a detector without losses for periods of this many probe timeouts. RFC 9002 §7.6.1 recommends 3.
    pub const fn with_threshold(threshold: u32) -> Self {
        Self {
            last: None,
            start: None,
            threshold,
        }
    }

    /// Examines packets just declared lost, in ascending order. Returns true if they complete a
    /// period without acknowledgements that is longer than the persistent congestion duration.
    pub fn on_packets_lost<F>(
        &mut self,
        lost: &[(u64, Sent<F>)],
        rtt: &RttEstimator,
        max_ack_delay: Duration,
    ) -> bool {
        let threshold = self.duration(rtt, max_ack_delay);
        let mut is_established = false;
        for (_, packet) in lost {
            // No in-flight packet was sent between the two, so none was acknowledged.
            let is_continued = self
                .last
                .is_some_and(|last| last.wrapping_add(1) == packet.order);
            if !is_continued {
                self.start = None;
            }
            self.last = Some(packet.order);
            // The loss of an MTU probe does not indicate congestion: RFC 9000 §14.4.
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

    /// Returns the persistent congestion duration,
    /// `(smoothed + max(4 * rttvar, granularity) + max_ack_delay) * threshold`. RFC 9002 §7.6.1.
    pub fn duration(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
        rtt.pto_base()
            .saturating_add(max_ack_delay)
            .saturating_mul(self.threshold)
    }

    /// Resets the run after a change of path, and after the acknowledgement of an ACK-only packet,
    /// whose position among the others is unknown.
    pub fn reset(&mut self) {
        *self = Self::with_threshold(self.threshold);
    }
}

impl Default for PersistentCongestion {
    fn default() -> Self {
        Self::new()
    }
}

/// `kPersistentCongestionThreshold` of RFC 9002 §7.6.1.
const THRESHOLD: u32 = 3;

#[cfg(test)]
mod tests;
