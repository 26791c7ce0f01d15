//! Streams that are sent one after the other.

use std::collections::{BTreeMap, VecDeque};

use super::turns::QUANTUM;

/// The place of a stream in a line: the least is first. The fields are inverted, but for the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    /// The class, and the priority in the lower 32 bits: one comparison instead of two.
    level: i64,
    order: i64,
    /// Counts additions, so that equal streams are in the order in which they came.
    pub(super) number: u64,
}

impl Key {
    /// Returns the place behind all streams of this class, priority and order that came before.
    #[inline]
    pub(super) fn new(class: i8, priority: i32, order: i64, number: u64) -> Self {
        Self {
            level: !((i64::from(class) << 32) + i64::from(priority)),
            order: !order,
            number,
        }
    }

    /// Returns class, priority and order.
    pub(super) fn parts(&self) -> (i8, i32, i64) {
        let level = !self.level;
        // The lower half is a number with a sign, which was added to the upper one.
        let priority = (level << 32) >> 32;
        let class = (level - priority) >> 32;
        let class = i8::try_from(class).unwrap_or_default();
        let priority = i32::try_from(priority).unwrap_or_default();
        (class, priority, !self.order)
    }

    /// Returns true if these are of one class, priority and order.
    fn is_equal(&self, other: &Self) -> bool {
        (self.level, self.order) == (other.level, other.order)
    }

    /// Returns true if this stream is before the other one, whatever their numbers.
    fn leads(&self, other: &Self) -> bool {
        (self.level, self.order) < (other.level, other.order)
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
    /// All streams instead of `few`. Exists while it has any.
    #[expect(clippy::box_collection, reason = "a pointer in each idle connection")]
    many: Option<Box<BTreeMap<Key, u32>>>,
    /// Bytes used of the current turn.
    spent: u64,
}

impl Line {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_none()
    }

    /// Returns the stream whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        match self.few.front() {
            Some(item) => Some(item.stream),
            None => self.first_of_many(),
        }
    }

    fn first_of_many(&self) -> Option<u32> {
        let (_, stream) = self.many.as_ref()?.first_key_value()?;
        Some(*stream)
    }

    /// Copies the first streams.
    pub(super) fn copy_to(&self, places: &mut [u32]) {
        if self.many.is_none() {
            // An iterator over both forms takes three times as long.
            for (at, place) in places.iter_mut().enumerate() {
                *place = self.few.get(at).map_or(*place, |item| item.stream);
            }
            return;
        }
        for (place, item) in places.iter_mut().zip(self.iter()) {
            *place = item.stream;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Item> {
        let many = self.many.iter().flat_map(|many| many.iter());
        let many = many.map(|(&key, &stream)| Item { key, stream });
        self.few.iter().copied().chain(many)
    }

    /// Returns true if all streams but this one have lower places than its own.
    pub(super) fn is_led_by(&self, key: Key, stream: u32) -> bool {
        let next = self.iter().find(|item| item.stream != stream);
        next.is_none_or(|item| key.leads(&item.key))
    }

    /// Returns true if a stream has a higher place than this one, whatever their numbers.
    pub(super) fn has_before(&self, key: Key) -> bool {
        self.iter()
            .next()
            .is_some_and(|first| first.key.leads(&key))
    }

    /// Adds a stream.
    #[inline]
    pub(super) fn push(&mut self, key: Key, stream: u32) {
        match self.few.back() {
            // A new number is the largest.
            Some(last) if key.leads(&last.key) => return self.insert(key, stream),
            Some(_) => {}
            None if self.many.is_none() => self.spent = 0,
            None => return self.insert(key, stream),
        }
        self.few.push_back(Item { key, stream });
    }

    /// Adds a stream that is not the last one.
    #[inline(never)]
    fn insert(&mut self, key: Key, stream: u32) {
        self.avoid_shifts();
        let is_first = match &mut self.many {
            None => {
                let at = self.few.partition_point(|item| item.key < key);
                self.few.insert(at, Item { key, stream });
                at == 0
            }
            Some(many) => {
                many.insert(key, stream);
                many.first_key_value()
                    .is_some_and(|(first, _)| *first == key)
            }
        };
        if is_first {
            self.spent = 0;
        }
    }

    /// Turns a long deque into a tree.
    fn avoid_shifts(&mut self) {
        if self.few.len() > FEW {
            let items = std::mem::take(&mut self.few).into_iter();
            let many = items.map(|item| (item.key, item.stream)).collect();
            self.many = Some(Box::new(many));
        }
    }

    /// Removes the stream whose turn it is.
    #[inline]
    pub(super) fn pop_first(&mut self) {
        self.spent = 0;
        if self.few.pop_front().is_none() {
            self.change_many(|many| many.pop_first().is_some());
        }
    }

    /// Removes a stream, wherever it is.
    pub(super) fn remove(&mut self, key: Key) {
        if self.few.front().is_some_and(|item| item.key == key) {
            return self.pop_first();
        }
        self.avoid_shifts();
        if self.many.is_none() {
            if let Ok(at) = self.few.binary_search_by(|item| item.key.cmp(&key)) {
                self.few.remove(at);
            }
            return;
        }
        let was_first = self.change_many(|many| {
            let first = many.first_key_value();
            let is_first = first.is_some_and(|(first, _)| *first == key);
            many.remove(&key);
            is_first
        });
        if was_first {
            self.spent = 0;
        }
    }

    /// Removes streams from the tree, and the tree if it is empty then. Returns the result of `change`.
    #[inline(never)]
    fn change_many(&mut self, change: impl FnOnce(&mut BTreeMap<Key, u32>) -> bool) -> bool {
        let Some(many) = &mut self.many else {
            return false;
        };
        let result = change(many);
        if many.is_empty() {
            self.many = None;
        }
        result
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
        if !first.key.is_equal(&second.key) {
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
