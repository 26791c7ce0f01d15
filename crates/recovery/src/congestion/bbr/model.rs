//! The path as far as it is known, draft-ietf-ccwg-bbr §5.5.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::aggregation::{Acked, Aggregation};
use super::ambient_loss::AmbientLoss;
use super::app_limited::AppLimited;
use super::bandwidth::MaxBandwidth;
use super::bounds::{Bounds, ShortTerm};
use super::full_pipe::FullPipe;
use super::loss::{LossRound, tolerable};
use super::min_rtt::MinRtt;
use super::rounds::Rounds;
use super::sample::Sample;
use crate::congestion::sample::{AckSample, LostPacket};
use crate::congestion::window::{MAX_WINDOW, initial_window};

/// Everything that is measured of a path: rates, round-trip times, round trips, losses, and the
/// bounds that follow from them.
///
/// The model does not depend on the phase. Its parts are measured by a file each.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) mtu: u16,
    /// `C.delivered` and `C.inflight` as last reported.
    pub(super) delivered: u64,
    pub(super) inflight: u64,
    pub(super) rounds: Rounds,
    /// `BBR.bw`: the least of what the path can do and what it did after the last losses.
    pub(super) bw: Rate,
    pub(super) max_bw: MaxBandwidth,
    pub(super) min_rtt: MinRtt,
    pub(super) full_pipe: FullPipe,
    pub(super) aggregation: Aggregation,
    pub(super) losses: LossRound,
    pub(super) bounds: Bounds,
    ambient: AmbientLoss,
    app_limited: AppLimited,
}

/// The circumstances in which the packets of a round were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    pub(super) cwnd: u64,
    pub(super) quantum: u64,
    /// We sent no faster than the path delivers, or it kept up with us.
    pub(super) has_kept_up: bool,
    /// `IsProbingBW()`.
    pub(super) is_probing_bw: bool,
    /// In ProbeBW_DOWN the queue is our own and about to go.
    pub(super) is_giving_way: bool,
}

impl Model {
    pub(super) fn new(mtu: u16) -> Self {
        Self {
            mtu,
            delivered: 0,
            inflight: 0,
            rounds: Rounds::default(),
            bw: Rate::default(),
            max_bw: MaxBandwidth::default(),
            min_rtt: MinRtt::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::new(),
            losses: LossRound::default(),
            bounds: Bounds::default(),
            ambient: AmbientLoss::default(),
            app_limited: AppLimited::default(),
        }
    }

    /// Takes what was known before for a first measurement.
    pub(super) fn seed(&mut self, now: Time, rate: Rate, min_rtt: Duration) {
        self.max_bw.on_sample(rate);
        self.bw = rate;
        self.min_rtt = MinRtt::seeded(now, min_rtt);
        self.full_pipe.reset(rate);
    }

    /// `C.SMSS`.
    pub(super) fn smss(&self) -> u64 {
        u64::from(self.mtu)
    }

    /// `BBR.MinPipeCwnd`: enough for a peer that acknowledges every other packet.
    pub(super) fn min_pipe_cwnd(&self) -> u64 {
        4 * self.smss()
    }

    pub(super) fn initial_cwnd(&self) -> u64 {
        initial_window(self.mtu)
    }

