//! Locks that a panic does not poison.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

use crate::foreign::{Hold, hold, thread_number};

/// A mutex that stays usable after a panic.
///
/// [`std::sync::Mutex`] reports whether a thread panicked while it held the lock, because the data
/// may then be incomplete. This type is for data that is complete after every statement, such as a
/// queue or a counter.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    value: sync::Mutex<T>,
    /// The thread that has locked it with [`hold`](Self::hold), or 0.
    holder: AtomicUsize,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self {
            value: sync::Mutex::new(value),
            holder: AtomicUsize::new(0),
        }
    }

    /// Locks the mutex, and blocks the thread until that is possible.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the mutex like [`lock`](Self::lock), for data with values of users. Those that end while it
    /// is locked are dropped, and tasks are woken, after it is released: see
    /// [`foreign`](crate::foreign).
    ///
    /// # Panics
    /// If this thread holds it already: code of users that runs under the lock has called the library.
    #[inline]
    pub fn hold(&self) -> Held<'_, T> {
        let thread = thread_number();
        assert!(
            self.holder.load(Ordering::Relaxed) != thread,
            "a hook has used the connection that called it"
        );
        let hold = hold();
        let guard = self.lock();
        self.holder.store(thread, Ordering::Relaxed);
        Held {
            holder: &self.holder,
            guard,
            _hold: hold,
        }
    }

    /// Consumes the mutex and returns the value, without locking.
    pub fn into_inner(self) -> T {
        self.value
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`Mutex`] that is locked by [`hold`](Mutex::hold).
#[must_use = "the mutex is released when it is dropped"]
pub struct Held<'a, T> {
    holder: &'a AtomicUsize,
    // Released before the hold ends.
    guard: MutexGuard<'a, T>,
    _hold: Hold,
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
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
    use crate::foreign::defer;

    #[test]
    #[should_panic(expected = "a hook has used the connection that called it")]
    fn second_hold_of_a_thread_panics_instead_of_waiting() {
        let mutex = Mutex::new(1);
        let _first = mutex.hold();
        let _second = mutex.hold();
    }

    #[test]
    fn values_that_end_under_a_lock_are_dropped_after_its_release() {
        struct Locks<'a>(&'a Mutex<u32>);
        impl Drop for Locks<'_> {
            fn drop(&mut self) {
                *self.0.lock() += 1;
            }
        }
        static MUTEX: Mutex<u32> = Mutex::new(0);
        let guard = MUTEX.hold();
        defer(Locks(&MUTEX));
        assert_eq!(*guard, 0);
        drop(guard);
        assert_eq!(*MUTEX.lock(), 1);
    }

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
