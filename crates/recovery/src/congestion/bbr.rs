//! BBR version 3, draft-ietf-ccwg-bbr-06 and the changes made to it until 2026-08-03
//! (commit 4ce5e87 of its repository).
//!
//! Models the path, the rate at which it delivers and the round-trip time without a queue, and
//! sends by the model: paced at about the rate, with little more in flight than the path holds.
//! It cycles through phases that ask for more (Startup, ProbeBW_UP), give way (Drain,
//! ProbeBW_DOWN), hold (ProbeBW_CRUISE, ProbeBW_REFILL) and empty the queue (ProbeRTT). Each has a
//! file here, and the functions carry the draft's names.
//!
//! ```text
//!   Startup → Drain → ProbeBW_DOWN → ProbeBW_CRUISE → ProbeBW_REFILL → ProbeBW_UP ─┐
//!      ↑                ↑   ↑                                                     │
//!      │                │   └─────────────────────────────────────────────────────┘
//!      └── ProbeRTT ────┘      from every state, back to Startup or ProbeBW
//! ```
//!
//! What the draft leaves open, and how it is settled here:
//! - Classic ECN (§3.7): a CE mark counts as a loss does, and ends a probe for bandwidth.
//! - Retransmission timeouts are persistent congestion (RFC 9002 §7.6), which sets the window
//!   to RFC 9002's minimum.
//! - Recovery ends with the acknowledgement of a packet that was sent in it (RFC 9002 §7.3.2).
//!   It was spurious when each packet that it counted as lost has arrived.
//! - Reno-coexistence (§5.3.3.8) counts in datagrams, as the reasoning there does.
//!
//! Deviates: from the draft in seven points, each with its reason where it is made:
//! - loss that is there without a queue is not taken for congestion (`loss.rs`,
//!   `ambient_loss.rs`),
//! - on paths of more than 100 ms an empty queue puts off ProbeRTT (`probe_rtt.rs`),
//! - the state to return to after spurious losses is saved once per flight (`loss.rs`),
//! - whether the long-term bound limits a probe is asked before the bound rises, and whether it was
//!   touched is asked of what was in flight before the acknowledgement (`probe_bw.rs`),
//! - a path that is known to be full is probed when CUBIC would have filled it, and the bound rises
//!   with the rate on one that has grown (`probe_bw.rs`).

mod aggregation;
mod ambient_loss;
mod bandwidth;
mod control;
mod drain;
mod full_pipe;
mod loss;
mod min_rtt;
mod model;
mod probe_bw;
mod probe_rtt;
mod random;
mod rounds;
mod startup;
mod undo;

use std::time::Duration;

use courser_base::{Rate, Time};

use self::aggregation::Aggregation;
use self::ambient_loss::AmbientLoss;
use self::bandwidth::MaxBandwidth;
use self::full_pipe::FullPipe;
use self::loss::LossRound;
use self::min_rtt::MinRtt;
use self::model::ShortTerm;
use self::probe_bw::Cycle;
use self::random::Random;
use self::rounds::Rounds;
use self::undo::Undo;
use super::controller::Controller;
use super::recovery_period::RecoveryPeriod;
use super::sample::{AckSample, LossSample, SpuriousLoss};
use super::takeover::Takeover;
use super::window::{MAX_WINDOW, initial_window, minimum_window};
use crate::rtt::RttEstimator;

/// BBRv3: sends by a model of the path.
///
/// Needs a paced sender: its windows hold twice what the path does.
#[derive(Clone, Debug)]
pub struct Bbr {
    mtu: u16,
    state: State,
    random: Random,
    cwnd: u64,
    pacing_rate: PacingRate,
    /// `C.delivered` and `C.inflight` as last heard of.
    delivered: u64,
    inflight: u64,
    rounds: Rounds,
    /// `BBR.bw`: the least of what the path can do and what it did after the last losses.
    bw: Rate,
    max_bw: MaxBandwidth,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    loss_round: LossRound,
    ambient: AmbientLoss,
    /// `BBR.bw_shortterm` and `BBR.inflight_shortterm`; `None` is infinite, for both.
    short_term: Option<ShortTerm>,
    /// `BBR.inflight_longterm`; `None` is infinite.
    inflight_longterm: Option<u64>,
    cycle: Cycle,
    recovery: Recovery,
    undo: Undo,
    pause: Pause,
}

