//! Locks that survive panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic leaves what is behind these locks as consistent as any other moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
