//! Distributions of times.

use courser_units::to_f64;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Returns an empty histogram of times in nanoseconds, up to a minute.
pub fn histogram_of_times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are constants in range")
}

/// The distribution of a time, in microseconds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Latency {
    /// The shortest.
    pub min_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 90th percentile.
    pub p90_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl From<&Histogram<u64>> for Latency {
    fn from(nanos: &Histogram<u64>) -> Self {
        let at = |quantile| to_f64(nanos.value_at_quantile(quantile)) / 1e3;
        Self {
            min_us: to_f64(nanos.min()) / 1e3,
            mean_us: nanos.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: to_f64(nanos.max()) / 1e3,
        }
    }
}

/// The longest time that is recorded, a minute; longer times count as this.
const LONGEST_NS: u64 = 60_000_000_000;

/// Significant digits of latencies.
const DIGITS: u8 = 3;
