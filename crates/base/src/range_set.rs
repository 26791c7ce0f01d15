//! Ordered disjoint ranges of integers.

use std::ops::Range;

/// A set of `u64` kept as ordered, disjoint, non-touching half-open ranges.
///
/// Acknowledged packet numbers, received bytes and lost spans are such sets. Nearly all
/// insertions touch the end of the set, so that place is looked at first; anything else is a
/// binary search and at most one move of the ranges behind it. The set does not bound itself:
/// owners that let a peer choose the values check [`RangeSet::len`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// An empty set; allocates nothing.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Number of disjoint ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True when the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// The smallest value.
    pub fn min(&self) -> Option<u64> {
        self.ranges.first().map(|range| range.start)
    }

    /// The largest value.
    pub fn max(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end - 1)
    }

    /// The range that holds the smallest value.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// The range that holds the largest value.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().cloned()
    }

    /// How many values the set holds.
    pub fn count(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    /// True when `value` is in the set.
    pub fn contains(&self, value: u64) -> bool {
        match self.ranges.last() {
            None => false,
            Some(last) if value >= last.start => value < last.end,
            Some(_) => {
                let index = self.ranges.partition_point(|range| range.end <= value);
                self.ranges
                    .get(index)
                    .is_some_and(|range| range.start <= value)
            }
        }
    }

    /// Adds one value; false when it was there already.
    pub fn insert_one(&mut self, value: u64) -> bool {
        if let Some(last) = self.ranges.last_mut()
            && value == last.end
        {
            last.end += 1;
            return true;
        }
        if self.contains(value) {
            return false;
        }
        self.insert(value..value.saturating_add(1));
        true
    }

    /// Adds a range. An empty range adds nothing.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        match self.ranges.last_mut() {
            None => return self.ranges.push(range),
            Some(last) if range.start > last.end => return self.ranges.push(range),
            Some(last) if range.start >= last.start => {
                last.end = last.end.max(range.end);
                return;
            }
            Some(_) => {}
        }
        // The ranges that overlap or touch the new one are [from, to).
        let from = self.ranges.partition_point(|old| old.end < range.start);
        let to = self.ranges.partition_point(|old| old.start <= range.end);
        if from == to {
            self.ranges.insert(from, range);
            return;
        }
        let merged =
            self.ranges[from].start.min(range.start)..self.ranges[to - 1].end.max(range.end);
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
    }

    /// Takes a range out. Values that are not in the set are ignored.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let from = self.ranges.partition_point(|old| old.end <= range.start);
        let to = self.ranges.partition_point(|old| old.start < range.end);
        if from >= to {
            return;
        }
        let left = self.ranges[from].start..range.start;
        let right = range.end..self.ranges[to - 1].end;
        let keep = [left, right]
            .into_iter()
            .filter(|part| part.start < part.end);
        self.ranges.splice(from..to, keep);
    }

    /// Takes out everything below `end`.
    pub fn remove_below(&mut self, end: u64) {
        if self.min().is_some_and(|min| min < end) {
            self.remove(0..end);
        }
    }

    /// Takes out the lowest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        if self.ranges.is_empty() {
            None
        } else {
            Some(self.ranges.remove(0))
        }
    }

    /// Empties the set and keeps its memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests;
