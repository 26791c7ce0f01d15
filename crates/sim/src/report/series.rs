//! Values over time in bounded memory.

use std::time::Duration;

use courser_base::Time;
use serde::ser::SerializeTuple;
use serde::{Serialize, Serializer};

use super::times::{as_seconds, seconds};

/// The default number of points of a series: as many as a wide chart has pixels.
pub const DEFAULT_POINTS: usize = 2000;

/// A value with its time. It serialises as `[seconds, value]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The time since the start of the world.
    pub at: Time,
    /// The value in the unit of the series.
    pub value: u64,
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&seconds(self.at))?;
        pair.serialize_element(&self.value)?;
        pair.end()
    }
}

/// A limited number of values over time, in the order of time.
///
/// A full series drops every other point and keeps new ones half as often, so that a series of any
/// length is evenly spread. It serialises as a list of `[seconds, value]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    points: Vec<Point>,
    limit: usize,
    /// The number of offered values for each that is kept.
    stride: u64,
    offered: u64,
}

impl Series {
    /// Creates a series of at most `limit` points, at least 2.
    pub fn new(limit: usize) -> Self {
        Self {
            points: Vec::new(),
            limit: limit.max(2),
            stride: 1,
            offered: 0,
        }
    }

    /// Adds a value, unless a thinned series skips it.
    pub fn push(&mut self, at: Time, value: u64) {
        let is_kept = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !is_kept {
            return;
        }
        if self.points.len() >= self.limit {
            let mut index = 0_usize;
            self.points.retain(|_| {
                index += 1;
                !index.is_multiple_of(2)
            });
            self.stride *= 2;
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.points.push(Point { at, value });
    }

    /// Returns the points in the order of time.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns true if there is no point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the last value.
    pub fn last(&self) -> Option<u64> {
        self.points.last().map(|point| point.value)
    }

    /// Returns the values from `from` on, smallest first.
    pub fn sorted_from(&self, from: Time) -> Vec<u64> {
        let mut values: Vec<u64> = self
            .points
            .iter()
            .filter(|point| point.at >= from)
            .map(|point| point.value)
            .collect();
        values.sort_unstable();
        values
    }

    /// Returns the value below which `percent` of the values from `from` on lie.
    pub fn percentile(&self, from: Time, percent: u64) -> Option<u64> {
        let values = self.sorted_from(from);
        let last = values.len().checked_sub(1)?;
        let rank = last as u64 * percent.min(100) / 100;
        values.get(usize::try_from(rank).ok()?).copied()
    }
}

impl Default for Series {
    fn default() -> Self {
        Self::new(DEFAULT_POINTS)
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.points)
    }
}

/// Sums over intervals of equal length, the first of which starts at zero.
///
/// If there are too many intervals, neighbours are merged and the intervals become twice as long.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Buckets {
    /// The length of an interval.
    #[serde(serialize_with = "as_seconds")]
    width: Duration,
    /// The sums, from the first interval on.
    sums: Vec<u64>,
    #[serde(skip)]
    limit: usize,
}

impl Buckets {
    /// Creates at most `limit` intervals (at least 2) of `width` (at least 1 ns).
    pub fn new(width: Duration, limit: usize) -> Self {
        Self {
            width: width.max(Duration::from_nanos(1)),
            sums: Vec::new(),
            limit: limit.max(2),
        }
    }

    /// Adds to the interval that contains `at`.
    pub fn add(&mut self, at: Time, amount: u64) {
        let mut index = self.index(at);
        while index >= self.limit as u64 {
            self.merge();
            index = self.index(at);
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if index >= self.sums.len() {
            self.sums.resize(index + 1, 0);
        }
        self.sums[index] += amount;
    }

    fn index(&self, at: Time) -> u64 {
        let width = u64::try_from(self.width.as_nanos()).unwrap_or(u64::MAX);
        at.as_nanos() / width
    }

    fn merge(&mut self) {
        self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.width *= 2;
    }

    /// Returns the length of an interval.
    pub fn width(&self) -> Duration {
        self.width
    }

    /// Returns the sums in the order of time.
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// Returns the sum of all intervals.
    pub fn total(&self) -> u64 {
        self.sums.iter().sum()
    }

    /// Returns the sum from `from` to `to`. Intervals that lie partly outside count in proportion.
    pub fn between(&self, from: Time, to: Time) -> u64 {
        let width = self.width.as_nanos();
        let (from, to) = (u128::from(from.as_nanos()), u128::from(to.as_nanos()));
        let share = |(index, sum): (u128, &u64)| {
            let (begin, end) = (index * width, (index + 1) * width);
            let inside = to.min(end).saturating_sub(from.max(begin));
            u128::from(*sum) * inside / width
        };
        let sum: u128 = (0..).zip(&self.sums).map(share).sum();
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    /// Returns the middle of each interval with its sum in units per second.
    pub fn rates(&self) -> Vec<Point> {
        let nanos = self.width.as_nanos().max(1);
        let rate = |sum: u64| u128::from(sum) * 1_000_000_000 / nanos;
        let middle = u64::try_from(nanos / 2).unwrap_or(u64::MAX);
        (0..)
            .zip(&self.sums)
            .map(|(index, sum)| Point {
                at: Time::from_nanos(middle) + self.width * index,
                value: u64::try_from(rate(*sum)).unwrap_or(u64::MAX),
            })
            .collect()
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self::new(Duration::from_millis(10), DEFAULT_POINTS)
    }
}
