//! Locks that a panic does not poison.

use std::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// A mutex that stays usable after a panic.
///
/// [`std::sync::Mutex`] reports whether a thread panicked while it held the lock, because the data
/// may then be incomplete. This type is for data that is complete after every statement, such as a
/// queue or a counter.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks the mutex, and blocks the thread until that is possible.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader-writer lock that stays usable after a panic, for the same data as [`Mutex`].
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Locks for reading, and blocks the thread until that is possible.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks for writing, and blocks the thread until that is possible.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn locks_are_usable_after_a_panic() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(1));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guards = (mutex.lock(), shared.write());
            panic!("with both locks");
        }));
        assert!(panicked.is_err());
        *mutex.lock() += 1;
        *shared.write() += 1;
        assert_eq!((*mutex.lock(), *shared.read()), (2, 2));
        assert_eq!(mutex.into_inner(), 2);
    }
}
