//! Counters that are divided by a label with few values.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One counter for each value of a list, such as the variants of an enum.
#[derive(Debug)]
pub(super) struct ValueCounters<T: 'static, const N: usize> {
    of: &'static [T; N],
    counts: [AtomicU64; N],
}

impl<T: PartialEq + Copy, const N: usize> ValueCounters<T, N> {
    pub(super) fn new(of: &'static [T; N]) -> Self {
        Self {
            of,
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Adds to the counter of a value, which must be in the list.
    pub(super) fn add(&self, of: T, more: u64) {
        let index = self.of.iter().position(|it| *it == of);
        debug_assert!(index.is_some(), "a value without a counter");
        if let Some(index) = index {
            self.counts[index].fetch_add(more, Relaxed);
        }
    }

    /// Returns all counts, with the names of their values.
    pub(super) fn named(&self, name: impl Fn(T) -> &'static str) -> Vec<(&'static str, u64)> {
        let each = self.of.iter().zip(&self.counts);
        each.map(|(of, count)| (name(*of), count.load(Relaxed)))
            .collect()
    }
}
