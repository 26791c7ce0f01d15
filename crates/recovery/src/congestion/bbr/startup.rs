//! Startup, draft-ietf-ccwg-bbr §5.3.1: doubles the rate each round until the pipe is full.

use super::loss::LossEvents;
use super::model::Model;
use super::sample::Sample;

/// The Startup phase. It has no state, because it ends when the model shows a full pipe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Startup;

impl Startup {
    /// `BBR.StartupPacingGain` in percent: 4 ln 2, the smallest with which the rate doubles each
    /// round.
    pub(super) const PACING_GAIN: u32 = 277;

    /// `CheckStartupHighLoss()`: returns true if the pipe overflows although the rate still grows.
    pub(super) fn has_high_loss(&self, events: LossEvents, rs: &Sample, model: &Model) -> bool {
        if model.full_pipe.is_reached {
            return false;
        }
        let has_lost = events.ranges >= FULL_LOSS_COUNT && model.is_inflight_too_high(rs);
        has_lost || events.marks >= FULL_LOSS_COUNT
    }
}

/// `BBRStartupFullLossCnt`: ranges of lost packets or acknowledgements with marks in a round.
const FULL_LOSS_COUNT: u32 = 6;

#[cfg(test)]
mod tests;
