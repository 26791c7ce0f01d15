//! Blocked streams: their field section arrived before the entries it refers to (RFC 9204 §2.1.2,
//! §2.2.1).

use std::collections::{BTreeMap, BTreeSet};

/// The set of blocked streams, and of those that were unblocked and not decoded since. Each stream
/// has at most one such section, because everything after that section waits for it.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    /// Pairs of Required Insert Count and stream ID.
    waiting: BTreeSet<(u64, u64)>,
    /// The Required Insert Count of each stream, blocked or unblocked. Its encoded form depends on
    /// the number of insertions, so it is decoded once: when the section arrives.
    required: BTreeMap<u64, u64>,
}

impl Blocked {
    /// Adds `stream`. Returns false if that would exceed `most` blocked streams.
    pub(crate) fn add(&mut self, required: u64, stream: u64, most: usize) -> bool {
        if self.waiting.contains(&(required, stream)) {
            return true;
        }
        if self.waiting.len() >= most {
            return false;
        }
        self.required.insert(stream, required);
        self.waiting.insert((required, stream))
    }

    /// Returns the Required Insert Count of the section for which `stream` was blocked, until that
    /// section is decoded.
    pub(crate) fn required(&self, stream: u64) -> Option<u64> {
        self.required.get(&stream).copied()
    }

    /// Removes a stream whose section was decoded or is no longer needed.
    pub(crate) fn remove(&mut self, stream: u64) {
        if let Some(required) = self.required.remove(&stream) {
            self.waiting.remove(&(required, stream));
        }
    }

    /// Unblocks and returns a stream whose section needs at most `insert_count` insertions.
    pub(crate) fn pop(&mut self, insert_count: u64) -> Option<u64> {
        let &(required, stream) = self.waiting.first()?;
        if required > insert_count {
            return None;
        }
        self.waiting.pop_first();
        Some(stream)
    }

    /// Returns the number of blocked streams.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
