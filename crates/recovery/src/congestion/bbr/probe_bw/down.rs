//! ProbeBW_DOWN, draft-ietf-ccwg-bbr §5.3.3: drains the queue that a probe has left.

use courser_base::Time;

use super::cruise::Cruise;
use super::next::Next;
use super::wait::Wait;
use crate::congestion::bbr::view::View;

/// The ProbeBW_DOWN phase, which lasts until the queue is empty or the next probe is due.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion::bbr) struct Down {
    wait: Wait,
}

impl Down {
    pub(super) const PACING_GAIN: u32 = 90;

    pub(super) fn new(wait: Wait) -> Self {
        Self { wait }
    }

    pub(super) fn on_round_start(&mut self) {
        self.wait.on_round_start();
    }

    /// `StartProbeBW_CRUISE()`: returns the next phase, with the same time of the next probe.
    pub(super) fn cruise(&self) -> Cruise {
        Cruise::new(self.wait)
    }

    pub(super) fn next(&self, now: Time, view: View<'_>) -> Next {
        if self.wait.is_over(now, view) {
            Next::Refill
        } else if is_time_to_cruise(view) {
            Next::Cruise
        } else {
            Next::Stay
        }
    }
}

/// `IsTimeToCruise()`: returns true if there is headroom and no queue.
fn is_time_to_cruise(view: View<'_>) -> bool {
    let model = view.model;
    let has_headroom = model
        .inflight_with_headroom()
        .is_none_or(|headroom| model.inflight <= headroom);
    has_headroom && model.inflight <= model.inflight_at(model.max_bw.get(), view.quantum())
}
