//! Ordered disjoint ranges of integers.

use std::ops::Range;

/// A set of `u64` kept as ordered, disjoint, non-touching half-open ranges.
///
/// Such sets hold acknowledged packet numbers, received bytes and lost spans. Nearly all insertions
/// touch the end of the set, so the last range is checked first. Any other insertion is a binary
/// search and moves the ranges that follow at most once. The set has no size limit: owners that let
/// a peer choose the values check [`RangeSet::len`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// Creates an empty set without allocating.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Returns the number of disjoint ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if the set contains no value.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Iterates over the ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// Returns the smallest value.
    pub fn min(&self) -> Option<u64> {
        self.ranges.first().map(|range| range.start)
    }

    /// Returns the largest value.
    pub fn max(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end - 1)
    }

    /// Returns the range that contains the smallest value.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// Returns the range that contains the largest value.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().cloned()
    }

    /// Returns the number of values in the set. The cost is linear in the number of ranges.
    pub fn count(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    /// Returns true if the set contains `value`.
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

    /// Adds one value. Returns false if the set already contained it.
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

    /// Adds all values of a range. An empty range adds nothing.
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

    /// Removes all values of a range. Values that are not in the set are ignored.
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

    /// Removes all values below `end`.
    pub fn remove_below(&mut self, end: u64) {
        if self.min().is_some_and(|min| min < end) {
            self.remove(0..end);
        }
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        if self.ranges.is_empty() {
            None
        } else {
            Some(self.ranges.remove(0))
        }
    }

    /// Removes all values and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Frees the memory that the present ranges do not need.
    pub fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests;