/// `BBR.state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain {
        start_round: u64,
    },
    Down,
    Cruise,
    Refill,
    Up,
    /// `done` is when the queue has been empty for long enough, known once it is empty.
    ProbeRtt {
        done: Option<Time>,
        is_round_done: bool,
    },
}

/// `C.pacing_rate`.
#[derive(Clone, Copy, Debug)]
enum PacingRate {
    /// Nothing is known but the initial window.
    Initial,
    Known(Rate),
}

/// Loss recovery, and what the window was without it.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    period: RecoveryPeriod,
    is_active: bool,
    /// `BBR.prior_cwnd`.
    prior_cwnd: u64,
}

/// Times in which the path says nothing of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    /// The pipe is empty, and has been since.
    empty_since: Option<Time>,
    /// `BBR.idle_restart`: nothing has arrived since the pipe was empty for want of data.
    is_restart: bool,
    /// Packets that left when this much had been delivered, the first and the last of it, are
    /// app-limited whatever the sampler says.
    app_limited: Option<(u64, u64)>,
}

/// The draft's rate sample `RS`.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Time,
    newly_acked: u64,
    /// In flight when the acknowledgement arrived, what it covers included.
    inflight_before: u64,
    rtt: Option<Duration>,
    /// Zero without a sample.
    delivery_rate: Rate,
    delivered: u64,
    prior_delivered: Option<u64>,
    is_app_limited: bool,
    lost: u64,
    tx_in_flight: u64,
    has_ce: bool,
}

impl Bbr {
    /// A controller with the initial window for datagrams of `mtu` bytes. The times between
    /// probes for bandwidth are drawn from `seed`.
    pub fn new(mtu: u16, seed: u64) -> Self {
        Self {
            mtu,
            state: State::Startup,
            random: Random::new(seed),
            cwnd: initial_window(mtu),
            pacing_rate: PacingRate::Initial,
            delivered: 0,
            inflight: 0,
            rounds: Rounds::default(),
            bw: Rate::default(),
            max_bw: MaxBandwidth::default(),
            min_rtt: MinRtt::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::new(),
            loss_round: LossRound::default(),
            ambient: AmbientLoss::default(),
            short_term: None,
            inflight_longterm: None,
            cycle: Cycle::default(),
            recovery: Recovery::default(),
            undo: Undo::default(),
            pause: Pause::default(),
        }
    }

    /// A controller that takes over where another one held `window`, which it believes to have
    /// moved once per round trip. Past Startup unless the other was in slow start.
    pub(super) fn resume(previous: &Takeover<'_>, seed: u64) -> Self {
        let mut this = Self::new(previous.mtu, seed);
        this.cwnd = previous.window.clamp(this.min_pipe_cwnd(), MAX_WINDOW);
        let rtt = previous.rtt;
        if !rtt.has_sample() {
            return this;
        }
        let rate = Rate::from_bytes_in(this.cwnd, rtt.smoothed());
        this.max_bw.on_sample(rate);
        this.bw = rate;
        this.min_rtt = MinRtt::seeded(previous.now, rtt.min());
        this.full_pipe.reset(rate);
        if previous.ssthresh.is_some() {
            // The rate is a guess: ProbeBW_DOWN gives way first, and the next probe corrects it.
            this.full_pipe.is_reached = true;
            this.start_probe_bw_down(previous.now);
        }
        this.pacing_rate = PacingRate::Known(rate.scaled(this.pacing_gain(), 100));
        this
    }

    fn sample(&self, ack: &AckSample<'_>) -> Sample {
        let limited = |prior: u64| {
            let range = self.pause.app_limited;
            range.is_some_and(|(first, last)| (first..=last).contains(&prior))
        };
        let rate = ack.rate;
        Sample {
            now: ack.now,
            newly_acked: ack.acked_bytes,
            inflight_before: ack.bytes_in_flight_before,
            rtt: ack.rtt_sample,
            delivery_rate: rate.map_or(Rate::default(), |rate| rate.rate),
            delivered: rate.map_or(0, |rate| rate.delivered),
            prior_delivered: rate.map(|rate| rate.prior_delivered),
            is_app_limited: rate
                .is_none_or(|rate| rate.is_app_limited || limited(rate.prior_delivered)),
            lost: rate.map_or(0, |rate| rate.lost),
            tx_in_flight: rate.map_or(0, |rate| rate.tx_in_flight),
            has_ce: ack.ce_packets > 0,
        }
    }

