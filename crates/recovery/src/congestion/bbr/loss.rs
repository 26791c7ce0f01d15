//! Losses in a round, draft-ietf-ccwg-bbr §5.5.10, §5.6.4.4.

use courser_base::{Rate, Time};

use super::bounds::ShortTerm;
use super::sample::Sample;
use crate::congestion::sample::LostPacket;

/// A round trip for the response to losses. If it has losses, it begins with the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRound {
    /// `BBR.loss_round_start`: the present acknowledgement began a round.
    is_start: bool,
    /// `BBR.is_loss_in_round`: a packet was lost or marked in this round.
    has_loss: bool,
    /// `BBR.loss_round_delivered`: bytes delivered at the start of the round.
    delivered: u64,
    /// The time at which the first loss was detected. The acknowledgement that revealed it is
    /// processed later and still belongs to the previous round.
    noticed: Option<Time>,
    /// `BBR.bw_latest`: the highest delivery rate of this round.
    bw_latest: Rate,
    /// `BBR.inflight_latest`: the most bytes delivered by one sample of this round.
    inflight_latest: u64,
    /// Bytes lost in the round.
    lost: u64,
    events: LossEvents,
    /// The number of the newest lost packet.
    newest_lost: Option<u64>,
}

/// The congestion signals of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LossEvents {
    /// Contiguous ranges of lost packets.
    pub(super) ranges: u32,
    /// Acknowledgements that reported CE marks.
    pub(super) marks: u32,
}

impl LossRound {
    /// Resets losses and delivery of the round, see `ResetCongestionSignals()`.
    pub(super) fn reset(&mut self) {
        self.has_loss = false;
        self.bw_latest = Rate::default();
        self.inflight_latest = 0;
        self.lost = 0;
    }

    /// Resets only the losses of the round.
    pub(super) fn reset_loss(&mut self) {
        self.has_loss = false;
        self.lost = 0;
    }

    /// `NoteLoss()`: records that a packet was lost or marked when `delivered` bytes had been
    /// delivered. Returns true for the first one in the round.
    pub(super) fn on_congestion_signal(&mut self, now: Time, delivered: u64) -> bool {
        if self.has_loss {
            return false;
        }
        self.has_loss = true;
        self.delivered = delivered;
        self.noticed = Some(now);
        true
    }

    pub(super) fn on_mark(&mut self) {
        self.events.marks += 1;
    }

    pub(super) fn on_lost(&mut self, packet: &LostPacket) {
        self.lost += packet.bytes;
        let follows = packet.number.checked_sub(1) == self.newest_lost;
        if self.newest_lost.is_none() || !follows {
            self.events.ranges += 1;
        }
        self.newest_lost = Some(packet.number);
    }

    /// `UpdateLatestDeliverySignals()`. `delivered` is the total so far.
    pub(super) fn on_delivery(&mut self, rs: &Sample, delivered: u64) {
        if self.noticed.take() == Some(rs.now) {
            self.delivered = delivered;
        }
        self.bw_latest = self.bw_latest.max(rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        self.is_start = rs
            .prior_delivered
            .is_some_and(|prior| prior >= self.delivered);
        if self.is_start {
            self.delivered = delivered;
        }
    }

    /// Starts the delivery of a new round from its first sample, see
    /// `AdvanceLatestDeliverySignals()`.
    pub(super) fn advance(&mut self, rs: &Sample) {
        if self.is_start {
            self.bw_latest = rs.delivery_rate;
            self.inflight_latest = rs.delivered;
        }
    }

    pub(super) fn is_start(&self) -> bool {
        self.is_start
    }

    pub(super) fn has_loss(&self) -> bool {
        self.has_loss
    }

    /// Returns the highest rate and flight delivered in the round.
    pub(super) fn latest(&self) -> ShortTerm {
        ShortTerm {
            bw: self.bw_latest,
            inflight: self.inflight_latest,
        }
    }

    /// Returns true if the round lost at most `allowance` bytes and had no marks.
    pub(super) fn is_within(&self, allowance: u64) -> bool {
        self.events.marks == 0 && self.lost <= allowance
    }

    /// Removes and returns the events of a round that is over. A round with losses began with the
    /// first, so a full round trip has passed since then.
    pub(super) fn take_events(&mut self) -> Option<LossEvents> {
        self.is_start.then(|| std::mem::take(&mut self.events))
    }
}

/// Returns the bytes of a flight whose loss is tolerable on any path.
pub(super) fn tolerable(inflight: u64) -> u64 {
    inflight * LOSS_THRESH / 100
}

/// `InflightAtLoss()`: returns the bytes in flight when losses exceeded the threshold. The
/// threshold may lie within the packet if that represents a burst.
pub(super) fn inflight_at_loss(packet: &LostPacket) -> u64 {
    let inflight_before = packet.tx_in_flight.saturating_sub(packet.bytes);
    let lost_before = packet.lost_since_sent.saturating_sub(packet.bytes);
    let tolerable = tolerable(inflight_before);
    let prefix = tolerable.saturating_sub(lost_before) * 100 / (100 - LOSS_THRESH);
    inflight_before + prefix.min(packet.bytes)
}

/// `BBR.LossThresh` in percent: the loss that is tolerable on any path.
const LOSS_THRESH: u64 = 2;

#[cfg(test)]
mod tests;
