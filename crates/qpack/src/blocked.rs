//! Streams whose section came before the entries it refers to, RFC 9204 §2.1.2, §2.2.1.

use std::collections::BTreeSet;

/// At most one section of a stream is waiting, for what follows on the stream waits with it.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    /// Required Insert Count and stream.
    waiting: BTreeSet<(u64, u64)>,
}

impl Blocked {
    /// Lets `stream` wait; false if that would be more than `most` streams.
    pub(crate) fn add(&mut self, required: u64, stream: u64, most: usize) -> bool {
        self.waiting.contains(&(required, stream))
            || (self.waiting.len() < most && self.waiting.insert((required, stream)))
    }

    pub(crate) fn remove(&mut self, stream: u64) {
        self.waiting.retain(|&(_, waiting)| waiting != stream);
    }

    /// A stream that need not wait any longer.
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
