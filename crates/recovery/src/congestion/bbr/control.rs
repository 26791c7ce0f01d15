//! How fast, how much at once, how much in all: draft-ietf-ccwg-bbr §5.6.

use std::time::Duration;

use courser_base::Rate;

use super::{Bbr, PacingRate, Sample, State};
use crate::congestion::window::{MAX_WINDOW, initial_window};
use crate::rtt::RttEstimator;

impl Bbr {
    /// `UpdateControlParameters()`.
    pub(super) fn update_control_parameters(&mut self, rs: &Sample) {
        self.set_pacing_rate_with_gain(self.pacing_gain());
        self.set_cwnd(rs.newly_acked);
    }

    /// `BBR.pacing_gain` in percent, §5.6.1.
    pub(super) fn pacing_gain(&self) -> u32 {
        match self.state {
            // 4 ln 2: the least with which the rate doubles each round.
            State::Startup => 277,
            State::Drain { .. } => 50,
            State::Down => 90,
            State::Cruise | State::Refill | State::ProbeRtt { .. } => 100,
            State::Up => 125,
        }
    }

    /// `BBR.cwnd_gain` in percent, §5.6.1.
    fn cwnd_gain(&self) -> u32 {
        match self.state {
            State::Up => 225,
            State::ProbeRtt { .. } => 50,
            _ => 200,
        }
    }

    pub(super) fn initial_cwnd(&self) -> u64 {
        initial_window(self.mtu)
    }

    /// The rate as it is before the first acknowledgement: the initial window leaves within the
    /// round-trip time, or at once when that is unknown.
    pub(super) fn initial_pacing_rate(&self, rtt: &RttEstimator) -> Rate {
        let rtt = if rtt.has_sample() {
            rtt.smoothed()
        } else {
            NOMINAL_RTT
        };
        Rate::from_bytes_in(self.initial_cwnd(), rtt).scaled(self.pacing_gain(), 100)
    }

    /// `InitPacingRate()`, with the first round-trip time that is known.
    pub(super) fn init_pacing_rate(&mut self, rtt: &RttEstimator) {
        if matches!(self.pacing_rate, PacingRate::Initial) && rtt.has_sample() {
            self.pacing_rate = PacingRate::Known(self.initial_pacing_rate(rtt));
        }
    }

    /// `SetPacingRateWithGain()`.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: u32) {
        let PacingRate::Known(before) = self.pacing_rate else {
            return;
        };
        let rate = self.bw.scaled(gain * (100 - PACING_MARGIN_PERCENT), 10_000);
        if self.full_pipe.is_reached || rate > before {
            self.pacing_rate = PacingRate::Known(rate);
        }
    }

    /// The rate, as far as it matters for how long a quantum takes.
    pub(super) fn rate(&self) -> Rate {
        match self.pacing_rate {
            PacingRate::Known(rate) => rate,
            PacingRate::Initial => Rate::from_bytes_in(self.initial_cwnd(), NOMINAL_RTT),
        }
    }

    /// `C.send_quantum`, which is `BBR.offload_budget` too, §5.5.8.2.
    pub(super) fn quantum(&self) -> u64 {
        self.rate()
            .bytes_in(QUANTUM_TIME)
            .min(LARGEST_QUANTUM)
            .max(2 * self.smss())
    }

    /// `SetCwnd()`.
    fn set_cwnd(&mut self, newly_acked: u64) {
        let max_inflight = self.max_inflight();
        if self.full_pipe.is_reached {
            self.cwnd = self.cwnd.saturating_add(newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < self.initial_cwnd() {
            self.cwnd = self.cwnd.saturating_add(newly_acked);
        }
        self.cwnd = self.cwnd.clamp(self.min_pipe_cwnd(), MAX_WINDOW);
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `UpdateMaxInflight()`.
    fn max_inflight(&self) -> u64 {
        let inflight = self.bdp_multiple(self.bw, self.cwnd_gain());
        self.quantization_budget(inflight + self.aggregation.extra_acked())
    }

    /// `BoundCwndForModel()`.
    fn bound_cwnd_for_model(&mut self) {
        let long_term = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt { .. } => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => None,
        };
        let short_term = self.short_term.map(|term| term.inflight);
        if let Some(cap) = [long_term, short_term].into_iter().flatten().min() {
            self.cwnd = self.cwnd.min(cap.max(self.min_pipe_cwnd()));
        }
    }

    /// `SaveCwnd()`.
    pub(super) fn save_cwnd(&mut self) {
        let is_modulated = self.recovery.is_active || matches!(self.state, State::ProbeRtt { .. });
        self.recovery.prior_cwnd = if is_modulated {
            self.recovery.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    /// `RestoreCwnd()`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.recovery.prior_cwnd);
    }
}

/// `BBR.PacingMarginPercent`.
const PACING_MARGIN_PERCENT: u32 = 1;

/// The round-trip time for the initial window when none is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

const QUANTUM_TIME: Duration = Duration::from_millis(1);
const LARGEST_QUANTUM: u64 = 64 * 1024;

#[cfg(test)]
mod tests;