    /// `UpdateModelAndState()`.
    fn update_model_and_state(&mut self, rs: &Sample) {
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(rs.now);
        self.update_probe_bw_cycle_phase(rs);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs);
        self.advance_latest_delivery_signals(rs);
        self.bound_bw_for_model();
    }

    /// `MarkConnectionAppLimited()`: what is sent before the bytes in flight are delivered shows
    /// how little was to be sent.
    fn mark_app_limited(&mut self) {
        let last = self.delivered.saturating_add(self.inflight);
        let first = match self.pause.app_limited {
            Some((first, before)) if before >= self.delivered => first,
            _ => self.delivered,
        };
        self.pause.app_limited = Some((first, last));
    }

    /// `HandleRestartFromIdle()`: `bytes` have just left into an empty pipe.
    fn handle_restart_from_idle(&mut self, now: Time) {
        let Some(since) = self.pause.empty_since.take() else {
            return;
        };
        // On a path that holds less than a quantum the pipe runs dry between any two of them.
        let gap = self.rate().time_for(self.quantum());
        if now - since <= gap {
            return;
        }
        self.pause.is_restart = true;
        self.inflight = 0;
        self.mark_app_limited();
        self.aggregation.on_restart(now);
        if self.is_in_probe_bw() {
            self.set_pacing_rate_with_gain(UNITY);
        } else if matches!(self.state, State::ProbeRtt { .. }) {
            self.check_probe_rtt_done(now);
        }
    }

    fn is_in_probe_bw(&self) -> bool {
        use State::{Cruise, Down, Refill, Up};
        matches!(self.state, Down | Cruise | Refill | Up)
    }

    /// `IsProbingBW()`.
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// `BBR.MinPipeCwnd`: enough for a peer that acknowledges every other packet.
    fn min_pipe_cwnd(&self) -> u64 {
        4 * self.smss()
    }

    /// `C.SMSS`.
    fn smss(&self) -> u64 {
        u64::from(self.mtu)
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, now: Time, bytes: u64, _last_pn: u64, bytes_in_flight: u64) {
        if bytes_in_flight <= bytes {
            self.handle_restart_from_idle(now);
        }
        self.pause.empty_since = None;
        self.inflight = bytes_in_flight;
        if bytes_in_flight.saturating_add(self.smss()) > self.cwnd {
            self.rounds.on_cwnd_limited();
        }
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.delivered = sample.delivered;
        self.inflight = sample.bytes_in_flight;
        let rs = self.sample(sample);
        self.init_pacing_rate(sample.rtt);
        self.update_model_and_state(&rs);
        self.leave_recovery(sample.largest_acked_sent);
        self.update_control_parameters(&rs);
        self.pause.empty_since = (self.inflight == 0).then_some(sample.now);
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        self.inflight = sample.bytes_in_flight;
        self.enter_recovery(sample);
        if sample.is_ecn {
            self.note_loss(sample.now, sample.largest_lost_sent);
            self.loss_round.marks += 1;
        }
        for packet in sample.packets {
            self.handle_lost_packet(sample.now, packet);
        }
        if sample.persistent {
            self.cwnd = minimum_window(self.mtu);
        }
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        if self.undo.on_spurious_loss(loss) {
            self.handle_spurious_loss_detection(loss.now);
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if matches!(self.pacing_rate, PacingRate::Initial) {
            self.cwnd = initial_window(mtu);
        }
        self.cwnd = self.cwnd.max(minimum_window(mtu));
    }

    fn window(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        Some(match self.pacing_rate {
            PacingRate::Known(rate) => rate,
            PacingRate::Initial => self.initial_pacing_rate(rtt),
        })
    }

    fn send_quantum(&self) -> Option<u64> {
        Some(self.quantum())
    }

    fn in_slow_start(&self) -> bool {
        self.state == State::Startup
    }

    fn state(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain { .. } => "drain",
            State::Down => "probe_bw_down",
            State::Cruise => "probe_bw_cruise",
            State::Refill => "probe_bw_refill",
            State::Up => "probe_bw_up",
            State::ProbeRtt { .. } => "probe_rtt",
        }
    }

    fn name(&self) -> &'static str {
        "bbr"
    }
}

/// A gain of one, in percent.
const UNITY: u32 = 100;

#[cfg(test)]
mod tests;
