//! ProbeBW_REFILL, draft-ietf-ccwg-bbr §5.3.3: fills the pipe for a round.

use super::next::Next;
use crate::congestion::bbr::view::View;

/// The ProbeBW_REFILL phase, which lasts until the end of the round.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion::bbr) struct Refill;

impl Refill {
    pub(super) const PACING_GAIN: u32 = 100;

    pub(super) fn next(&self, view: View<'_>) -> Next {
        if view.model.rounds.is_start {
            Next::Up
        } else {
            Next::Stay
        }
    }
}
