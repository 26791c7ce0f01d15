//! ProbeBW, draft-ietf-ccwg-bbr §5.3.3: give way, hold, fill the pipe, ask for more.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::{Bbr, Sample, State, UNITY};

/// Where in a cycle of ProbeBW the flow is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    /// `BBR.cycle_stamp`.
    stamp: Time,
    /// `BBR.bw_probe_wait`.
    wait: Duration,
    /// `BBR.rounds_since_probe_up`.
    rounds: u64,
    pub(super) ack_phase: AckPhase,
    /// `BBR.is_bw_probe_sample`.
    pub(super) is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`.
    pub(super) was_too_high: bool,
    /// When a probe last began, or was too high.
    pub(super) asked: Time,
    /// `BBR.prev_probe_precautionary`.
    was_precautionary: bool,
    /// `BBR.bw_probe_up_acked`.
    up_acked: u64,
    /// `BBR.probe_up_acked_per_inc`; `None` is infinite.
    up_acked_per_increase: Option<u64>,
    /// `BBR.bw_probe_up_rounds`.
    up_rounds: u32,
    /// `BBR.max_bw` when the last probe began.
    up_bw: Rate,
}

/// `BBR.ack_phase`: what acknowledgements speak of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl Bbr {
    /// `StartProbeBW_DOWN()`, which is all of `EnterProbeBW()`.
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.loss_round.reset();
        self.cycle.up_acked_per_increase = None;
        self.pick_probe_wait();
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.start(self.delivered);
        self.state = State::Down;
    }

    /// `StartProbeBW_CRUISE()`.
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::Cruise;
    }

    /// `StartProbeBW_REFILL()`.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.short_term = None;
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.was_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.start(self.delivered);
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP()`.
    fn start_probe_bw_up(&mut self, rate: Rate) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.start(self.delivered);
        self.full_pipe.reset(rate);
        self.cycle.up_bw = self.max_bw.get();
        self.state = State::Up;
        self.raise_inflight_longterm_slope();
    }

    /// `PickProbeWait()`.
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds = self.random.below(2);
        let random = Duration::from_nanos(self.random.below(MAX_RANDOM_WAIT_NANOS));
        self.cycle.wait = MIN_PROBE_WAIT + random;
    }

    /// A round began.
    pub(super) fn count_round_since_probe_up(&mut self) {
        self.cycle.rounds += 1;
    }

    /// `UpdateProbeBWCyclePhase()`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &Sample) {
        // Deviates: asked before the bound rises, because the window was set to the bound as it was.
        // The draft asks afterwards, and then no acknowledgement that raises the bound finds the
        // window at it: once each does, the probe ends for want of growth in the midst of it.
        let is_bound = self.is_bound_by_longterm();
        if !self.full_pipe.is_reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe_bw(rs.now) => {
                self.start_probe_bw_refill();
            }
            State::Down if self.is_time_to_cruise() => self.start_probe_bw_cruise(),
            State::Refill if self.rounds.is_start => {
                self.cycle.is_probe_sample = true;
                self.cycle.asked = rs.now;
                self.start_probe_bw_up(rs.delivery_rate);
            }
            State::Up => self.go_down_in_time(rs, is_bound),
            _ => {}
        }
    }

    /// `C.is_cwnd_limited && C.cwnd >= BBR.inflight_longterm`.
    fn is_bound_by_longterm(&self) -> bool {
        let is_at_bound = self
            .inflight_longterm
            .is_some_and(|bound| self.cwnd >= bound);
        is_at_bound && self.rounds.is_cwnd_limited()
    }

    fn go_down_in_time(&mut self, rs: &Sample, is_bound: bool) {
        if self.is_time_to_go_down(rs, is_bound) {
            self.cycle.was_too_high = false;
            self.start_probe_bw_down(rs.now);
        }
    }

    /// `IsTimeToProbeBW()`.
    ///
    /// Deviates: while the path is known to be full, a probe finds nothing but what others have.
    /// It comes when CUBIC in our place would get there again.
    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        if self.is_path_full() {
            return self.is_cubic_coexistence_probe_time(now)
                || self.is_reno_coexistence_probe_time(MAX_LOSSY_ROUNDS);
        }
        now > self.cycle.stamp + self.cycle.wait
            || self.is_reno_coexistence_probe_time(MAX_RENO_ROUNDS)
    }

    /// The last probe went on to a loss, and there is a queue now. Without one there may be
    /// something to get, and the queue in which the probe met its loss is not there any more.
    fn is_path_full(&self) -> bool {
        self.cycle.was_too_high && !self.was_queue_empty()
    }

    /// `IsRenoCoexistenceProbeTime()`: Reno would have lost a packet by now.
    fn is_reno_coexistence_probe_time(&self, most: u64) -> bool {
        let reno_rounds = self.target_inflight() / self.smss();
        self.cycle.rounds >= reno_rounds.min(most)
    }

    /// CUBIC, had it lost a packet when we last asked for too much, would have as much in flight
    /// again. Flows with less in flight get there sooner, so they ask more often. A probe that
    /// ProbeRTT cut short counts as well: its losses may be those of others.
    fn is_cubic_coexistence_probe_time(&self, now: Time) -> bool {
        let random = self.cycle.wait.saturating_sub(MIN_PROBE_WAIT);
        let inflight = self.inflight_longterm.unwrap_or(self.cwnd) / self.smss();
        has_cubic_returned(inflight, (now - self.cycle.asked).saturating_sub(random))
    }

    /// `IsTimeToCruise()`: there is headroom, and no queue.
    fn is_time_to_cruise(&self) -> bool {
        let has_headroom = self
            .inflight_with_headroom()
            .is_none_or(|headroom| self.inflight <= headroom);
        has_headroom && self.inflight <= self.inflight_at(self.max_bw.get(), UNITY)
    }

    /// `IsTimeToGoDown()`.
    fn is_time_to_go_down(&mut self, rs: &Sample, is_bound: bool) -> bool {
        if let Some(longterm) = self.inflight_longterm {
            // The last probe found this to be too much: it is only touched this time. What was in
            // flight before the acknowledgement counts: one that stands for a large part of the
            // window hides that it was full.
            if self.cycle.was_too_high && rs.inflight_before >= longterm {
                self.cycle.was_precautionary = true;
                return true;
            }
            if is_bound {
                // The bound, not the path, is what keeps the rate from growing.
                self.full_pipe.reset(rs.delivery_rate);
                return false;
            }
        }
        self.full_pipe.is_now
    }

    /// `InflightWithHeadroom()`; `None` is infinite.
    pub(super) fn inflight_with_headroom(&self) -> Option<u64> {
        let longterm = self.inflight_longterm?;
        let headroom = self.smss().max(longterm * HEADROOM / 100);
        Some(longterm.saturating_sub(headroom).max(self.min_pipe_cwnd()))
    }

    /// `RaiseInflightLongtermSlope()`.
    ///
    /// Deviates: on a path that has grown the bound grows as the rate did until they met. The
    /// draft begins with a datagram a round there too, and takes until its steps are as large.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = 1u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_UP_ROUNDS);
        let mut per_increase = self.cwnd / growth;
        if self.has_path_grown() {
            per_increase = per_increase.min(ACKED_PER_INCREASE * self.smss());
        }
        self.cycle.up_acked_per_increase = Some(per_increase.max(self.smss()));
    }

    /// This probe found a quarter more than any sample since the last but one, and no queue: the
    /// bound was found on another path than this one. What others leave comes with a queue.
    fn has_path_grown(&self) -> bool {
        self.max_bw.get() >= self.cycle.up_bw.scaled(5, 4) && self.was_queue_empty()
    }

    /// `ProbeInflightLongtermUpward()`.
    fn probe_inflight_longterm_upward(&mut self, rs: &Sample, longterm: u64) {
        if !self.rounds.is_cwnd_limited() || self.cwnd < longterm {
            return;
        }
        self.cycle.up_acked += rs.newly_acked;
        if let Some(per_increase) = self.cycle.up_acked_per_increase {
            let increases = self.cycle.up_acked / per_increase;
            self.cycle.up_acked %= per_increase;
            self.inflight_longterm = Some(longterm + increases * self.smss());
        }
        if self.rounds.is_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `AdaptLongTermModel()`. True when it has moved to another state.
    fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        let phase = self.cycle.ack_phase;
        if self.rounds.is_start && phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        let is_over = self.rounds.is_start && phase == AckPhase::ProbeStopping;
        if is_over && self.end_probe_feedback(rs) {
            return true;
        }
        if self.cycle.is_probe_sample && rs.has_ce {
            // §3.7: marks are congestion, and only queues mark.
            self.handle_inflight_too_high(rs.now, rs.tx_in_flight, rs.is_app_limited);
            return true;
        }
        if self.is_inflight_too_high(rs) {
            return false;
        }
        if let Some(longterm) = self.inflight_longterm {
            let longterm = longterm.max(rs.tx_in_flight);
            self.inflight_longterm = Some(longterm);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(rs, longterm);
            }
        }
        false
    }

    /// All that was sent while probing has been acknowledged. True when the next probe starts.
    fn end_probe_feedback(&mut self, rs: &Sample) -> bool {
        self.cycle.is_probe_sample = false;
        self.cycle.ack_phase = AckPhase::Init;
        if !self.is_in_probe_bw() {
            return false;
        }
        if !rs.is_app_limited {
            self.max_bw.advance();
        }
        if self.cycle.was_precautionary && !self.cycle.was_too_high {
            self.start_probe_bw_refill();
            return true;
        }
        false
    }
}

