//! Locks that survive panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic, which leaves the state behind these locks consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
