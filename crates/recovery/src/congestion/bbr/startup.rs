//! Startup, draft-ietf-ccwg-bbr §5.3.1: doubles the rate each round until the pipe is full.

use super::loss::LossEvents;
use super::model::Model;
use super::sample::Sample;

/// The phase; all that it waits for is in the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Startup;

impl Startup {
    /// `BBR.StartupPacingGain` in percent: 4 ln 2, the least with which the rate doubles each round.
    pub(super) const PACING_GAIN: u32 = 277;

    /// `CheckStartupHighLoss()`: the pipe overflows although the rate still grows.
    pub(super) fn has_high_loss(&self, events: LossEvents, rs: &Sample, model: &Model) -> bool {
        if model.full_pipe.is_reached {
            return false;
        }
        let has_lost = events.ranges >= FULL_LOSS_COUNT && model.is_inflight_too_high(rs);
        has_lost || events.marks >= FULL_LOSS_COUNT
    }
}

/// `BBRStartupFullLossCnt`: ranges of packets lost in a round, or acknowledgements with marks.
const FULL_LOSS_COUNT: u32 = 6;

#[cfg(test)]
mod tests;
