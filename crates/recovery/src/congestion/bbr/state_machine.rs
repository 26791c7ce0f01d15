//! The state machine: calls the parts in the draft's order and moves between phases.

use courser_base::{Rate, Time};

use super::control::Control;
use super::drain::Drain;
use super::feedback::Feedback;
use super::idle::Idle;
use super::loss::inflight_at_loss;
use super::model::{Circumstances, Model};
use super::phase::Phase;
use super::probe_bw::{Next, ProbeBw};
use super::probe_rtt::ProbeRtt;
use super::random::Random;
use super::resuming::{ResumePhase, Resuming};
use super::sample::Sample;
use super::startup::Startup;
use super::undo::{Probing, Undo};
use super::view::View;
use crate::congestion::careful_resume::SavedPath;
use crate::congestion::controller::Controller;
use crate::congestion::recovery_period::RecoveryPeriod;
use crate::congestion::sample::{AckSample, LossSample, LostPacket, SpuriousLoss};
use crate::congestion::takeover::Takeover;
use crate::congestion::window::minimum_window;
use crate::rtt::RttEstimator;

/// BBRv3: sends according to a model of the path.
///
/// BBR needs a paced sender, because its window is twice what the path holds.
#[derive(Clone, Debug)]
pub struct Bbr {
    pub(super) model: Model,
    pub(super) control: Control,
    pub(super) phase: Phase,
    pub(super) feedback: Feedback,
    recovery: Recovery,
    pub(super) undo: Undo,
    pub(super) idle: Idle,
    pub(super) random: Random,
    resuming: Resuming,
}

/// The state of loss recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    period: RecoveryPeriod,
    is_active: bool,
}

impl Bbr {
    /// Creates a controller with the initial window for datagrams of `mtu` bytes. The times between
    /// probes for bandwidth are derived from `seed`.
    pub fn new(mtu: u16, seed: u64) -> Self {
        Self {
            model: Model::new(mtu),
            control: Control::new(mtu),
            phase: Phase::Startup(Startup),
            feedback: Feedback::default(),
            recovery: Recovery::default(),
            undo: Undo::default(),
            idle: Idle::default(),
            random: Random::new(seed),
            resuming: Resuming::Off,
        }
    }

    /// Creates a controller that takes over the window of another, and assumes that the path
    /// delivers it once per round trip. It starts in ProbeBW unless the other was in slow start.
    pub(in crate::congestion) fn resume(previous: &Takeover<'_>, seed: u64) -> Self {
        let mut this = Self::new(previous.mtu, seed);
        this.control
            .set_cwnd_within_bounds(previous.window, &this.model);
        let rtt = previous.rtt;
        if !rtt.has_sample() {
            return this;
        }
        let rate = Rate::from_bytes_in(this.control.cwnd, rtt.smoothed());
        this.model.seed(previous.now, rate, rtt.min());
        if previous.ssthresh.is_some() {
            // The rate is a guess: ProbeBW_DOWN stays below it, and the next probe corrects it.
            this.model.full_pipe.is_reached = true;
            this.start_probe_bw_down(previous.now);
        }
        let gain = this.phase.pacing_gain();
        this.control.set_pacing_rate(rate.scaled(gain, 100));
        this
    }

    /// Starts from the rate of an earlier connection, once the path looks the same (RFC 9959).
    pub(in crate::congestion) fn start_carefully(&mut self, saved: SavedPath) {
        self.resuming = Resuming::Waiting(saved);
    }

    /// Returns the phase as far as it matters for resuming.
    const fn resume_phase(&self) -> ResumePhase {
        match self.phase {
            Phase::Startup(_) => ResumePhase::Startup,
            Phase::Drain(_) => ResumePhase::Drain,
            Phase::ProbeBw(_) | Phase::ProbeRtt(_) => ResumePhase::Other,
        }
    }

    /// Ends Startup after congestion at the rate of an earlier connection.
    fn retreat(&mut self) {
        if self.resuming.on_congestion() && self.resume_phase() == ResumePhase::Startup {
            self.undo.probing = Some(Probing::Startup);
            self.model.on_overflow();
            self.phase = Phase::Drain(Drain::new(self.model.rounds.count));
        }
    }

