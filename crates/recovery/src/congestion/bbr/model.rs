//! The model of the path, draft-ietf-ccwg-bbr §5.5.

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

/// The measurements of a path: rates, round-trip times, round trips, losses, and the bounds derived
/// from them.
///
/// The model does not depend on the phase. Each part of it has a file of its own.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) mtu: u16,
    /// `C.delivered` and `C.inflight` as last reported.
    pub(super) delivered: u64,
    pub(super) inflight: u64,
    pub(super) rounds: Rounds,
    /// `BBR.bw`: the lower of `BBR.max_bw` and the rate after the last losses.
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
    /// True if packets were sent no faster than the path delivers, or the path has kept up.
    pub(super) has_kept_up: bool,
    /// `IsProbingBW()`: losses do not lower the short-term bounds.
    pub(super) is_probing_bw: bool,
    /// True if rates measured now do not reflect the path (RFC 9959).
    pub(super) is_tainted: bool,
    /// True in ProbeBW_DOWN, where the queue is our own and about to drain.
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

    /// Starts from earlier measurements of rate and round-trip time.
    pub(super) fn seed(&mut self, now: Time, rate: Rate, min_rtt: Duration) {
        self.max_bw.on_sample(rate);
        self.bw = rate;
        self.min_rtt = MinRtt::seeded(now, min_rtt);
        self.full_pipe.reset(rate);
    }

    /// Returns `C.SMSS`, the datagram size in bytes.
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

    /// Returns `BBR.bdp`, the bytes that the path holds at its bandwidth.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.bw, UNITY)
    }

    /// `QuantizationBudget()` without the extra bytes of ProbeBW_UP.
    pub(super) fn quantization_budget(&self, inflight: u64, quantum: u64) -> u64 {
        inflight.max(quantum).max(self.min_pipe_cwnd())
    }

    /// Returns `Inflight(bw, 1.0)`, the flight that keeps the path full at `bw`.
    pub(super) fn inflight_at(&self, bw: Rate, quantum: u64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, UNITY), quantum)
    }

    /// Returns `TargetInflight()`: what the path holds, but no more than the window.
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

    /// Returns true if round-trip times in the last round were on average at most an eighth above
    /// the minimum, apart from the delay that a quantum of our own adds.
    pub(super) fn was_queue_empty(&self, quantum: u64) -> bool {
        let (Some(mean), Some(min)) = (self.rounds.mean_rtt(), self.min_rtt.get()) else {
            return false;
        };
        let own = self.bw.time_for(quantum);
        mean <= (min + min / 8).saturating_add(own)
    }

    /// Starts a round trip that the packets sent from now on measure.
    pub(super) fn start_round(&mut self) {
        self.rounds.start(self.delivered);
    }

    /// Updates the totals of an acknowledgement, and returns the draft's sample for it.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) -> Sample {
        self.delivered = ack.delivered;
        self.inflight = ack.bytes_in_flight;
        Sample::new(ack, &self.app_limited)
    }

    /// `MarkConnectionAppLimited()`: samples of packets sent before the bytes in flight are
    /// delivered only reflect that there was little to send.
    pub(super) fn mark_app_limited(&mut self) {
        self.app_limited.mark(self.delivered, self.inflight);
    }

    /// Records that packets are sent into a pipe that was empty.
    pub(super) fn on_restart(&mut self, now: Time) {
        self.inflight = 0;
        self.mark_app_limited();
        self.aggregation.on_restart(now);
    }

    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        self.ambient.on_acked(rs.newly_acked);
        self.losses.on_delivery(rs, self.delivered);
    }

    pub(super) fn update_congestion_signals(&mut self, rs: &Sample, at: &Circumstances) {
        // Only earlier rounds count, so that a loss does not raise its own allowance.
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
        self.losses.reset_loss();
    }

    /// Updates rounds, ambient loss and `BBR.max_bw`, see `UpdateMaxBw()`.
    fn update_max_bw(&mut self, rs: &Sample, at: &Circumstances) {
        self.rounds.on_ack(rs.prior_delivered, self.delivered);
        if self.rounds.is_start {
            // Losses of an uncongested round are not due to our queue: the path has kept up, and
            // round-trip times were those of an empty path.
            let is_uncongested = at.has_kept_up && self.was_queue_empty(at.quantum);
            let min_rtt = self.min_rtt.get().unwrap_or_default();
            self.ambient
                .on_round_end(is_uncongested, min_rtt, self.smss());
        }
        if let Some(rtt) = rs.rtt {
            self.rounds.on_rtt_sample(rtt);
        }
        if at.is_tainted {
            return;
        }
        if rs.delivery_rate >= self.max_bw.get() || !rs.is_app_limited {
            self.max_bw.on_sample(rs.delivery_rate);
        }
    }

    /// Returns true if the round lost no more than the path always does, and had no queue.
    ///
    /// Deviates: the draft lowers its short-term bounds after every round with a loss, to the bytes
    /// that arrived. At 1 % random loss they fall by 2 % in each round, and to a half after some
    /// thirty.
    fn is_loss_ambient(&self, allowance: u64, at: &Circumstances) -> bool {
        let has_no_queue = at.is_giving_way || self.was_queue_empty(at.quantum);
        self.losses.is_within(allowance) && has_no_queue
    }

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
    /// Deviates: the draft ignores app-limited samples, because the path may be faster than they
    /// show. A sample with a quarter more in flight than the path holds according to the model, and
    /// with a queue, is conclusive nevertheless: on a faster path its rate would have been higher.
    /// Otherwise a flow that is limited by the peer's window stays in Startup, sends each window at
    /// nearly three times the path's rate, and keeps as long a queue as the window allows. The best
    /// such sample of a round counts, because the first packet of a round may follow a pause.
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

    /// Returns true if a quarter more was in flight than the path holds according to the model, and
    /// the round-trip time was a quarter longer than on an empty path.
    fn has_overfilled(&self, rs: &Sample) -> bool {
        let (Some(rtt), Some(min)) = (rs.rtt, self.min_rtt.get()) else {
            return false;
        };
        let filling = self.bdp_multiple(self.max_bw.get(), FILLED_GAIN);
        rs.tx_in_flight >= filling && rtt >= min + min / 4
    }

    /// Marks the pipe as full, because it overflows, and bounds the flight.
    pub(super) fn on_overflow(&mut self) {
        self.full_pipe.is_now = true;
        self.full_pipe.is_reached = true;
        let latest = self.losses.latest().inflight;
        self.bounds.long_term = Some(self.bdp().max(latest));
    }

    /// `UpdateMinRTT()`.
    ///
    /// Deviates: on long paths, a round without a queue postpones ProbeRTT, and so does a single
    /// packet that met no queue. The draft intends a cost of 2 %, which holds for round-trip times
    /// up to 100 ms. With 600 ms each ProbeRTT costs a whole round trip, 11 % at one in five
    /// seconds, and a flow used 88 % of the path instead of 95 %. Rounds are long there, too: Drain
    /// had emptied the queue of Startup, and ProbeRTT began to do so again before a whole round had
    /// shown it. Up to 100 ms nothing changes, so that flows meet in ProbeRTT as intended.
    pub(super) fn update_min_rtt(&mut self, rs: &Sample, quantum: u64) {
        let has_met_no_queue = rs.rtt.is_some_and(|rtt| self.min_rtt.is_near_minimum(rtt));
        if has_met_no_queue || self.rounds.is_start && self.was_queue_empty(quantum) {
            self.min_rtt.on_empty_queue(rs.now);
        }
        self.min_rtt.on_ack(rs.now, rs.rtt);
        if let Some(min_rtt) = self.min_rtt.get() {
            self.ambient.on_min_rtt(min_rtt);
        }
    }

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

    /// Returns true if the flight of this sample lost too much, see `IsInflightTooHigh()`.
    pub(super) fn is_inflight_too_high(&self, rs: &Sample) -> bool {
        self.is_loss_too_high(rs.lost, rs.tx_in_flight)
    }

    /// Returns true if more was lost than is tolerable.
    ///
    /// Deviates: the draft tolerates 2 % on any path. If the path loses about as much without a
    /// queue, this loss is tolerated in addition, because it does not decrease with the sending
    /// rate. With the draft's bound alone each probe on such a path would end at once, and the flow
    /// would fall to a fraction of the path's rate.
    pub(super) fn is_loss_too_high(&self, lost: u64, inflight: u64) -> bool {
        lost > tolerable(inflight) + self.ambient.probe_allowance(inflight, self.smss())
    }

    /// Undoes the effect of spurious losses. `before` are the bounds before them.
    pub(super) fn on_spurious_losses(&mut self, before: Bounds) {
        self.losses.reset_loss();
        self.full_pipe.reset(Rate::default());
        self.bounds = self.bounds.max(before);
    }
}

/// A gain of one, in percent.
const UNITY: u32 = 100;

/// The growth that [`FullPipe`] looks for, in percent.
const FILLED_GAIN: u32 = 125;

/// `BBR.ExtraAckedFilterLen`: rounds in which the maximum of extra acknowledged bytes is kept.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

#[cfg(test)]
mod tests;
