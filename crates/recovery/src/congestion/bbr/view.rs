//! The state on which the decisions of phases depend.

use super::control::Control;
use super::feedback::Feedback;
use super::model::Model;

/// The state outside a phase that the phase may read.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) model: &'a Model,
    pub(super) control: &'a Control,
    pub(super) feedback: &'a Feedback,
}

impl View<'_> {
    pub(super) fn quantum(&self) -> u64 {
        self.control.quantum(self.model)
    }

    /// Calls [`Model::was_queue_empty`] with the present quantum.
    pub(super) fn was_queue_empty(&self) -> bool {
        self.model.was_queue_empty(self.quantum())
    }

    /// Returns `TargetInflight()` for the present window.
    pub(super) fn target_inflight(&self) -> u64 {
        self.model.target_inflight(self.control.cwnd)
    }
}
