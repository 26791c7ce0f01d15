//! Recently requested files.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use foldhash::fast::RandomState;

use crate::coding::Ranking;

/// A set of recently requested files, by their hash.
///
/// A file is cached from its second request on. Single requests for many files therefore neither
/// displace frequently requested files nor occupy memory.
#[derive(Debug)]
pub(crate) struct RecentFiles {
    hasher: RandomState,
    /// Hashes of files. A file replaces an earlier one in the same entry.
    entries: Box<[AtomicU32]>,
}

impl RecentFiles {
    /// Creates a set of up to `files` files.
    pub(crate) fn new(files: usize) -> Self {
        let len = files.clamp(MIN_ENTRIES, MAX_ENTRIES).next_power_of_two();
        Self {
            hasher: RandomState::default(),
            entries: std::iter::repeat_with(AtomicU32::default)
                .take(len)
                .collect(),
        }
    }

    /// Records a request for a file. Returns true if the file was requested recently.
    pub(crate) fn record(&self, path: &str, ranking: Ranking) -> bool {
        let hash = self.hasher.hash_one((path, ranking));
        // The length is a power of two, so the mask is in range.
        let entry = &self.entries[hash as usize & (self.entries.len() - 1)];
        let fingerprint = (hash >> 32) as u32 | 1;
        entry.swap(fingerprint, Relaxed) == fingerprint
    }
}

const MIN_ENTRIES: usize = 64;
/// Largest number of entries. They occupy 4 MiB, and memory budgets of 2 GiB and more reach it.
const MAX_ENTRIES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_request_counts_as_recent() {
        let recent_files = RecentFiles::new(100);
        assert!(!recent_files.record("/a", Ranking::PLAIN));
        assert!(recent_files.record("/a", Ranking::PLAIN));
        let first_times = (0..10_000)
            .filter(|number| !recent_files.record(&format!("/{number}"), Ranking::PLAIN));
        assert_eq!(first_times.count(), 10_000, "none of them is recent");
    }
}
