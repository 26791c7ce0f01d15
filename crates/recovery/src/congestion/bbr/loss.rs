//! What losses say, draft-ietf-ccwg-bbr §5.5.10, §5.6.4.4.

use courser_base::{Rate, Time};

use super::model::ShortTerm;
use super::undo::Probing;
use super::{Bbr, Sample, State};
use crate::congestion::{LossSample, LostPacket};

/// A round trip as far as losses go: it begins with the first loss, if it has any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRound {
    /// `BBR.loss_round_start`: the acknowledgement at hand began one.
    pub(super) is_start: bool,
    /// `BBR.is_loss_in_round`.
    has_loss: bool,
    /// `BBR.loss_round_delivered`.
    delivered: u64,
    /// When the first loss was noticed. The acknowledgement that shows it is told of later, and
    /// still belongs to the round before.
    noticed: Option<Time>,
    /// `BBR.bw_latest`.
    bw_latest: Rate,
    /// `BBR.inflight_latest`.
    pub(super) inflight_latest: u64,
    /// Bytes lost in it.
    lost: u64,
    /// Contiguous ranges of packets lost in it, and the number of the newest.
    pub(super) ranges: u32,
    newest_lost: Option<u64>,
    /// Acknowledgements in it that reported CE marks.
    pub(super) marks: u32,
}

impl LossRound {
    /// `ResetCongestionSignals()`.
    pub(super) fn reset(&mut self) {
        self.has_loss = false;
        self.bw_latest = Rate::default();
        self.inflight_latest = 0;
        self.lost = 0;
    }

    pub(super) fn forget_loss(&mut self) {
        self.has_loss = false;
        self.lost = 0;
    }

    fn on_lost(&mut self, packet: &LostPacket) {
        self.lost += packet.bytes;
        let follows = packet.number.checked_sub(1) == self.newest_lost;
        if self.newest_lost.is_none() || !follows {
            self.ranges += 1;
        }
        self.newest_lost = Some(packet.number);
    }
}

impl Bbr {
    /// `OnEnterFastRecovery()`.
    pub(super) fn enter_recovery(&mut self, sample: &LossSample<'_>) {
        if self.recovery.period.covers(sample.largest_lost_sent) {
            return;
        }
        self.save_cwnd();
        self.save_state_upon_loss(sample.now);
        self.recovery.period.start(sample.now);
        self.recovery.is_active = true;
    }

    /// A packet was acknowledged that was sent at this time.
    pub(super) fn leave_recovery(&mut self, sent: Time) {
        if self.recovery.is_active && !self.recovery.period.covers(sent) {
            self.recovery.is_active = false;
            self.restore_cwnd();
        }
    }

    /// `NoteLoss()`, of a packet that was sent at this time.
    pub(super) fn note_loss(&mut self, now: Time, sent: Time) {
        if !self.loss_round.has_loss {
            self.loss_round.delivered = self.delivered;
            self.loss_round.noticed = Some(now);
            // Deviates: the draft saves here in any case. But a loss that ends a probe makes the
            // next one, of the same flight, the first of a round, and that would save the state
            // after the probe in place of the one to return to.
            if sent > self.undo.saved {
                self.save_state_upon_loss(now);
            }
        }
        self.loss_round.has_loss = true;
    }

    /// `HandleLostPacket()`.
    pub(super) fn handle_lost_packet(&mut self, now: Time, packet: &LostPacket) {
        self.note_loss(now, packet.sent);
        self.undo.on_lost(packet.bytes);
        self.loss_round.on_lost(packet);
        self.ambient.on_lost(packet.bytes);
        if self.cycle.is_probe_sample
            && self.is_loss_too_high(packet.lost_since_sent, packet.tx_in_flight)
        {
            let inflight = inflight_at_loss(packet);
            self.handle_inflight_too_high(now, inflight, packet.is_app_limited);
        }
    }

    /// `IsInflightTooHigh()`.
    pub(super) fn is_inflight_too_high(&self, rs: &Sample) -> bool {
        self.is_loss_too_high(rs.lost, rs.tx_in_flight)
    }

