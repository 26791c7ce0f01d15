//! The number of bytes that the reader of a body can use, for bodies that produce content on demand.

use std::cell::Cell;

thread_local! {
    static DEMAND: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Calls `poll`, during which [`current`] returns `bytes`.
///
/// The trait for bodies of messages has no argument for it, and a body that produces more than its peer accepts
/// keeps the rest in memory for as long as the peer likes.
pub fn within<T>(bytes: u64, poll: impl FnOnce() -> T) -> T {
    let _restored = Restored(DEMAND.replace(bytes));
    poll()
}

/// Returns how many bytes the caller of the present poll can use, or `u64::MAX` if that is unknown. A body may
/// produce more.
pub fn current() -> u64 {
    DEMAND.get()
}

/// Restores the demand of the outer call when dropped, after a panic as well.
struct Restored(u64);

impl Drop for Restored {
    fn drop(&mut self) {
        DEMAND.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_is_that_of_the_innermost_call() {
        assert_eq!(current(), u64::MAX);
        let inner = within(7, || (current(), within(3, current), current()));
        assert_eq!((inner, current()), ((7, 3, 7), u64::MAX));
    }

    #[test]
    fn demand_ends_with_a_panic() {
        let panicked = std::panic::catch_unwind(|| within(7, || panic!("a body that fails")));
        assert!(panicked.is_err());
        assert_eq!(current(), u64::MAX);
    }
}
