//! Loss detection by packet and time threshold, RFC 9002 §6.1.

use std::time::Duration;

use courser_base::Time;

use crate::rtt::{RttEstimator, TIMER_GRANULARITY};
use crate::sent::Sent;
use crate::sent_packets::SentPackets;

/// Decides which packets of one packet number space are lost.
///
/// Both thresholds start at the values of RFC 9002, unless others are configured, and rise when a loss turns
/// out to be spurious: the first late packets reveal a path that reorders packets. §6.1.1 and §6.1.2 leave this open;
/// the idea of growing with the evidence is that of RFC 8985 §6.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossDetector {
    largest_acked: Option<u64>,
    loss_time: Option<Time>,
    /// The thresholds at first.
    least: LossThresholds,
    /// The amount added to the first packet threshold.
    extra_packets: u64,
    /// The time threshold beyond a round trip, in 64ths of it. The first threshold applies if it is
    /// larger.
    time_margin: u32,
    /// The time at which a loss last turned out to be spurious.
    reordering_seen: Time,
}

/// The thresholds with which a [`LossDetector`] starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossThresholds {
    /// `kPacketThreshold`. RFC 9002 §6.1.1.
    packets: u64,
    /// `kTimeThreshold` less one round trip, in 64ths of a round trip. RFC 9002 §6.1.2.
    time_margin: u32,
}

impl LossThresholds {
    /// 3 packets and 9/8 of the round-trip time, as RFC 9002 recommends.
    pub const RFC_9002: Self = Self {
        packets: PACKET_THRESHOLD,
        time_margin: MARGIN_UNIT / 8,
    };

    /// Creates thresholds of so many packets, at most [`MAX_PACKET_THRESHOLD`], and so many round trips, 1 to
    /// 8 in steps of a 64th.
    pub fn new(packets: u64, round_trips: f32) -> Self {
        let margin = (round_trips.clamp(1.0, 8.0) - 1.0) * 64.0;
        Self {
            packets: packets.min(MAX_PACKET_THRESHOLD),
            time_margin: margin.round() as u32,
        }
    }

    /// Returns the packet threshold.
    pub const fn packets(self) -> u64 {
        self.packets
    }

    /// Returns the time threshold in round trips.
    pub fn round_trips(self) -> f64 {
        1.0 + f64::from(self.time_margin) / f64::from(MARGIN_UNIT)
    }
}

impl Default for LossDetector {
    fn default() -> Self {
        Self::new()
    }
}

/// The threshold by which packets were declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossTrigger {
    /// A packet with a much larger number was acknowledged. RFC 9002 §6.1.1.
    PacketThreshold,
    /// The packet was sent long ago, and a newer one was acknowledged. RFC 9002 §6.1.2.
    TimeThreshold,
}

impl LossDetector {
    /// Creates a detector that has received no acknowledgement, with the thresholds of RFC 9002.
    pub const fn new() -> Self {
        Self::with_thresholds(LossThresholds::RFC_9002)
    }

    /// Creates a detector that has received no acknowledgement, with these thresholds at first.
    pub const fn with_thresholds(least: LossThresholds) -> Self {
        Self {
            largest_acked: None,
            loss_time: None,
            least,
            extra_packets: 0,
            time_margin: 0,
            reordering_seen: Time::ZERO,
        }
    }

    /// Returns the largest number acknowledged so far.
    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Returns the time at which to call [`detect`](Self::detect) again if no acknowledgement
    /// arrives.
    pub fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// Returns the packet threshold: a packet is lost when one with a number larger by this much
    /// was acknowledged.
    pub fn packet_threshold(&self) -> u64 {
        self.least.packets + self.extra_packets
    }

    /// Records the largest number of an ACK frame. Returns true if it is larger than any before.
    ///
    /// The caller must check that the number was sent.
    pub fn on_ack_received(&mut self, largest: u64) -> bool {
        let is_larger = self.largest_acked.is_none_or(|before| largest > before);
        if is_larger {
            self.largest_acked = Some(largest);
        }
        is_larger
    }

    /// Raises the thresholds after a packet was declared lost and then acknowledged, so that
    /// packets as late as this one are no longer declared lost.
    pub fn on_spurious_loss(&mut self, now: Time, number: u64, sent: Time, rtt: &RttEstimator) {
        self.reordering_seen = now;
        let overtaken_by = self.largest_acked.unwrap_or(number).saturating_sub(number);
        let more = (overtaken_by + 1).saturating_sub(self.least.packets);
        let most = MAX_PACKET_THRESHOLD.saturating_sub(self.least.packets);
        self.extra_packets = self.extra_packets.max(more).min(most);
        let reference = rtt.smoothed().max(rtt.latest());
        let late = (now - sent).saturating_sub(reference);
        // A sixteenth more than needed, because other packets may be even later.
        let needed = late.saturating_mul(17 * MARGIN_UNIT) / 16;
        let needed = needed.as_nanos() / reference.as_nanos().max(1);
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        self.time_margin = self
            .time_margin
            .max(needed.saturating_add(1))
            .min(MAX_MARGIN);
    }

    /// Moves lost packets from `sent` to `lost`, in ascending order.
    ///
    /// Call it after removing newly acknowledged packets from `sent`, and at
    /// [`loss_time`](Self::loss_time). Packets are sent in the order of their numbers, so only the
    /// oldest is examined, and the cost is proportional to the packets lost.
    pub fn detect<F: Copy>(
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
        self.lower_thresholds(now, rtt);
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

    /// Returns the time threshold: a packet older than an acknowledged one is lost when it was sent
    /// longer ago than this. RFC 9002 §6.1.2.
    pub fn time_threshold(&self, rtt: &RttEstimator) -> Duration {
        let rtt = rtt.smoothed().max(rtt.latest());
        let time_margin = self.time_margin.max(self.least.time_margin);
        (rtt + rtt * time_margin / MARGIN_UNIT).max(TIMER_GRANULARITY)
    }

    /// Lowers the thresholds again if the path has not reordered packets for a long time, because
    /// the route may have changed.
    fn lower_thresholds(&mut self, now: Time, rtt: &RttEstimator) {
        if self.time_margin == 0 && self.extra_packets == 0 {
            return;
        }
        let decay_time = (rtt.smoothed() * DECAY_ROUNDS).max(MIN_DECAY_TIME);
        if now - self.reordering_seen > decay_time {
            self.reordering_seen = now;
            self.extra_packets /= 2;
            self.time_margin /= 2;
        }
    }
}

/// One round trip in units of `time_margin`.
const MARGIN_UNIT: u32 = 64;

/// The largest `time_margin`: one more round trip. Beyond that, the probe timeout serves as well.
const MAX_MARGIN: u32 = MARGIN_UNIT;

/// Round trips without reordering after which the thresholds fall by half.
const DECAY_ROUNDS: u32 = 128;

/// The minimum time after which the thresholds fall by half.
const MIN_DECAY_TIME: Duration = Duration::from_secs(10);

/// The initial packet threshold. RFC 9002 §6.1.1.
pub const PACKET_THRESHOLD: u64 = 3;

/// The largest packet threshold (limit K79). Linux limits TCP to 300 as well
/// (`tcp_max_reordering`). A peer raises the threshold by acknowledging late. Without a limit it
/// could hold packets in the ring for any length of time (attack A49). Paths that reorder more rely
/// on the time threshold.
pub const MAX_PACKET_THRESHOLD: u64 = 300;

#[cfg(test)]
mod tests;
