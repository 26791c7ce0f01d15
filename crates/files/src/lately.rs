//! Recently requested files.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use foldhash::fast::RandomState;

use crate::coding::Ranking;

/// A set of recently requested files, by their hash.
///
/// A file is kept in memory from its second request on. Single requests for many files therefore do
/// not displace the files that are requested all the time, and cost no memory.
#[derive(Debug)]
pub(crate) struct Lately {
    hasher: RandomState,
    /// Hashes of files. A file replaces an earlier one in the same place.
    places: Box<[AtomicU32]>,
}

impl Lately {
    /// Creates a set of up to `files` files.
    pub(crate) fn new(files: usize) -> Self {
        let len = files.clamp(LEAST, MOST).next_power_of_two();
        Self {
            hasher: RandomState::default(),
            places: std::iter::repeat_with(AtomicU32::default)
                .take(len)
                .collect(),
        }
    }

    /// Records a request for a file. Returns true if the file was requested recently.
    pub(crate) fn note(&self, path: &str, ranking: Ranking) -> bool {
        let hash = self.hasher.hash_one((path, ranking));
        // The length is a power of two, so the mask is in range.
        let place = &self.places[hash as usize & (self.places.len() - 1)];
        let sign = (hash >> 32) as u32 | 1;
        place.swap(sign, Relaxed) == sign
    }
}

const LEAST: usize = 64;
/// The most places, which take 4 MiB. Budgets of 2 GiB and more reach it.
const MOST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_request_counts_as_recent() {
        let lately = Lately::new(100);
        assert!(!lately.note("/a", Ranking::PLAIN));
        assert!(lately.note("/a", Ranking::PLAIN));
        let first_times =
            (0..10_000).filter(|number| !lately.note(&format!("/{number}"), Ranking::PLAIN));
        assert_eq!(first_times.count(), 10_000, "each of them once");
    }
}
