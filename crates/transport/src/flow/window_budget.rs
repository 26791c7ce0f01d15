//! What the receive windows of all connections may grow by together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes by which the windows of an endpoint's connections may grow beyond their first size
/// (attack limit K16). Clones share one budget.
///
/// The first window of each connection is granted anyway; only so many connections exist. What
/// grows is what a peer has made us believe in, and without a common bound each of thousands
/// of peers could bring us to keep the largest window.
#[derive(Clone, Debug)]
pub struct WindowBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    left: AtomicU64,
    /// Memory is tight: nobody draws.
    is_frozen: AtomicBool,
}

impl WindowBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Shared {
            left: AtomicU64::new(bytes),
            is_frozen: AtomicBool::new(false),
        }))
    }

    /// Bytes that nobody has drawn.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.0.left.load(Ordering::Relaxed)
    }

    /// Grants nothing while `is_frozen`.
    #[inline]
    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.0.is_frozen.store(is_frozen, Ordering::Relaxed);
    }

    /// Takes more for somebody who has `taken` already. Nobody may have more than an eighth of what
    /// was left: eight who hold all they can leave a third to those who come later.
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

/// The part of what is left that one window may have.
const SHARE: u64 = 8;

/// What one window has drawn; given back when the window goes.
#[derive(Debug)]
pub(crate) struct Draw {
    budget: WindowBudget,
    taken: u64,
}

impl Draw {
    pub(crate) fn new(budget: WindowBudget) -> Self {
        Self { budget, taken: 0 }
    }

    /// Draws more; false, and nothing is drawn, when there is not so much.
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
