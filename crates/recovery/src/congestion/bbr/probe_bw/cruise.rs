//! ProbeBW_CRUISE, draft-ietf-ccwg-bbr §5.3.3: holds the rate.

use courser_base::Time;

use super::next::Next;
use super::wait::Wait;
use crate::congestion::bbr::view::View;

/// The ProbeBW_CRUISE phase, which lasts until the next probe.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion::bbr) struct Cruise {
    wait: Wait,
}

impl Cruise {
    pub(super) const PACING_GAIN: u32 = 100;

    pub(super) fn new(wait: Wait) -> Self {
        Self { wait }
    }

    pub(super) fn on_round_start(&mut self) {
        self.wait.on_round_start();
    }

    pub(super) fn next(&self, now: Time, view: View<'_>) -> Next {
        if self.wait.is_over(now, view) {
            Next::Refill
        } else {
            Next::Stay
        }
    }
}
