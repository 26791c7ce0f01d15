//! Queueing delays in bounded memory.

use std::time::Duration;

/// Durations, counted in buckets whose width is at most 1/32 of their values. The error of
/// quantiles is at most 3 %.
///
/// Takes 16 KiB regardless of the number of durations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    total_nanos: u128,
    max_nanos: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into(),
            count: 0,
            total_nanos: 0,
            max_nanos: 0,
        }
    }
}

impl Histogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a duration. Durations of more than 584 years count as that long.
    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.total_nanos += u128::from(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
    }

    /// Adds all durations of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.total_nanos += other.total_nanos;
        self.max_nanos = self.max_nanos.max(other.max_nanos);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the longest duration exactly, or zero if the histogram is empty.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_nanos)
    }

    /// Returns the mean, exact to a nanosecond, or zero if the histogram is empty.
    pub fn mean(&self) -> Duration {
        let mean = self.total_nanos / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the median, at most 3 % too long.
    pub fn median(&self) -> Duration {
        self.quantile(500)
    }

    /// Returns the duration that `per_mille` of all durations do not exceed, at most 3 % too long.
    /// Returns zero if the histogram is empty. A `per_mille` above 1000 counts as 1000.
    pub fn quantile(&self, per_mille: u32) -> Duration {
        let rank = u128::from(self.count) * u128::from(per_mille.min(1000));
        let rank = rank.div_ceil(1000).max(1);
        let mut below = 0;
        for (index, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                return Duration::from_nanos(highest(index).min(self.max_nanos));
            }
        }
        Duration::ZERO
    }
}

/// Returns the bucket of a value. Each value below 32 has its own. Larger powers of two are divided
/// into 32.
fn bucket(nanos: u64) -> usize {
    let exponent = nanos.max(1).ilog2().saturating_sub(SUB_BITS);
    let base = u64::from(exponent) << SUB_BITS;
    usize::try_from(base + (nanos >> exponent)).unwrap_or(BUCKETS - 1)
}

/// Returns the highest value of a bucket.
fn highest(index: usize) -> u64 {
    let index = index as u64;
    let exponent = (index >> SUB_BITS).saturating_sub(1);
    let mantissa = index - (exponent << SUB_BITS);
    ((mantissa + 1) << exponent).wrapping_sub(1)
}

const SUB_BITS: u32 = 5;

/// The highest exponent is 63 - 5, and its mantissas go from 32 to 63.
const BUCKETS: usize = (58 << 5) + 64;

#[cfg(test)]
mod tests;
