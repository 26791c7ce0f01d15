//! The state from which phases decide.

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

    /// See [`Model::was_queue_empty`].
    pub(super) fn was_queue_empty(&self) -> bool {
        self.model.was_queue_empty(self.quantum())
    }

    /// `TargetInflight()`.
    pub(super) fn target_inflight(&self) -> u64 {
        self.model.target_inflight(self.control.cwnd)
    }
}
