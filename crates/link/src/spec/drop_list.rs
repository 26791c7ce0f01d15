//! Lists of packet numbers.

use std::ops::RangeInclusive;

/// Ranges of packet numbers, counted from 1 in each direction.
///
/// A specification has at most [`DropList::MAX_RANGES`] of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DropList {
    /// The ranges, sorted, with at least one number between them.
    ranges: Vec<RangeInclusive<u64>>,
}

impl DropList {
    /// Maximum number of ranges in a specification.
    pub const MAX_RANGES: usize = 10_000;

    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Creates a list of the set bits of a mask. The lowest bit is packet 1.
    pub fn from_mask(mask: u64) -> Self {
        let bits = (0..u64::from(u64::BITS)).filter(|bit| mask >> bit & 1 == 1);
        bits.map(|bit| bit + 1).collect()
    }

    /// Adds the numbers of a range. Ignores 0, because packets are counted from 1.
    pub fn add(&mut self, range: RangeInclusive<u64>) {
        let (start, end) = (*range.start().max(&1), *range.end());
        if start > end {
            return;
        }
        self.ranges.push(start..=end);
        self.ranges.sort_unstable_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u64>> = Vec::with_capacity(self.ranges.len());
        for next in self.ranges.drain(..) {
            match merged.last_mut() {
                Some(last) if *next.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(next.end());
                }
                _ => merged.push(next),
            }
        }
        self.ranges = merged;
    }

    /// Returns true if the list contains this packet.
    pub fn contains(&self, number: u64) -> bool {
        let after = self
            .ranges
            .partition_point(|range| *range.start() <= number);
        after > 0 && self.ranges[after - 1].contains(&number)
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the ranges in order.
    pub fn ranges(&self) -> &[RangeInclusive<u64>] {
        &self.ranges
    }
}

impl FromIterator<u64> for DropList {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut list = Self::new();
        for number in numbers {
            list.add(number..=number);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_packet_zero_is_ignored() {
        let mut list: DropList = [7, 3, 0, 1].into_iter().collect();
        assert_eq!(list.ranges(), [1..=1, 3..=3, 7..=7]);
        list.add(2..=2);
        list.add(6..=9);
        let (start, end) = (9, 8);
        list.add(start..=end);
        assert_eq!(list.ranges(), [1..=3, 6..=9]);
        let inside: Vec<u64> = (0..12).filter(|&number| list.contains(number)).collect();
        assert_eq!(inside, [1, 2, 3, 6, 7, 8, 9]);
    }

    #[test]
    fn lowest_bit_of_a_mask_is_packet_one() {
        assert_eq!(DropList::from_mask(0b1011).ranges(), [1..=2, 4..=4]);
        assert_eq!(DropList::from_mask(1 << 63).ranges(), [64..=64]);
        assert!(DropList::from_mask(0).is_empty());
    }

    #[test]
    fn largest_number_does_not_overflow() {
        let mut list = DropList::new();
        list.add(5..=u64::MAX);
        list.add(1..=u64::MAX);
        assert_eq!(list.ranges(), [1..=u64::MAX]);
    }
}
