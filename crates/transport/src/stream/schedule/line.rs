//! Streams that are sent one after the other.

use std::collections::{BTreeMap, VecDeque};

use super::turns::QUANTUM;

/// The place of a stream in a line: the least is first. The fields are inverted, but for the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    class: i8,
    priority: i32,
    order: i64,
    /// Counts additions, so that equal streams are in the order in which they came.
    pub(super) number: u64,
}

impl Key {
    /// Returns the place behind all streams of this class, priority and order that came before.
    #[inline]
    pub(super) fn new(class: i8, priority: i32, order: i64, number: u64) -> Self {
        Self {
            class: !class,
            priority: !priority,
            order: !order,
            number,
        }
    }

    /// Returns class, priority and order.
    pub(super) fn parts(&self) -> (i8, i32, i64) {
        (!self.class, !self.priority, !self.order)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) key: Key,
    pub(super) stream: u32,
}

/// Streams in the order of their keys. Equal ones take turns.
///
/// Most lines are short, or grow at the back and shrink at the front, and a deque is best for both. A line of more than
/// [`FEW`] streams that changes elsewhere becomes a tree until it is empty, so that no change takes linear time.
#[derive(Debug, Default)]
pub(super) struct Line {
    few: VecDeque<Item>,
    many: BTreeMap<Key, u32>,
    /// Bytes used of the current turn.
    spent: u64,
}

impl Line {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    /// Returns the stream whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        match self.few.front() {
            Some(item) => Some(item.stream),
            None => self.many.first_key_value().map(|(_, stream)| *stream),
        }
    }

    /// Returns the streams and their number, unless there are more than `N`, or there were many.
    #[inline]
    pub(super) fn few<const N: usize>(&self) -> Option<([u32; N], usize)> {
        let count = self.few.len();
        if count > N || !self.many.is_empty() {
            return None;
        }
        let mut streams = [0; N];
        for (place, item) in streams.iter_mut().zip(&self.few) {
            *place = item.stream;
        }
        Some((streams, count))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Item> {
        let many = self.many.iter();
        let many = many.map(|(&key, &stream)| Item { key, stream });
        self.few.iter().copied().chain(many)
    }

    /// Adds a stream.
    #[inline]
    pub(super) fn push(&mut self, key: Key, stream: u32) {
        match self.few.back() {
            Some(last) if last.key > key => return self.insert(key, stream),
            Some(_) => {}
            None if self.many.is_empty() => self.spent = 0,
            None => return self.insert(key, stream),
        }
        self.few.push_back(Item { key, stream });
    }

    /// Adds a stream that is not the last one.
    fn insert(&mut self, key: Key, stream: u32) {
        self.avoid_shifts();
        let is_first = if self.many.is_empty() {
            let at = self.few.partition_point(|item| item.key < key);
            self.few.insert(at, Item { key, stream });
            at == 0
        } else {
            self.many.insert(key, stream);
            self.many
                .first_key_value()
                .is_some_and(|(first, _)| *first == key)
        };
        if is_first {
            self.spent = 0;
        }
    }

    /// Turns a long deque into a tree.
    fn avoid_shifts(&mut self) {
        if self.few.len() > FEW {
            let items = std::mem::take(&mut self.few);
            self.many = items
                .into_iter()
                .map(|item| (item.key, item.stream))
                .collect();
        }
    }

    /// Removes the stream whose turn it is.
    #[inline]
    pub(super) fn pop_first(&mut self) {
        self.spent = 0;
        if self.few.pop_front().is_none() {
            self.many.pop_first();
        }
    }

    /// Removes a stream, wherever it is.
    pub(super) fn remove(&mut self, key: Key) {
        if self.few.front().is_some_and(|item| item.key == key) {
            return self.pop_first();
        }
        self.avoid_shifts();
        if self.many.is_empty() {
            if let Ok(at) = self.few.binary_search_by(|item| item.key.cmp(&key)) {
                self.few.remove(at);
            }
            return;
        }
        if self
            .many
            .first_key_value()
            .is_some_and(|(first, _)| *first == key)
        {
            self.spent = 0;
        }
        self.many.remove(&key);
    }

    /// Counts `len` bytes sent by the stream whose turn it is. Returns true if its turn has ended.
    #[inline]
    pub(super) fn on_sent(&mut self, len: u64) -> bool {
        self.spent += len;
        self.spent >= QUANTUM
    }

    /// Ends the turn of the first stream, which is from now on the last of its equals, with this number. Returns false if
    /// it has no equals.
    pub(super) fn end_turn(&mut self, number: u64) -> bool {
        self.spent = 0;
        let (Some(first), Some(second)) = self.first_two() else {
            return false;
        };
        if first.key.parts() != second.key.parts() {
            return false;
        }
        self.pop_first();
        let key = Key {
            number,
            ..first.key
        };
        self.push(key, first.stream);
        true
    }

    fn first_two(&self) -> (Option<Item>, Option<Item>) {
        let mut items = self.iter();
        (items.next(), items.next())
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.few.shrink_to_fit();
    }
}

/// Longest line in whose middle streams are added and removed by moving others (limit K656).
const FEW: usize = 64;
