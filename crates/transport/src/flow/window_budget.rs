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

    /// Draws bytes for an owner that has drawn `taken` already. An owner may have at most an eighth
    /// of what was left: eight that hold all they can leave a third to those that come later.
    fn take(&self, bytes: u64, taken: u64) -> bool {
        if self.0.is_frozen.load(Ordering::Relaxed) {
            return false;
        }
        let less = |left: u64| {
            let left = left.checked_sub(bytes)?;
            (taken + bytes <= (left + bytes) / SHARE).then_some(left)
        };
        self.0
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

/// The divisor of what is left that yields one window's maximum.
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

    /// Draws more bytes. Returns false and draws nothing if not enough are left.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let granted = self.budget.take(bytes, self.taken);
        self.taken += if granted { bytes } else { 0 };
        granted
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        self.budget.0.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}
