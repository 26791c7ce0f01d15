//! Loss detection by packet and time threshold, RFC 9002 §6.1.

use std::time::Duration;

use courser_base::Time;

use crate::{RttEstimator, Sent, SentPackets, TIMER_GRANULARITY};

/// Decides which packets of one packet number space are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossDetector {
    largest_acked: Option<u64>,
    loss_time: Option<Time>,
}

impl LossDetector {
    /// A detector that has seen no acknowledgement.
    pub const fn new() -> Self {
        Self {
            largest_acked: None,
            loss_time: None,
        }
    }

    /// The largest number acknowledged so far.
    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// When to call [`detect`](Self::detect) again without an acknowledgement.
    pub fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// Notes the largest number of an ACK frame; true when it is larger than any before.
    ///
    /// The caller has checked that the number was sent.
    pub fn on_ack_received(&mut self, largest: u64) -> bool {
        let is_larger = self.largest_acked.is_none_or(|before| largest > before);
        if is_larger {
            self.largest_acked = Some(largest);
        }
        is_larger
    }

    /// Moves the packets that are lost by now from `sent` to `lost`, in ascending order.
    ///
    /// Call it after the newly acknowledged packets were taken from `sent`, and when
    /// [`loss_time`](Self::loss_time) has come. Packets far enough below the largest
    /// acknowledged one leave at once, so what is looked at and stays is never more than
    /// [`PACKET_THRESHOLD`] packets, and the cost is that of the packets lost.
    pub fn detect<F>(
        &mut self,
        now: Time,
        sent: &mut SentPackets<F>,
        rtt: &RttEstimator,
        lost: &mut Vec<(u64, Sent<F>)>,
    ) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else {
            return;
        };
        while let Some(oldest) = sent.oldest()
            && oldest.saturating_add(PACKET_THRESHOLD) <= largest
        {
            lost.extend(sent.take(oldest).map(|packet| (oldest, packet)));
        }
        let Some(oldest) = sent.oldest() else { return };
        let delay = time_threshold(rtt);
        for number in oldest..=largest {
            let Some(packet) = sent.get(number) else {
                continue;
            };
            let deadline = packet.time + delay;
            if deadline <= now {
                lost.extend(sent.take(number).map(|packet| (number, packet)));
            } else if packet.in_flight {
                // A packet that is not in flight is nobody's loss: it needs no timer.
                self.loss_time = Some(self.loss_time.map_or(deadline, |time| time.min(deadline)));
            }
        }
    }

    /// Forgets the timer, when the keys of the space are discarded. RFC 9002 §6.4.
    pub fn on_keys_discarded(&mut self) {
        self.loss_time = None;
    }
}

/// How long after its sending a packet older than an acknowledged one is lost. RFC 9002 §6.1.2.
fn time_threshold(rtt: &RttEstimator) -> Duration {
    let rtt = rtt.smoothed().max(rtt.latest());
    (rtt + rtt / 8).max(TIMER_GRANULARITY)
}

/// A packet is lost when one this much newer was acknowledged. RFC 9002 §6.1.1.
pub const PACKET_THRESHOLD: u64 = 3;

#[cfg(test)]
mod tests;
