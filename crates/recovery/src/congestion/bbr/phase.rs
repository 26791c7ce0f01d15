//! The phases as one type, and the table of draft-ietf-ccwg-bbr §5.6.1.

use super::control::Limits;
use super::drain::Drain;
use super::model::{Circumstances, Model};
use super::probe_bw::ProbeBw;
use super::probe_rtt::{ProbeRtt, probe_rtt_cwnd};
use super::startup::Startup;
use super::view::View;

/// `BBR.state`. Each phase owns the state that only it needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Startup(Startup),
    Drain(Drain),
    ProbeBw(ProbeBw),
    ProbeRtt(ProbeRtt),
}

impl Phase {
    /// Returns the name of the phase, as telemetry reports it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Startup(_) => "startup",
            Self::Drain(_) => "drain",
            Self::ProbeBw(ProbeBw::Down(_)) => "probe_bw_down",
            Self::ProbeBw(ProbeBw::Cruise(_)) => "probe_bw_cruise",
            Self::ProbeBw(ProbeBw::Refill(_)) => "probe_bw_refill",
            Self::ProbeBw(ProbeBw::Up(_)) => "probe_bw_up",
            Self::ProbeRtt(_) => "probe_rtt",
        }
    }

    /// `BBR.pacing_gain` in percent, §5.6.1.
    pub(super) fn pacing_gain(&self) -> u32 {
        match self {
            Self::Startup(_) => Startup::PACING_GAIN,
            Self::Drain(_) => Drain::PACING_GAIN,
            Self::ProbeBw(phase) => phase.pacing_gain(),
            Self::ProbeRtt(_) => ProbeRtt::PACING_GAIN,
        }
    }

    /// Returns the limits of the phase on the flight, §5.6.1 and §5.6.4.
    pub(super) fn limits(&self, model: &Model) -> Limits {
        let usual = Limits {
            cwnd_gain: CWND_GAIN,
            extra: 0,
            max_cwnd: None,
            long_term: None,
        };
        match self {
            Self::Startup(_) | Self::Drain(_) => usual,
            Self::ProbeBw(ProbeBw::Down(_) | ProbeBw::Refill(_)) => Limits {
                long_term: model.bounds.long_term,
                ..usual
            },
            Self::ProbeBw(ProbeBw::Up(_)) => Limits {
                cwnd_gain: UP_CWND_GAIN,
                extra: 2 * model.smss(),
                long_term: model.bounds.long_term,
                ..usual
            },
            Self::ProbeBw(ProbeBw::Cruise(_)) => Limits {
                long_term: model.inflight_with_headroom(),
                ..usual
            },
            Self::ProbeRtt(_) => Limits {
                cwnd_gain: ProbeRtt::CWND_GAIN,
                max_cwnd: Some(probe_rtt_cwnd(model)),
                long_term: model.inflight_with_headroom(),
                ..usual
            },
        }
    }

    /// Returns the circumstances by which the model interprets acknowledgements and losses.
    pub(super) fn circumstances(&self, view: View<'_>) -> Circumstances {
        Circumstances {
            cwnd: view.control.cwnd,
            quantum: view.quantum(),
            has_kept_up: match self {
                Self::Startup(_) => view.model.full_pipe.is_growing(),
                Self::ProbeBw(ProbeBw::Down(_)) => view.feedback.is_over(),
                Self::ProbeBw(ProbeBw::Cruise(_)) => true,
                _ => false,
            },
            is_probing_bw: matches!(
                self,
                Self::Startup(_) | Self::ProbeBw(ProbeBw::Refill(_) | ProbeBw::Up(_))
            ),
            is_tainted: false,
            is_giving_way: matches!(self, Self::ProbeBw(ProbeBw::Down(_))),
        }
    }
}

/// `BBR.DefaultCwndGain` in percent: the window as a multiple of what the path holds.
const CWND_GAIN: u32 = 200;

/// The gain of the window in ProbeBW_UP, in percent.
const UP_CWND_GAIN: u32 = 225;
