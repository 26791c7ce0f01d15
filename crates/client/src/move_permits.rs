//! The number of moves to HTTP/3 that are in progress at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits of a client for [moves](super::moves) to all origins.
#[derive(Debug)]
pub(super) struct MovePermits(Arc<Semaphore>);

impl Default for MovePermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_MOVES)))
    }
}

impl MovePermits {
    /// Returns the permit for a move, or `None` if too many are in progress.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}

/// Largest number of moves to all origins at a time (limit K530): each has a handshake. A move beyond that waits for
/// a later request.
const MAX_MOVES: usize = 16;