    pub(super) fn view(&self) -> View<'_> {
        View {
            model: &self.model,
            control: &self.control,
            feedback: &self.feedback,
        }
    }

    fn update_model_and_state(&mut self, rs: &Sample) {
        let circumstances = Circumstances {
            is_tainted: self.resuming.is_tainted(),
            ..self.phase.circumstances(self.view())
        };
        self.model.update_latest_delivery_signals(rs);
        self.model.update_congestion_signals(rs, &circumstances);
        self.model.update_ack_aggregation(rs, circumstances.cwnd);
        self.model.check_full_bw_reached(rs);
        self.count_round();
        self.check_startup_done(rs);
        self.check_drain_done(rs.now);
        self.update_probe_bw_cycle_phase(rs);
        self.model.update_min_rtt(rs, circumstances.quantum);
        self.check_probe_rtt(rs);
        self.model.losses.advance(rs);
        self.model.bound_bw();
    }

    fn count_round(&mut self) {
        if let Phase::ProbeBw(phase) = &mut self.phase
            && self.model.rounds.is_start
        {
            phase.on_round_start();
        }
    }

    fn enter_startup(&mut self) {
        self.phase = Phase::Startup(Startup);
    }

    fn check_startup_done(&mut self, rs: &Sample) {
        let events = self.model.losses.take_events();
        let Phase::Startup(startup) = &self.phase else {
            return;
        };
        if events.is_some_and(|events| startup.has_high_loss(events, rs, &self.model)) {
            self.undo.probing = Some(Probing::Startup);
            self.model.on_overflow();
        }
        if self.model.full_pipe.is_reached {
            self.phase = Phase::Drain(Drain::new(self.model.rounds.count));
        }
    }

    fn check_drain_done(&mut self, now: Time) {
        if let Phase::Drain(drain) = &self.phase
            && drain.is_done(self.view())
        {
            self.start_probe_bw_down(now);
        }
    }

    /// `StartProbeBW_DOWN()`, which is all of `EnterProbeBW()`.
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.model.losses.reset();
        self.model.start_round();
        self.feedback.on_stop();
        self.phase = Phase::ProbeBw(ProbeBw::down(now, &mut self.random));
    }

    fn start_probe_bw_cruise(&mut self) {
        if let Phase::ProbeBw(phase) = &mut self.phase {
            phase.start_cruise();
        }
    }

    fn start_probe_bw_refill(&mut self) {
        self.model.bounds.short_term = None;
        self.model.start_round();
        self.feedback.on_refill();
        self.phase = Phase::ProbeBw(ProbeBw::refill());
    }

    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.model.start_round();
        self.model.full_pipe.reset(rs.delivery_rate);
        self.feedback.on_probe(rs.now);
        self.phase = Phase::ProbeBw(ProbeBw::up(self.view()));
    }

    fn update_probe_bw_cycle_phase(&mut self, rs: &Sample) {
        // Deviates: checked before the bound rises, because the window was set to the previous
        // bound. The draft checks afterwards, so that the window is below the bound at each
        // acknowledgement that raises it. Once every acknowledgement does, the probe would end for
        // lack of growth although the rate grows.
        let is_bound = self.model.is_bound_by_long_term(self.control.cwnd);
        if !self.model.full_pipe.is_reached || self.adapt_long_term_model(rs) {
            return;
        }
        let Phase::ProbeBw(phase) = &self.phase else {
            return;
        };
        match phase.next(rs, is_bound, self.view()) {
            Next::Stay => {}
            Next::Cruise => self.start_probe_bw_cruise(),
            Next::Refill => self.start_probe_bw_refill(),
            Next::Up => self.start_probe_bw_up(rs),
            Next::ResetFullPipe => self.model.full_pipe.reset(rs.delivery_rate),
            Next::Down { is_precautionary } => {
                self.feedback.on_probed(is_precautionary);
                self.start_probe_bw_down(rs.now);
            }
        }
    }

    /// `AdaptLongTermModel()`. Returns true after a move to another phase.
    fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        let is_over = self.model.rounds.is_start && self.feedback.on_round_start();
        if is_over && self.end_probe_feedback(rs) {
            return true;
        }
        if self.feedback.is_probe_sample && rs.has_ce {
            // §3.7: marks are congestion signals, and only queues mark packets.
            self.handle_inflight_too_high(rs.now, rs.tx_in_flight, rs.is_app_limited);
            return true;
        }
        if self.model.is_inflight_too_high(rs) {
            return false;
        }
        if let Some(long_term) = self.model.bounds.long_term {
            self.raise_long_term_bound(rs, long_term.max(rs.tx_in_flight));
        }
        false
    }

    fn raise_long_term_bound(&mut self, rs: &Sample, long_term: u64) {
        let view = View {
            model: &self.model,
            control: &self.control,
            feedback: &self.feedback,
        };
        let raised = match &mut self.phase {
            Phase::ProbeBw(phase) => phase.raise(rs, long_term, view),
            _ => long_term,
        };
        self.model.bounds.long_term = Some(raised);
    }

    /// Ends the feedback of a probe once all its packets are acknowledged. Returns true if the next
    /// probe starts.
    fn end_probe_feedback(&mut self, rs: &Sample) -> bool {
        if !matches!(self.phase, Phase::ProbeBw(_)) {
            return false;
        }
        if !rs.is_app_limited {
            self.model.max_bw.advance();
        }
        let probes_again = self.feedback.may_probe_again();
        if probes_again {
            self.start_probe_bw_refill();
        }
        probes_again
    }

    fn handle_inflight_too_high(&mut self, now: Time, tx_in_flight: u64, is_app_limited: bool) {
        self.feedback.on_too_high(now);
        if !is_app_limited {
            let target = self.model.target_inflight(self.control.cwnd);
            self.model.bounds.limit_long_term(tx_in_flight, target);
        }
        if matches!(self.phase, Phase::ProbeBw(ProbeBw::Up(_))) {
            self.undo.probing = Some(Probing::Up);
            self.start_probe_bw_down(now);
        }
    }

    fn check_probe_rtt(&mut self, rs: &Sample) {
        let is_probing = matches!(self.phase, Phase::ProbeRtt(_));
        if !is_probing && self.model.min_rtt.is_expired && !self.idle.is_restart {
            self.enter_probe_rtt();
        }
        if let Phase::ProbeRtt(phase) = &mut self.phase
            && phase.on_ack(rs.now, &mut self.model)
        {
            self.exit_probe_rtt(rs.now);
        }
        if rs.delivered > 0 {
            self.idle.is_restart = false;
        }
    }

    fn enter_probe_rtt(&mut self) {
        self.save_cwnd();
        self.model.start_round();
        self.feedback.on_stop();
        self.phase = Phase::ProbeRtt(ProbeRtt::default());
    }

    /// `ExitProbeRTT()`, and the steps of `CheckProbeRTTDone()` before it.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.model.min_rtt.on_probed(now);
        self.control.restore_cwnd();
        self.model.bounds.short_term = None;
        if self.model.full_pipe.is_reached {
            // A probe would cause loss if other flows have taken the capacity, and there is no
            // queue to drain.
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    fn save_cwnd(&mut self) {
        let is_probing_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        self.control
            .save_cwnd(self.recovery.is_active || is_probing_rtt);
    }

    /// Enters recovery unless the loss belongs to the present one, see `OnEnterFastRecovery()`.
    fn enter_recovery(&mut self, sample: &LossSample<'_>) {
        if self.recovery.period.covers(sample.largest_lost_sent) {
            return;
        }
        self.save_state_upon_loss(sample.now);
        self.recovery.period.start(sample.now);
        self.recovery.is_active = true;
    }

    /// Ends recovery with the acknowledgement of a packet sent during recovery.
    fn leave_recovery(&mut self, sent: Time) {
        if self.recovery.is_active && !self.recovery.period.covers(sent) {
            self.recovery.is_active = false;
            self.control.restore_cwnd();
        }
    }

    /// `NoteLoss()` for a packet that was sent at this time.
    fn note_loss(&mut self, now: Time, sent: Time) {
        // Deviates: the draft always saves the state here. But a loss that ends a probe makes the
        // next loss of the same flight the first of a round, which would overwrite the state to
        // restore with that after the probe.
        let is_first = self
            .model
            .losses
            .on_congestion_signal(now, self.model.delivered);
        if is_first && self.undo.is_older_than(sent) {
            self.save_state_upon_loss(now);
        }
    }

    fn handle_lost_packet(&mut self, now: Time, packet: &LostPacket) {
        self.note_loss(now, packet.sent);
        self.undo.on_lost(packet.bytes);
        self.model.on_lost(packet);
        let (lost, inflight) = (packet.lost_since_sent, packet.tx_in_flight);
        if self.feedback.is_probe_sample && self.model.is_loss_too_high(lost, inflight) {
            let inflight = inflight_at_loss(packet);
            self.handle_inflight_too_high(now, inflight, packet.is_app_limited);
        }
    }

    fn save_state_upon_loss(&mut self, now: Time) {
        self.save_cwnd();
        self.undo.save(now, self.model.bounds);
    }

    fn handle_spurious_loss_detection(&mut self, now: Time) {
        let undo = self.undo.take(now);
        self.control.restore_cwnd();
        self.recovery.is_active = false;
        self.model.on_spurious_losses(undo.bounds);
        let is_probing_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        match (undo.probing, &self.phase) {
            (Some(Probing::Startup), Phase::Startup(_)) => {}
            (Some(Probing::Startup), _) => {
                self.model.full_pipe.is_reached = false;
                if !is_probing_rtt {
                    self.enter_startup();
                }
            }
            (Some(Probing::Up), Phase::ProbeBw(ProbeBw::Up(_)) | Phase::ProbeRtt(_)) => {}
            (Some(Probing::Up), _) => self.start_probe_bw_refill(),
            (None, _) => {}
        }
    }

    /// `HandleRestartFromIdle()`, after packets were sent into an empty pipe.
    fn handle_restart_from_idle(&mut self, now: Time) {
        // On a path that holds less than a quantum the pipe is empty between any two of them.
        let gap = self.control.quantum_time(&self.model);
        if !self.idle.restart(now, gap) {
            return;
        }
        self.model.on_restart(now);
        match &self.phase {
            Phase::ProbeBw(_) => self.control.set_pacing_rate_with_gain(UNITY, &self.model),
            Phase::ProbeRtt(phase) if phase.is_over(now) => self.exit_probe_rtt(now),
            Phase::ProbeRtt(_) | Phase::Startup(_) | Phase::Drain(_) => {}
        }
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, now: Time, bytes: u64, _last_pn: u64, bytes_in_flight: u64) {
        if bytes_in_flight <= bytes {
            self.handle_restart_from_idle(now);
        }
        self.idle.on_sent();
        self.model.inflight = bytes_in_flight;
        if bytes_in_flight.saturating_add(self.model.smss()) > self.control.cwnd {
            self.model.rounds.on_cwnd_limited();
        }
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        let rs = self.model.on_ack(sample);
        let gain = self.phase.pacing_gain();
        self.control.init_pacing_rate(sample.rtt, gain, &self.model);
        self.update_model_and_state(&rs);
        self.leave_recovery(sample.largest_acked_sent);
        let gain = self.phase.pacing_gain();
        let limits = self.phase.limits(&self.model);
        self.control
            .update(rs.newly_acked, gain, limits, &self.model);
        let phase = self.resume_phase();
        self.resuming.on_ack(&rs, sample.rtt, &self.model, phase);
        if let Some(rate) = self.resuming.rate() {
            self.control.raise_to(rate, limits.cwnd_gain, &self.model);
        }
        self.idle.on_ack(sample.now, self.model.inflight);
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        self.model.inflight = sample.bytes_in_flight;
        self.enter_recovery(sample);
        if sample.is_ecn {
            self.note_loss(sample.now, sample.largest_lost_sent);
            self.model.losses.on_mark();
        }
        for packet in sample.packets {
            self.handle_lost_packet(sample.now, packet);
        }
        self.retreat();
        if sample.persistent {
            self.control.cwnd = minimum_window(self.model.mtu);
        }
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        if self.undo.on_spurious_loss(loss) {
            self.handle_spurious_loss_detection(loss.now);
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.model.mtu = mtu;
        self.control.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.control.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        let gain = self.phase.pacing_gain();
        Some(self.control.pacing_rate(rtt, gain, &self.model))
    }

    fn send_quantum(&self) -> Option<u64> {
        Some(self.control.quantum(&self.model))
    }

    fn in_slow_start(&self) -> bool {
        matches!(self.phase, Phase::Startup(_))
    }

    fn state(&self) -> &'static str {
        self.resuming.name().unwrap_or_else(|| self.phase.name())
    }

    fn name(&self) -> &'static str {
        "bbr"
    }
}

/// A gain of one, in percent.
const UNITY: u32 = 100;
