//! The order in which streams send.

use std::collections::VecDeque;

/// Streams with data to send, highest priority first. Streams of one priority take turns.
///
/// A turn lasts [`QUANTUM`] bytes: long enough that packets carry one stream each, short enough
/// that a small response does not wait for a large one.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The streams, highest priority first. HTTP/3 requests have a priority each, in descending
    /// order, so most are added at the back and leave from the front.
    entries: VecDeque<Entry>,
    /// Bytes used of the current turn.
    spent: u64,
    /// True if a turn lasts until the stream has nothing to send.
    is_in_order: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    priority: i32,
    stream: u32,
}

impl Schedule {
    /// Creates an order without streams, in which those of one priority take turns if it is fair.
    pub(super) fn new(is_fair: bool) -> Self {
        Self {
            is_in_order: !is_fair,
            ..Self::default()
        }
    }

    /// Returns true if no stream waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the stream whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.stream)
    }

    /// Returns the streams in order, unless there are more than `max`.
    #[inline]
    pub(super) fn few(&self, max: usize) -> Option<impl Iterator<Item = u32>> {
        let streams = self.entries.iter().map(|entry| entry.stream);
        (self.entries.len() <= max).then_some(streams)
    }

    /// Adds a stream behind those of its priority.
    pub(super) fn push(&mut self, priority: i32, stream: u32) {
        let entry = Entry { priority, stream };
        let at = match self.entries.back() {
            Some(last) if last.priority < priority => self.end_of(priority),
            _ => self.entries.len(),
        };
        if at == 0 {
            self.spent = 0;
        }
        self.entries.insert(at, entry);
    }

    /// Removes the stream whose turn it is.
    pub(super) fn pop_first(&mut self) {
        self.spent = 0;
        self.entries.pop_front();
    }

    /// Removes a stream, wherever it is in the order.
    pub(super) fn remove(&mut self, priority: i32, stream: u32) {
        let begin = self
            .entries
            .partition_point(|entry| entry.priority > priority);
        let mut level = self.entries.range(begin..);
        let index = level.position(|entry| *entry == Entry { priority, stream });
        let Some(index) = index else { return };
        if begin + index == 0 {
            self.spent = 0;
        }
        self.entries.remove(begin + index);
    }

    /// Counts `len` bytes sent by the stream whose turn it is.
    #[inline]
    pub(super) fn on_sent(&mut self, len: u64) {
        self.spent += len;
        if self.spent >= QUANTUM && !self.is_in_order {
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        self.spent = 0;
        if let Some(first) = self.entries.pop_front() {
            let at = self.end_of(first.priority);
            self.entries.insert(at, first);
        }
    }

    /// Returns the index behind all streams of this priority.
    fn end_of(&self, priority: i32) -> usize {
        self.entries
            .partition_point(|entry| entry.priority >= priority)
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }
}

/// The bytes that a stream sends in one turn.
const QUANTUM: u64 = 16 << 10;

#[cfg(test)]
mod tests;
