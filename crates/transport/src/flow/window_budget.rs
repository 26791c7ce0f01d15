//! What the receive windows of all connections may grow by together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes by which the windows of an endpoint's connections may grow beyond their first size
/// (attack limit K16). Clones share one budget.
///
/// The first window of each connection is granted anyway; only so many connections exist. What
/// grows is what a peer has made us believe in, and without a common bound each of thousands
/// of peers could bring us to keep the largest window.
#[derive(Clone, Debug)]
pub struct WindowBudget(Arc<AtomicU64>);

impl WindowBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Bytes that nobody has drawn.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let less = |left: u64| left.checked_sub(bytes);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

/// What one window has drawn; given back when the window goes.
#[derive(Debug)]
pub(super) struct Draw {
    budget: WindowBudget,
    taken: u64,
}

impl Draw {
    pub(super) fn new(budget: WindowBudget) -> Self {
        Self { budget, taken: 0 }
    }

    /// Draws more; false, and nothing is drawn, when there is not so much.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let granted = self.budget.take(bytes);
        self.taken += if granted { bytes } else { 0 };
        granted
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.taken, Ordering::Relaxed);
    }
}
