//! Files that were asked for lately.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use foldhash::fast::RandomState;

use crate::memory::Ranking;

/// Remembers which files were asked for lately, by their hash.
///
/// A file is kept in memory from the second time on that it is asked for. So one visit of each of
/// many files does not push out those that are asked for all the time, and costs no memory.
#[derive(Debug)]
pub(crate) struct Lately {
    hasher: RandomState,
    /// A later file with the same place takes it.
    places: Box<[AtomicU32]>,
}

impl Lately {
    /// Remembers up to `files` of them.
    pub(crate) fn new(files: usize) -> Self {
        let len = files.clamp(LEAST, MOST).next_power_of_two();
        Self {
            hasher: RandomState::default(),
            places: std::iter::repeat_with(AtomicU32::default)
                .take(len)
                .collect(),
        }
    }

    /// Notes that a file is asked for. True if it was asked for lately.
    pub(crate) fn note(&self, path: &str, ranking: Ranking) -> bool {
        let hash = self.hasher.hash_one((path, ranking));
        // A power of two: the mask is in range.
        let place = &self.places[hash as usize & (self.places.len() - 1)];
        let sign = (hash >> 32) as u32 | 1;
        place.swap(sign, Relaxed) == sign
    }
}

const LEAST: usize = 64;
/// 4 MiB, with budgets of 2 GiB and more.
const MOST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time_counts() {
        let lately = Lately::new(100);
        assert!(!lately.note("/a", Ranking::PLAIN));
        assert!(lately.note("/a", Ranking::PLAIN));
        let first_times =
            (0..10_000).filter(|number| !lately.note(&format!("/{number}"), Ranking::PLAIN));
        assert_eq!(first_times.count(), 10_000, "each of them once");
    }
}
