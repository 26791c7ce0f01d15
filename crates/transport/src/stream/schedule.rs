//! Whose turn it is.

use std::collections::VecDeque;

/// Streams with something to send, the most important first; those of one priority take turns.
///
/// A turn lasts [`QUANTUM`] bytes: long enough that packets carry one stream each, short enough
/// that a small response does not wait for a large one.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Highest priority first; no level is empty.
    levels: Vec<Level>,
    /// Bytes of the turn that are used up.
    spent: u64,
    /// Memory for the next level.
    spare: VecDeque<u32>,
}

#[derive(Debug)]
struct Level {
    priority: i32,
    streams: VecDeque<u32>,
}

impl Schedule {
    /// True when no stream waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// The stream whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        self.levels.first()?.streams.front().copied()
    }

    /// Adds a stream behind those of its priority.
    pub(super) fn push(&mut self, priority: i32, stream: u32) {
        let at = self
            .levels
            .partition_point(|level| level.priority > priority);
        if self
            .levels
            .get(at)
            .is_none_or(|level| level.priority != priority)
        {
            let streams = std::mem::take(&mut self.spare);
            self.levels.insert(at, Level { priority, streams });
        }
        if at == 0 && self.levels[0].streams.is_empty() {
            self.spent = 0;
        }
        self.levels[at].streams.push_back(stream);
    }

    /// Takes out the stream whose turn it is.
    pub(super) fn pop_first(&mut self) {
        self.spent = 0;
        if let Some(level) = self.levels.first_mut() {
            level.streams.pop_front();
            self.drop_if_empty(0);
        }
    }

    /// Takes out any stream.
    pub(super) fn remove(&mut self, priority: i32, stream: u32) {
        let at = self
            .levels
            .partition_point(|level| level.priority > priority);
        let level = self
            .levels
            .get_mut(at)
            .filter(|level| level.priority == priority);
        let Some(level) = level else { return };
        let Some(place) = level.streams.iter().position(|&other| other == stream) else {
            return;
        };
        level.streams.remove(place);
        if (at, place) == (0, 0) {
            self.spent = 0;
        }
        self.drop_if_empty(at);
    }

    fn drop_if_empty(&mut self, at: usize) {
        if self.levels[at].streams.is_empty() {
            self.spare = self.levels.remove(at).streams;
        }
    }

    /// The stream whose turn it is has sent `len` bytes.
    #[inline]
    pub(super) fn on_sent(&mut self, len: u64) {
        self.spent += len;
        if self.spent >= QUANTUM {
            self.spent = 0;
            if let Some(level) = self.levels.first_mut() {
                level.streams.rotate_left(1);
            }
        }
    }

    /// Forgets all streams.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Bytes of a turn.
const QUANTUM: u64 = 16 << 10;

#[cfg(test)]
mod tests;
