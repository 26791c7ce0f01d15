//! Collects measured times, and computes their distribution.

use std::time::Duration;

use courser_units::to_f64;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::statistics::Stats;

/// A collection of times in bounded memory.
///
/// A histogram counts them in nanoseconds, with three significant digits.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Times {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self(Histogram::new(DIGITS).expect("a histogram has up to five digits"))
    }

    /// Adds a time, with a precision of three significant digits.
    pub fn record(&mut self, time: Duration) {
        // The histogram grows as needed, and fails only above five hundred years. Its saturating method would cut
        // the time instead.
        let _ = self
            .0
            .record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds the times of another collection.
    pub fn add(&mut self, other: &Self) {
        // A histogram that grows accepts all times of another one.
        let _ = self.0.add(&other.0);
    }

    /// Removes all times, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns true if there are no times.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the seconds that the given share of the times does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        seconds(self.0.value_at_quantile(share))
    }

    /// Returns the distribution of the times; `None` without any.
    pub fn latency(&self) -> Option<Latency> {
        let at = |share| to_f64(self.0.value_at_quantile(share)) / 1e3;
        (!self.is_empty()).then(|| Latency {
            min_us: to_f64(self.0.min()) / 1e3,
            mean_us: self.0.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: to_f64(self.0.max()) / 1e3,
        })
    }

    /// Returns the statistics of the times in seconds.
    pub fn stats(&self) -> Stats {
        if self.is_empty() {
            return Stats::default();
        }
        let (mean, sd) = (self.0.mean(), self.0.stdev());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times that were counted as nanoseconds"
        )]
        let within = self
            .0
            .count_between((mean - sd).max(0.0) as u64, (mean + sd) as u64);
        Stats {
            min: seconds(self.0.min()),
            max: seconds(self.0.max()),
            median: self.quantile(0.5),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            mean: mean / 1e9,
            sd: sd / 1e9,
            within_sd: to_f64(within) / to_f64(self.0.len()),
        }
    }

    /// Divides the times into eleven classes of equal width. Returns the upper end of each class in seconds, and the
    /// number of times in it.
    pub fn classes(&self) -> Vec<(f64, u64)> {
        if self.is_empty() {
            return Vec::new();
        }
        let (min, max) = (self.0.min(), self.0.max());
        let step = (max - min) / CLASSES;
        let mut lower = 0;
        let mut classes = Vec::new();
        for class in 0..=CLASSES {
            let upper = if class == CLASSES {
                max
            } else {
                min + class * step
            };
            let count = if upper >= lower {
                self.0.count_between(lower, upper)
            } else {
                0
            };
            classes.push((seconds(upper), count));
            // The histogram does not distinguish times that are closer than this.
            lower = self.0.next_non_equivalent(upper).max(lower);
        }
        classes
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

/// The distribution of times, in microseconds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Latency {
    /// The shortest time in microseconds.
    pub min_us: f64,
    /// The arithmetic mean in microseconds.
    pub mean_us: f64,
    /// The 50th percentile in microseconds.
    pub p50_us: f64,
    /// The 90th percentile in microseconds.
    pub p90_us: f64,
    /// The 99th percentile in microseconds.
    pub p99_us: f64,
    /// The 99.9th percentile in microseconds.
    pub p999_us: f64,
    /// The longest time in microseconds.
    pub max_us: f64,
}

/// Converts nanoseconds to seconds.
fn seconds(nanoseconds: u64) -> f64 {
    to_f64(nanoseconds) / 1e9
}

/// Significant digits of times.
const DIGITS: u8 = 3;

/// The number of classes, without the one of the longest times.
const CLASSES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn times(all: impl IntoIterator<Item = Duration>) -> Times {
        let mut times = Times::new();
        all.into_iter().for_each(|time| times.record(time));
        times
    }

    #[test]
    fn distribution_is_in_microseconds() {
        let latency = times((1..=100).map(Duration::from_micros)).latency();
        let latency = latency.expect("a hundred times");
        assert!((latency.p50_us - 50.0).abs() < 0.2, "{latency:?}");
        assert!((latency.max_us - 100.0).abs() < 0.2, "{latency:?}");
    }

    #[test]
    fn empty_collection_has_no_distribution() {
        let mut times = times([Duration::from_secs(1)]);
        times.clear();
        assert!(times.is_empty());
        assert_eq!(times.latency(), None);
        assert_eq!(times.stats(), Stats::default());
        assert_eq!(times.classes(), []);
    }

    #[test]
    fn times_of_two_collections_add_up() {
        let mut all = times([Duration::from_micros(1)]);
        all.add(&times([Duration::from_mins(10), Duration::from_micros(3)]));
        let longest = all.stats().max;
        assert!((longest / 600.0 - 1.0).abs() < 0.001, "{longest}");
        assert!((all.quantile(0.5) - 3e-6).abs() < 1e-8);
    }

    #[test]
    fn statistics_are_in_seconds() {
        let stats = times((1..=100).map(Duration::from_millis)).stats();
        for (found, expected) in [
            (stats.min, 0.001),
            (stats.median, 0.050),
            (stats.p95, 0.095),
            (stats.p99, 0.099),
            (stats.max, 0.100),
        ] {
            assert!((found / expected - 1.0).abs() < 0.002, "{found} {expected}");
        }
    }

    #[test]
    fn classes_contain_every_time_once() {
        for nanos in [
            &[5][..],
            &[5, 5, 5],
            &[1, 2, 3, 4],
            &[1_000, 1_000_000, 1_000_000_000],
            &[123_456, 123_999, 130_000, 177_777],
        ] {
            let times = times(nanos.iter().copied().map(Duration::from_nanos));
            let sum: u64 = times.classes().iter().map(|(_, count)| count).sum();
            assert_eq!(sum, nanos.len() as u64, "{nanos:?}");
        }
    }
}