    /// More was lost than is tolerable.
    ///
    /// Deviates: the draft tolerates 2 % whatever the path. Where the path loses about as much
    /// without a queue, that is tolerated here on top, because sending less does not make it any
    /// less: with the draft's bound alone each probe on such a path ends at once, and the flow
    /// sinks to a fraction of the path's rate.
    fn is_loss_too_high(&self, lost: u64, inflight: u64) -> bool {
        let tolerable = inflight * LOSS_THRESH / 100;
        lost > tolerable + self.ambient.probe_allowance(inflight, self.smss())
    }

    /// `HandleInflightTooHigh()`.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        now: Time,
        tx_in_flight: u64,
        is_app_limited: bool,
    ) {
        self.cycle.was_too_high = true;
        self.cycle.asked = now;
        self.cycle.is_probe_sample = false;
        if !is_app_limited {
            let least = self.target_inflight() * BETA / 100;
            self.inflight_longterm = Some(tx_in_flight.max(least));
        }
        if self.state == State::Up {
            self.undo.probing = Some(Probing::Up);
            self.start_probe_bw_down(now);
        }
    }

    /// `UpdateLatestDeliverySignals()`.
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        let delivered = self.delivered;
        self.ambient.on_acked(rs.newly_acked);
        let round = &mut self.loss_round;
        if round.noticed.take() == Some(rs.now) {
            round.delivered = delivered;
        }
        round.bw_latest = round.bw_latest.max(rs.delivery_rate);
        round.inflight_latest = round.inflight_latest.max(rs.delivered);
        round.is_start = rs
            .prior_delivered
            .is_some_and(|prior| prior >= round.delivered);
        if round.is_start {
            round.delivered = delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals()`.
    pub(super) fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.loss_round.is_start {
            self.loss_round.bw_latest = rs.delivery_rate;
            self.loss_round.inflight_latest = rs.delivered;
        }
    }

    /// `UpdateCongestionSignals()`.
    pub(super) fn update_congestion_signals(&mut self, rs: &Sample) {
        // By what was known before: a loss is not to excuse itself.
        let inflight = self.loss_round.inflight_latest;
        let allowance = self.ambient.allowance(inflight, self.smss());
        self.update_max_bw(rs);
        if !self.loss_round.is_start {
            return;
        }
        let has_loss = self.loss_round.has_loss && !self.is_loss_ambient(allowance);
        if has_loss && !self.is_probing_bw() {
            self.lower_short_term_bounds();
        }
        self.loss_round.forget_loss();
    }

    /// The round lost no more than the path always does, and had no queue.
    ///
    /// Deviates: the draft lowers its short-term bounds after every round with a loss, to what
    /// arrived of what was sent. At 1 % random loss that is 2 % less each round, and a half after
    /// some thirty.
    fn is_loss_ambient(&self, allowance: u64) -> bool {
        let round = &self.loss_round;
        // In ProbeBW_DOWN the queue is our own and about to go.
        let has_no_queue = self.state == State::Down || self.was_queue_empty();
        round.marks == 0 && round.lost <= allowance && has_no_queue
    }

    /// `InitLowerBounds()` and `LossLowerBounds()`.
    fn lower_short_term_bounds(&mut self) {
        let before = self.short_term.unwrap_or(ShortTerm {
            bw: self.max_bw.get(),
            inflight: self.cwnd,
        });
        let round = &self.loss_round;
        self.short_term = Some(ShortTerm {
            bw: before.bw.scaled(BETA as u32, 100).max(round.bw_latest),
            inflight: (before.inflight * BETA / 100).max(round.inflight_latest),
        });
    }
}

/// `InflightAtLoss()`: how much was in flight when losses passed the threshold, which may be in
/// the midst of the packet if it stands for a burst.
fn inflight_at_loss(packet: &LostPacket) -> u64 {
    let inflight_before = packet.tx_in_flight.saturating_sub(packet.bytes);
    let lost_before = packet.lost_since_sent.saturating_sub(packet.bytes);
    let tolerable = inflight_before * LOSS_THRESH / 100;
    let prefix = tolerable.saturating_sub(lost_before) * 100 / (100 - LOSS_THRESH);
    inflight_before + prefix.min(packet.bytes)
}

/// `BBR.LossThresh` in percent.
const LOSS_THRESH: u64 = 2;

/// `BBR.Beta` in percent.
const BETA: u64 = 70;

#[cfg(test)]
mod tests;
