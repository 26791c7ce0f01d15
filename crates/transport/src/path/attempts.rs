//! The progress of migrations that our own end begins.

use super::network_path::PathIndex;

/// The state of the latest move of our own end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationState {
    /// Our end has not moved.
    #[default]
    None,
    /// The new path is being validated.
    Validating,
    /// The new path is validated and in use.
    Done,
    /// The new path was not validated in time, and the connection uses the previous one.
    Failed,
}

/// The moves of our own end, of which the latest counts.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The path of the unfinished move.
    pub(super) path: Option<PathIndex>,
    pub(super) state: MigrationState,
    /// Number of moves since the connection began, including replaced and failed ones.
    pub(super) count: u64,
    /// True if a failed move was not reported yet.
    pub(super) has_failed: bool,
    /// True if the address that the server prefers is ignored.
    pub(super) ignores_preferred: bool,
}

impl Attempts {
    /// Begins a move to `path`, which replaces an unfinished one.
    pub(super) fn begin(&mut self, path: PathIndex) {
        self.path = Some(path);
        self.state = MigrationState::Validating;
        self.count += 1;
        self.has_failed = false;
    }

    /// Completes the move, whose path is validated and in use.
    pub(super) fn on_done(&mut self) {
        self.path = None;
        self.state = MigrationState::Done;
    }

    /// Adjusts the index of the path to the removal of a path. If it was the path of the move, the move
    /// has failed.
    pub(super) fn on_path_removed(&mut self, index: PathIndex) {
        if self.path == Some(index) {
            self.path = None;
            self.state = MigrationState::Failed;
            self.has_failed = true;
        }
        self.path = self.path.map(|at| at - usize::from(at > index));
    }
}
