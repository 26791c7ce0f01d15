//! The budget for the growth of the receive windows of all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes by which the windows of an endpoint's connections may grow beyond their initial size
/// (attack limit K16). Clones share one budget.
///
/// The initial window of each connection is granted in any case, because the number of connections
/// is limited.Growth depends on the traffic of the peer: without a common bound, each of thousands
/// of peers could make us reserve the largest window.
#[derive(Clone, Debug)]
pub struct WindowBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    left: AtomicU64,
    /// True while memory is short: [`Draw::take`] returns 0.
    is_frozen: AtomicBool,
}

impl WindowBudget {
    /// Creates a budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Shared {
            left: AtomicU64::new(bytes),
            is_frozen: AtomicBool::new(false),
        }))
    }

    /// Returns the bytes that have not been drawn.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.0.left.load(Ordering::Relaxed)
    }

    /// Stops or resumes growth. No bytes are granted while `is_frozen`.
    #[inline]
    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.0.is_frozen.store(is_frozen, Ordering::Relaxed);
    }

    /// Draws up to `requested` bytes for an owner that has drawn `taken` already, and returns how many.An owner
    /// may have an eighth of what the others have left: if eight owners take all they may, a third is left for
    /// later ones.
    fn take(&self, requested: u64, taken: u64) -> u64 {
        if self.0.is_frozen.load(Ordering::Relaxed) {
            return 0;
        }
        let granted = |left: u64| {
            let max = left.saturating_add(taken) / SHARE;
            requested.min(max.saturating_sub(taken)).min(left)
        };
        let less = |left: u64| Some(left - granted(left));
        let before = self
            .0
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        before.map_or(0, granted)
    }
}

/// The divisor of what others have left that yields one window's maximum.
const SHARE: u64 = 8;

/// The bytes that one window has drawn. They return to the budget when this is dropped.
#[derive(Debug)]
pub(crate) struct Draw {
    budget: WindowBudget,
    taken: u64,
}

impl Draw {
    pub(crate) fn new(budget: WindowBudget) -> Self {
        Self { budget, taken: 0 }
    }

    /// Draws up to `requested` bytes, and returns how many.
    pub(crate) fn take(&mut self, requested: u64) -> u64 {
        let granted = self.budget.take(requested, self.taken);
        self.taken += granted;
        granted
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        self.budget.0.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}
