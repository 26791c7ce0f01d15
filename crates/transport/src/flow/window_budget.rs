//! The budget for the growth of the receive windows of all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes by which the windows of an endpoint's connections may grow beyond their initial size
/// (attack limit K16). Clones share one budget.
///
/// The initial window of each connection is granted in any case, because the number of connections
/// is limited. Growth depends on the traffic of the peer. Without a common bound, each of thousands
/// of peers could make us keep the largest window.
#[derive(Clone, Debug)]
pub struct WindowBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    left: AtomicU64,
    /// True while memory is tight: nothing can be drawn.
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

    /// Grants nothing while `is_frozen`.
    #[inline]
    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.0.is_frozen.store(is_frozen, Ordering::Relaxed);
    }

    /// Draws up to `wanted` bytes for an owner that has drawn `taken` already, and returns how many. An owner
    /// may have an eighth of what the others have left: eight that hold all they can leave a third to those that
    /// come later.
    fn take(&self, wanted: u64, taken: u64) -> u64 {
        if self.0.is_frozen.load(Ordering::Relaxed) {
            return 0;
        }
        let granted = |left: u64| {
            let most = left.saturating_add(taken) / SHARE;
            wanted.min(most.saturating_sub(taken)).min(left)
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

/// Bytes that one window has drawn; returned when the window is dropped.
#[derive(Debug)]
pub(crate) struct Draw {
    budget: WindowBudget,
    taken: u64,
}

impl Draw {
    pub(crate) fn new(budget: WindowBudget) -> Self {
        Self { budget, taken: 0 }
    }

    /// Draws up to `wanted` bytes, and returns how many.
    pub(crate) fn take(&mut self, wanted: u64) -> u64 {
        let granted = self.budget.take(wanted, self.taken);
        self.taken += granted;
        granted
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        self.budget.0.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}
