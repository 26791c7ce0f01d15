//! The control parameters: pacing rate, quantum and window, draft-ietf-ccwg-bbr §5.6.

use std::time::Duration;

use courser_base::Rate;

use super::model::Model;
use crate::congestion::window::{MAX_WINDOW, initial_window, minimum_window};
use crate::rtt::RttEstimator;

/// The window and the pacing rate, derived from the model and the phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) cwnd: u64,
    /// `BBR.prior_cwnd`: the window to restore after recovery or ProbeRTT.
    prior_cwnd: u64,
    pacing_rate: PacingRate,
}

/// `C.pacing_rate`, before and after the first round-trip time sample.
#[derive(Clone, Copy, Debug)]
enum PacingRate {
    /// No round-trip time is known. The rate follows from the initial window.
    Initial,
    Known(Rate),
}

/// The limits of a phase on the flight; `None` is infinite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// `BBR.cwnd_gain` in percent, §5.6.1.
    pub(super) cwnd_gain: u32,
    /// Bytes added to the quantization budget.
    pub(super) extra: u64,
    /// The largest window: `ProbeRTTCwnd()` in ProbeRTT.
    pub(super) max_cwnd: Option<u64>,
    /// The long-term bound of the phase.
    pub(super) long_term: Option<u64>,
}

impl Control {
    pub(super) fn new(mtu: u16) -> Self {
        Self {
            cwnd: initial_window(mtu),
            prior_cwnd: 0,
            pacing_rate: PacingRate::Initial,
        }
    }

    /// Sets the window to that of another controller, within the bounds of BBR.
    pub(super) fn set_cwnd_within_bounds(&mut self, window: u64, model: &Model) {
        self.cwnd = window.clamp(model.min_pipe_cwnd(), MAX_WINDOW);
    }

    pub(super) fn set_pacing_rate(&mut self, rate: Rate) {
        self.pacing_rate = PacingRate::Known(rate);
    }

    /// Raises the pacing rate to `rate` and the window to what follows from it. Lowers neither.
    pub(super) fn raise_to(&mut self, rate: Rate, cwnd_gain: u32, model: &Model) {
        if let PacingRate::Known(before) = self.pacing_rate {
            self.pacing_rate = PacingRate::Known(before.max(rate));
        }
        self.cwnd = self.cwnd.max(model.bdp_multiple(rate, cwnd_gain));
    }

    pub(super) fn on_mtu_update(&mut self, mtu: u16) {
        if matches!(self.pacing_rate, PacingRate::Initial) {
            self.cwnd = initial_window(mtu);
        }
        self.cwnd = self.cwnd.max(minimum_window(mtu));
    }

    pub(super) fn update(&mut self, newly_acked: u64, gain: u32, limits: Limits, model: &Model) {
        self.set_pacing_rate_with_gain(gain, model);
        self.set_cwnd(newly_acked, limits, model);
    }

    /// Returns the pacing rate. `gain` is that of the phase.
    pub(super) fn pacing_rate(&self, rtt: &RttEstimator, gain: u32, model: &Model) -> Rate {
        match self.pacing_rate {
            PacingRate::Known(rate) => rate,
            PacingRate::Initial => initial_pacing_rate(rtt, gain, model),
        }
    }

    /// `InitPacingRate()`, once a round-trip time is known.
    pub(super) fn init_pacing_rate(&mut self, rtt: &RttEstimator, gain: u32, model: &Model) {
        if matches!(self.pacing_rate, PacingRate::Initial) && rtt.has_sample() {
            self.pacing_rate = PacingRate::Known(initial_pacing_rate(rtt, gain, model));
        }
    }

    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: u32, model: &Model) {
        let PacingRate::Known(before) = self.pacing_rate else {
            return;
        };
        let margin = 100 - PACING_MARGIN_PERCENT;
        let rate = model.bw.scaled(gain * margin, 10_000);
        if model.full_pipe.is_reached || rate > before {
            self.pacing_rate = PacingRate::Known(rate);
        }
    }

    /// Returns the rate from which the quantum is computed.
    fn rate(&self, model: &Model) -> Rate {
        match self.pacing_rate {
            PacingRate::Known(rate) => rate,
            PacingRate::Initial => Rate::from_bytes_in(model.initial_cwnd(), NOMINAL_RTT),
        }
    }

    /// `C.send_quantum`, which is also `BBR.offload_budget`, §5.5.8.2.
    pub(super) fn quantum(&self, model: &Model) -> u64 {
        self.rate(model)
            .bytes_in(QUANTUM_TIME)
            .min(MAX_QUANTUM)
            .max(2 * model.smss())
    }

    /// Returns the time that a quantum takes.
    pub(super) fn quantum_time(&self, model: &Model) -> Duration {
        self.rate(model).time_for(self.quantum(model))
    }

    fn set_cwnd(&mut self, newly_acked: u64, limits: Limits, model: &Model) {
        let max_inflight = self.max_inflight(limits, model);
        if model.full_pipe.is_reached {
            self.cwnd = self.cwnd.saturating_add(newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || model.delivered < model.initial_cwnd() {
            self.cwnd = self.cwnd.saturating_add(newly_acked);
        }
        self.cwnd = self.cwnd.clamp(model.min_pipe_cwnd(), MAX_WINDOW);
        if let Some(max_cwnd) = limits.max_cwnd {
            self.cwnd = self.cwnd.min(max_cwnd);
        }
        self.bound_cwnd_for_model(limits, model);
    }

    fn max_inflight(&self, limits: Limits, model: &Model) -> u64 {
        let bdp = model.bdp_multiple(model.bw, limits.cwnd_gain);
        let inflight = bdp + model.aggregation.extra_acked();
        model.quantization_budget(inflight, self.quantum(model)) + limits.extra
    }

    fn bound_cwnd_for_model(&mut self, limits: Limits, model: &Model) {
        let short_term = model.bounds.short_term.map(|term| term.inflight);
        if let Some(cap) = [limits.long_term, short_term].into_iter().flatten().min() {
            self.cwnd = self.cwnd.min(cap.max(model.min_pipe_cwnd()));
        }
    }

    /// `SaveCwnd()`. `is_modulated` is true during recovery and in ProbeRTT.
    pub(super) fn save_cwnd(&mut self, is_modulated: bool) {
        self.prior_cwnd = if is_modulated {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

/// Returns the rate before the first acknowledgement: an initial window per round-trip time, or
/// [`NOMINAL_RTT`] if that is unknown, times the gain.
fn initial_pacing_rate(rtt: &RttEstimator, gain: u32, model: &Model) -> Rate {
    let rtt = if rtt.has_sample() {
        rtt.smoothed()
    } else {
        NOMINAL_RTT
    };
    Rate::from_bytes_in(model.initial_cwnd(), rtt).scaled(gain, 100)
}

/// `BBR.PacingMarginPercent`: how far the pacing rate stays below the bandwidth, to drain the
/// queue.
const PACING_MARGIN_PERCENT: u32 = 1;

/// The round-trip time assumed for the initial window while none is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

const QUANTUM_TIME: Duration = Duration::from_millis(1);
const MAX_QUANTUM: u64 = 64 * 1024;

#[cfg(test)]
mod tests;