/// CUBIC has returned to where it lost a packet, so many datagrams in flight, RFC 9438 §4.2: it
/// takes `K` seconds, with `C * K^3 = (1 - beta_cubic) * W_max`, 0.4 and 0.7.
fn has_cubic_returned(datagrams: u64, since: Duration) -> bool {
    let growth = since.as_millis().saturating_pow(3).saturating_mul(4);
    growth >= u128::from(datagrams) * 3 * 1_000_000_000
}

/// `T_bbr` is two to three seconds, §5.3.3.8.
const MIN_PROBE_WAIT: Duration = Duration::from_secs(2);
const MAX_RANDOM_WAIT_NANOS: u64 = 1_000_000_000;

/// `T_reno_bound`; that it is 62 half of the time comes from where rounds start to count.
const MAX_RENO_ROUNDS: u64 = 63;

/// As many rounds as may lose one of a hundred packets and be made up for by one probe, §5.3.3.8.
const MAX_LOSSY_ROUNDS: u64 = 137;

/// `BBR.Headroom` in percent.
const HEADROOM: u64 = 15;

/// A datagram for every four that arrive is a quarter in a round, as much as the pacing gain adds.
const ACKED_PER_INCREASE: u64 = 4;

/// Growth doubles each round, up to this power of two.
const MAX_UP_ROUNDS: u32 = 30;

#[cfg(test)]
mod tests;
