//! Careful Resume in Startup (RFC 9959, "Implementation Notes for using BBR").

use courser_base::Rate;

use super::model::Model;
use super::sample::Sample;
use super::startup::Startup;
use crate::congestion::careful_resume::SavedPath;
use crate::rtt::RttEstimator;

/// The state of an attempt to continue at the rate of an earlier connection.
///
/// ```text
///  Waiting ----------------> Probing --------> Off
///     |    initial window       |   two rounds  ^
///     |    acknowledged         | congestion    |
///     |                         v               |
///     |                     Retreating ---------'
///     |                            end of Drain |
///     '-----------------------------------------'
///        congestion, another round-trip time, a path that is as fast already
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Resuming {
    /// No earlier connection is known, or its rate was used.
    #[default]
    Off,
    /// The initial window is not acknowledged yet.
    Waiting(SavedPath),
    /// Startup sends at least at `rate`: the flag "carefully-resuming".
    Probing {
        rate: Rate,
        /// The round in which it began.
        since: u64,
    },
    /// The rate was too high. Drain empties the queue, and rates that are measured meanwhile do not count.
    Retreating,
}

impl Resuming {
    /// Updates the state with an acknowledgement that arrives in this phase.
    pub(super) fn on_ack(
        &mut self,
        rs: &Sample,
        rtt: &RttEstimator,
        model: &Model,
        phase: ResumePhase,
    ) {
        match *self {
            Self::Waiting(saved) if phase == ResumePhase::Startup => {
                self.wait(saved, rs, rtt, model)
            }
            Self::Probing { since, .. } if phase == ResumePhase::Startup => {
                // All packets of the first round are acknowledged.
                if model.rounds.count >= since + 2 {
                    *self = Self::Off;
                }
            }
            Self::Retreating if phase == ResumePhase::Drain => {}
            _ => *self = Self::Off,
        }
    }

    fn wait(&mut self, saved: SavedPath, rs: &Sample, rtt: &RttEstimator, model: &Model) {
        if !model.rounds.is_start || model.delivered < model.initial_cwnd() {
            return;
        }
        if !saved.resembles(rtt) {
            *self = Self::Off;
            return;
        }
        let rate = Rate::from_bytes_in(saved.jump(), rtt.min());
        if rate <= model.bw.scaled(Startup::PACING_GAIN, 100) {
            *self = Self::Off;
        } else if !rs.is_app_limited {
            // Without data the rate cannot be validated.
            let since = model.rounds.count;
            *self = Self::Probing { rate, since };
        }
    }

    /// Records that packets were lost or marked. Returns true if Startup must end.
    pub(super) fn on_congestion(&mut self) -> bool {
        let was_probing = matches!(self, Self::Probing { .. });
        match self {
            Self::Probing { .. } => *self = Self::Retreating,
            Self::Waiting(_) => *self = Self::Off,
            Self::Off | Self::Retreating => {}
        }
        was_probing
    }

    /// Returns the minimum rate of Startup, if there is one.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self {
            Self::Probing { rate, .. } => Some(*rate),
            _ => None,
        }
    }

    /// Returns true if packets that were sent too fast are still in the queue, so that measured
    /// rates do not reflect the path.
    pub(super) fn is_tainted(&self) -> bool {
        matches!(self, Self::Retreating)
    }

    /// Returns the name of the state for telemetry, if the earlier connection determines the
    /// sending rate.
    pub(super) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Probing { .. } => Some("careful_resume_unvalidated"),
            Self::Retreating => Some("careful_resume_safe_retreat"),
            Self::Off | Self::Waiting(_) => None,
        }
    }
}

/// The phase of the controller, as far as it matters for resuming.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResumePhase {
    Startup,
    Drain,
    Other,
}

#[cfg(test)]
mod tests;
