//! Loss detection by packet and time threshold, RFC 9002 §6.1.

use std::time::Duration;

use courser_base::Time;

use crate::rtt::{RttEstimator, TIMER_GRANULARITY};
use crate::sent::Sent;
use crate::sent_packets::SentPackets;

/// Decides which packets of one packet number space are lost.
///
/// Both thresholds begin where RFC 9002 puts them and rise when a loss turns out to be none:
/// a path that reorders is recognised by the first packets that come late (§6.1.1, §6.1.2 leave
/// that open; the idea of growing with the evidence is that of RFC 8985 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossDetector {
    largest_acked: Option<u64>,
    loss_time: Option<Time>,
    /// Added to [`PACKET_THRESHOLD`].
    more_packets: u64,
    /// The time threshold beyond a round trip in 64ths of it; never below an eighth.
    patience: u32,
    /// When a loss last turned out to be none.
    reordering_seen: Time,
}

/// Why a packet counts as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossTrigger {
    /// Much newer ones were acknowledged. RFC 9002 §6.1.1.
    PacketThreshold,
    /// A newer one was acknowledged, and it was sent long ago. RFC 9002 §6.1.2.
    TimeThreshold,
}

impl LossDetector {
    /// A detector that has seen no acknowledgement.
    pub const fn new() -> Self {
        Self {
            largest_acked: None,
            loss_time: None,
            more_packets: 0,
            patience: 0,
            reordering_seen: Time::ZERO,
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

    /// A packet is lost when one this much newer was acknowledged.
    pub fn packet_threshold(&self) -> u64 {
        PACKET_THRESHOLD + self.more_packets
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

    /// A packet that had been declared lost was acknowledged: packets are overtaken by this much,
    /// in numbers and in time, so neither shall be a reason again.
    pub fn on_spurious_loss(&mut self, now: Time, number: u64, sent: Time, rtt: &RttEstimator) {
        self.reordering_seen = now;
        let overtaken_by = self.largest_acked.unwrap_or(number).saturating_sub(number);
        let more = (overtaken_by + 1).saturating_sub(PACKET_THRESHOLD);
        let most = MAX_PACKET_THRESHOLD - PACKET_THRESHOLD;
        self.more_packets = self.more_packets.max(more).min(most);
        let reference = rtt.smoothed().max(rtt.latest());
        let late = (now - sent).saturating_sub(reference);
        // A sixteenth more than was needed, because this was hardly the latest packet of all.
        let needed = late.saturating_mul(17 * PATIENCE_UNIT) / 16;
        let needed = needed.as_nanos() / reference.as_nanos().max(1);
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        self.patience = self
            .patience
            .max(needed.saturating_add(1))
            .min(MAX_PATIENCE);
    }

    /// Moves the packets that are lost by now from `sent` to `lost`, in ascending order.
    ///
    /// Call it after the newly acknowledged packets were taken from `sent`, and when
    /// [`loss_time`](Self::loss_time) has come. Packets are sent in the order of their numbers,
    /// so the oldest decides, and the cost is that of the packets lost.
    pub fn detect<F>(
        &mut self,
        now: Time,
        sent: &mut SentPackets<F>,
        rtt: &RttEstimator,
        lost: &mut Vec<(u64, Sent<F>)>,
    ) -> LossTrigger {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else {
            return LossTrigger::TimeThreshold;
        };
        self.forget_reordering(now, rtt);
        let threshold = self.packet_threshold();
        let delay = self.time_threshold(rtt);
        let mut trigger = LossTrigger::TimeThreshold;
        while let Some(oldest) = sent.oldest()
            && oldest <= largest
            && let Some(packet) = sent.get(oldest)
        {
            let deadline = packet.time + delay;
            if oldest.saturating_add(threshold) <= largest {
                trigger = LossTrigger::PacketThreshold;
            } else if deadline > now {
                self.loss_time = Some(deadline);
                break;
            }
            lost.extend(sent.take(oldest).map(|packet| (oldest, packet)));
        }
        trigger
    }

    /// Forgets the timer, when the keys of the space are discarded. RFC 9002 §6.4.
    pub fn on_keys_discarded(&mut self) {
        self.loss_time = None;
    }

    /// How long after its sending a packet older than an acknowledged one is lost.
    /// RFC 9002 §6.1.2.
    pub fn time_threshold(&self, rtt: &RttEstimator) -> Duration {
        let rtt = rtt.smoothed().max(rtt.latest());
        let patience = self.patience.max(PATIENCE_UNIT / 8);
        (rtt + rtt * patience / PATIENCE_UNIT).max(TIMER_GRANULARITY)
    }

    /// A path that has not reordered for long may be another one by now.
    fn forget_reordering(&mut self, now: Time, rtt: &RttEstimator) {
        if self.patience == 0 && self.more_packets == 0 {
            return;
        }
        let memory = (rtt.smoothed() * REORDERING_MEMORY).max(SHORTEST_MEMORY);
        if now - self.reordering_seen > memory {
            self.reordering_seen = now;
            self.more_packets /= 2;
            self.patience /= 2;
        }
    }
}

/// A round trip in units of `patience`.
const PATIENCE_UNIT: u32 = 64;

/// Another whole round trip: beyond, a probe timeout is as good.
const MAX_PATIENCE: u32 = PATIENCE_UNIT;

/// Round trips without a sign of reordering after which the thresholds fall back by half.
const REORDERING_MEMORY: u32 = 128;

/// But not sooner than this.
const SHORTEST_MEMORY: Duration = Duration::from_secs(10);

/// A packet is lost when one this much newer was acknowledged. RFC 9002 §6.1.1.
pub const PACKET_THRESHOLD: u64 = 3;

/// The packet threshold does not rise beyond this (limit K79). Linux stops TCP at 300 as well
/// (`tcp_max_reordering`). A peer makes the threshold rise by acknowledging late, and could hold
/// packets in the ring for as long as it likes without this (attack A49); paths that reorder more
/// have the time threshold.
pub const MAX_PACKET_THRESHOLD: u64 = 300;

#[cfg(test)]
mod tests;
