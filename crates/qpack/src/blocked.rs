//! Blocked streams: their field section arrived before the entries it refers to (RFC 9204 §2.1.2,
//! §2.2.1).

use std::collections::BTreeSet;

/// The set of blocked streams. Each stream has at most one blocked section, because everything
/// after that section waits for it.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    /// Pairs of Required Insert Count and stream ID.
    waiting: BTreeSet<(u64, u64)>,
}

impl Blocked {
    /// Adds `stream`. Returns false if that would exceed `most` blocked streams.
    pub(crate) fn add(&mut self, required: u64, stream: u64, most: usize) -> bool {
        self.waiting.contains(&(required, stream))
            || (self.waiting.len() < most && self.waiting.insert((required, stream)))
    }

    pub(crate) fn remove(&mut self, stream: u64) {
        self.waiting.retain(|&(_, waiting)| waiting != stream);
    }

    /// Removes and returns a stream whose section needs at most `insert_count` insertions.
    pub(crate) fn pop(&mut self, insert_count: u64) -> Option<u64> {
        let &(required, stream) = self.waiting.first()?;
        if required > insert_count {
            return None;
        }
        self.waiting.pop_first();
        Some(stream)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
