//! The progress of moves of our own end.

use super::network_path::PathIndex;

/// The state of the latest move of our own end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationState {
    /// There was none.
    #[default]
    None,
    /// The new path is being validated.
    Validating,
    /// The new path is validated and in use.
    Done,
    /// The new path was not validated in time, and the connection uses the one before.
    Failed,
}

/// The moves of our own end: the latest counts.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The path of the unfinished move.
    pub(super) path: Option<PathIndex>,
    pub(super) state: MigrationState,
    /// Moves so far.
    pub(super) count: u64,
    /// A failure that was not reported yet.
    pub(super) has_failed: bool,
    /// An address that the server prefers is not used.
    pub(super) ignores_preferred: bool,
}

impl Attempts {
    /// A move to `path` begins. It replaces the unfinished one.
    pub(super) fn begin(&mut self, path: PathIndex) {
        self.path = Some(path);
        self.state = MigrationState::Validating;
        self.count += 1;
        self.has_failed = false;
    }

    /// The new path is validated and in use.
    pub(super) fn on_done(&mut self) {
        self.path = None;
        self.state = MigrationState::Done;
    }

    /// Keeps the index of the path when another one is removed. Without its path the move has
    /// failed.
    pub(super) fn on_path_removed(&mut self, index: PathIndex) {
        if self.path == Some(index) {
            self.path = None;
            self.state = MigrationState::Failed;
            self.has_failed = true;
        }
        self.path = self.path.map(|at| at - usize::from(at > index));
    }
}