    /// `BDPMultiple(gain)`, with the gain in percent.
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: u32) -> u64 {
        match self.min_rtt.get() {
            None => self.initial_cwnd(),
            Some(rtt) => {
                let bdp = u128::from(bw.bytes_in(rtt)) * u128::from(gain) / 100;
                u64::try_from(bdp).map_or(MAX_WINDOW, |bdp| bdp.min(MAX_WINDOW))
            }
        }
    }

    /// `BBR.bdp`.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.bw, UNITY)
    }

    /// `QuantizationBudget()`, but for what ProbeBW_UP adds.
    pub(super) fn quantization_budget(&self, inflight: u64, quantum: u64) -> u64 {
        inflight.max(quantum).max(self.min_pipe_cwnd())
    }

    /// `Inflight(bw, 1.0)`.
    pub(super) fn inflight_at(&self, bw: Rate, quantum: u64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, UNITY), quantum)
    }

    /// `TargetInflight()`.
    pub(super) fn target_inflight(&self, cwnd: u64) -> u64 {
        self.bdp().min(cwnd)
    }

    /// `InflightWithHeadroom()`; `None` is infinite.
    pub(super) fn inflight_with_headroom(&self) -> Option<u64> {
        self.bounds.with_headroom(self.smss(), self.min_pipe_cwnd())
    }

    /// `C.is_cwnd_limited && C.cwnd >= BBR.inflight_longterm`.
    pub(super) fn is_bound_by_long_term(&self, cwnd: u64) -> bool {
        let is_at_bound = self.bounds.long_term.is_some_and(|bound| cwnd >= bound);
        is_at_bound && self.rounds.is_cwnd_limited()
    }

    /// Round-trip times in the last round were on average no more than an eighth above the
    /// minimum, and what a quantum of ours adds to them.
    pub(super) fn was_queue_empty(&self, quantum: u64) -> bool {
        let (Some(mean), Some(min)) = (self.rounds.mean_rtt(), self.min_rtt.get()) else {
            return false;
        };
        let own = self.bw.time_for(quantum);
        mean <= (min + min / 8).saturating_add(own)
    }

    /// `StartRound()`.
    pub(super) fn start_round(&mut self) {
        self.rounds.start(self.delivered);
    }

    /// Notes an acknowledgement, and returns the draft's sample for it.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) -> Sample {
        self.delivered = ack.delivered;
        self.inflight = ack.bytes_in_flight;
        Sample::new(ack, &self.app_limited)
    }

    /// `MarkConnectionAppLimited()`: what is sent before the bytes in flight are delivered shows
    /// how little was to be sent.
    pub(super) fn mark_app_limited(&mut self) {
        self.app_limited.mark(self.delivered, self.inflight);
    }

    /// Notes that packets leave into a pipe that has been empty.
    pub(super) fn on_restart(&mut self, now: Time) {
        self.inflight = 0;
        self.mark_app_limited();
        self.aggregation.on_restart(now);
    }

    /// `UpdateLatestDeliverySignals()`.
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        self.ambient.on_acked(rs.newly_acked);
        self.losses.on_delivery(rs, self.delivered);
    }

    /// `UpdateCongestionSignals()`.
    pub(super) fn update_congestion_signals(&mut self, rs: &Sample, at: &Circumstances) {
        // By what was known before: a loss is not to excuse itself.
        let latest = self.losses.latest();
        let allowance = self.ambient.allowance(latest.inflight, self.smss());
        self.update_max_bw(rs, at);
        if !self.losses.is_start() {
            return;
        }
        let has_loss = self.losses.has_loss() && !self.is_loss_ambient(allowance, at);
        if has_loss && !at.is_probing_bw {
            let start = ShortTerm {
                bw: self.max_bw.get(),
                inflight: at.cwnd,
            };
            self.bounds.lower_short_term(start, latest);
        }
        self.losses.forget_loss();
    }

    /// `UpdateMaxBw()`.
    fn update_max_bw(&mut self, rs: &Sample, at: &Circumstances) {
        self.rounds.on_ack(rs.prior_delivered, self.delivered);
        if self.rounds.is_start {
            // Nothing that a quiet round lost can have been lost to a queue of ours: the path has
            // kept up with us, and round-trip times were those of an empty path.
            let is_quiet = at.has_kept_up && self.was_queue_empty(at.quantum);
            let min_rtt = self.min_rtt.get().unwrap_or_default();
            self.ambient.on_round_end(is_quiet, min_rtt, self.smss());
        }
        if let Some(rtt) = rs.rtt {
            self.rounds.on_rtt_sample(rtt);
        }
        if rs.delivery_rate >= self.max_bw.get() || !rs.is_app_limited {
            self.max_bw.on_sample(rs.delivery_rate);
        }
    }

    /// The round lost no more than the path always does, and had no queue.
    ///
    /// Deviates: the draft lowers its short-term bounds after every round with a loss, to what
    /// arrived of what was sent. At 1 % random loss that is 2 % less each round, and a half after
    /// some thirty.
    fn is_loss_ambient(&self, allowance: u64, at: &Circumstances) -> bool {
        let has_no_queue = at.is_giving_way || self.was_queue_empty(at.quantum);
        self.losses.is_within(allowance) && has_no_queue
    }

    /// `UpdateACKAggregation()`.
    pub(super) fn update_ack_aggregation(&mut self, rs: &Sample, cwnd: u64) {
        let rounds = if self.full_pipe.is_reached {
            EXTRA_ACKED_FILTER_LEN
        } else {
            1
        };
        let acked = Acked {
            now: rs.now,
            bytes: rs.newly_acked,
            window: cwnd,
        };
        self.aggregation
            .on_ack(acked, self.bw, self.rounds.count, rounds);
    }

    /// `CheckFullBWReached()`.
    ///
    /// Deviates: the draft never asks app-limited samples, because the path may be faster than
    /// they are. One that had a quarter more in flight than the path is thought to hold, and met
    /// a queue, tells nevertheless: on a faster path it would have been faster. Without it a flow that
    /// the peer's window limits stays in Startup, sends each window at nearly three times the
    /// path's rate, and keeps as long a queue as the window allows. The best such sample of a
    /// round counts, since its first packet may follow a pause.
    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        if rs.is_app_limited && self.has_overfilled(rs) {
            self.full_pipe.on_filled(rs.delivery_rate);
        }
        if !self.rounds.is_start {
            return;
        }
        let filled = self.full_pipe.take_filled();
        if let Some(rate) = filled.filter(|_| rs.is_app_limited) {
            self.full_pipe.on_round(rate);
        } else if !rs.is_app_limited {
            self.full_pipe.on_round(rs.delivery_rate);
        }
    }

    /// A quarter more was in flight than the path is thought to hold, and it took a quarter longer
    /// than on an empty path.
    fn has_overfilled(&self, rs: &Sample) -> bool {
        let (Some(rtt), Some(min)) = (rs.rtt, self.min_rtt.get()) else {
            return false;
        };
        let filling = self.bdp_multiple(self.max_bw.get(), FILLED_GAIN);
        rs.tx_in_flight >= filling && rtt >= min + min / 4
    }

    /// Takes the pipe for full, because it overflows.
    pub(super) fn on_overflow(&mut self) {
        self.full_pipe.is_now = true;
        self.full_pipe.is_reached = true;
        let latest = self.losses.latest().inflight;
        self.bounds.long_term = Some(self.bdp().max(latest));
    }

    /// `UpdateMinRTT()`.
    ///
    /// Deviates: on long paths a round without a queue puts off ProbeRTT, and so does one packet
    /// that met none. The draft means it to cost 2 %, which holds for round-trip times up to
    /// 100 ms: on one of 600 ms each ProbeRTT costs a whole round trip, 11 % at one in five
    /// seconds, and 88 % of the path was measured in place of 95. There a round is also long:
    /// Drain had emptied the queue of Startup, and before a whole round had shown it, ProbeRTT
    /// came to do so again. Up to 100 ms nothing changes, so that flows find each other as
    /// intended.
    pub(super) fn update_min_rtt(&mut self, rs: &Sample, quantum: u64) {
        let has_met_none = rs.rtt.is_some_and(|rtt| self.min_rtt.is_met_by(rtt));
        if has_met_none || self.rounds.is_start && self.was_queue_empty(quantum) {
            self.min_rtt.on_empty_queue(rs.now);
        }
        self.min_rtt.on_ack(rs.now, rs.rtt);
        if let Some(min_rtt) = self.min_rtt.get() {
            self.ambient.on_min_rtt(min_rtt);
        }
    }

    /// `BoundBWForModel()`.
    pub(super) fn bound_bw(&mut self) {
        let max_bw = self.max_bw.get();
        let short_term = self.bounds.short_term;
        self.bw = short_term.map_or(max_bw, |term| max_bw.min(term.bw));
    }

    /// Counts a lost packet.
    pub(super) fn on_lost(&mut self, packet: &LostPacket) {
        self.losses.on_lost(packet);
        self.ambient.on_lost(packet.bytes);
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
    pub(super) fn is_loss_too_high(&self, lost: u64, inflight: u64) -> bool {
        lost > tolerable(inflight) + self.ambient.probe_allowance(inflight, self.smss())
    }

    /// Forgets the losses that turned out to be spurious. `before` are the bounds before them.
    pub(super) fn on_spurious_losses(&mut self, before: Bounds) {
        self.losses.forget_loss();
        self.full_pipe.reset(Rate::default());
        self.bounds = self.bounds.max(before);
    }
}

/// A gain of one, in percent.
const UNITY: u32 = 100;

/// In percent, the growth that [`FullPipe`] looks for.
const FILLED_GAIN: u32 = 125;

/// `BBR.ExtraAckedFilterLen`.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

#[cfg(test)]
mod tests;
