//! Statistics of a set of numbers.

use courser_units::to_f64;
use hdrhistogram::Histogram;

/// Statistics of a set of numbers; all zero for an empty set.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct Stats {
    /// The smallest number.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The mean.
    pub mean: f64,
    /// Standard deviation of the numbers as a sample.
    pub sd: f64,
    /// Share of the numbers within one standard deviation of the mean, from 0 to 1.
    pub within_sd: f64,
}

impl Stats {
    /// Returns the statistics of numbers.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let count = to_f64(sorted.len() as u64);
        let mean = sorted.iter().sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|number| (number - mean).powi(2)).sum();
        let sd = if sorted.len() > 1 {
            (squares / (count - 1.0)).sqrt()
        } else {
            0.0
        };
        let within = sorted.iter().filter(|number| (**number - mean).abs() <= sd);
        Self {
            min: *min,
            max: *max,
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            p99: quantile(&sorted, 0.99),
            mean,
            sd,
            within_sd: to_f64(within.count() as u64) / count,
        }
    }

    /// Returns the statistics of times that were recorded in nanoseconds, in seconds.
    pub fn of_times(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let (mean, sd) = (histogram.mean(), histogram.stdev());
        let at = |quantile| seconds(histogram.value_at_quantile(quantile));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times that were counted as nanoseconds"
        )]
        let within = histogram.count_between((mean - sd).max(0.0) as u64, (mean + sd) as u64);
        Self {
            min: seconds(histogram.min()),
            max: seconds(histogram.max()),
            median: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            mean: mean / 1e9,
            sd: sd / 1e9,
            within_sd: to_f64(within) / to_f64(histogram.len()),
        }
    }
}

/// Returns the smallest number that this share of all numbers does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let rank = (share * to_f64(sorted.len() as u64)).ceil() as usize;
    let index = rank.clamp(1, sorted.len()) - 1;
    sorted[index]
}

/// Converts nanoseconds to seconds.
pub fn seconds(nanoseconds: u64) -> f64 {
    to_f64(nanoseconds) / 1e9
}

/// Divides times that were recorded in nanoseconds into eleven classes of equal width. Returns the upper
/// end of each class in seconds, and the number of times in it.
pub fn classes(times: &Histogram<u64>) -> Vec<(f64, u64)> {
    if times.is_empty() {
        return Vec::new();
    }
    let (min, max) = (times.min(), times.max());
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
            times.count_between(lower, upper)
        } else {
            0
        };
        classes.push((seconds(upper), count));
        // The histogram does not distinguish times that are closer than this.
        lower = times.next_non_equivalent(upper).max(lower);
    }
    classes
}

const CLASSES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_what_they_have_in_common() {
        let stats = Stats::of([4.0, 1.0, 2.0, 3.0]);
        assert_eq!((stats.min, stats.max, stats.median), (1.0, 4.0, 2.0));
        assert_eq!((stats.p95, stats.mean), (4.0, 2.5));
        assert!((stats.sd - 1.29).abs() < 0.01, "{stats:?}");
        assert!((stats.within_sd - 0.5).abs() < f64::EPSILON, "{stats:?}");
    }

    #[test]
    fn nothing_is_all_zero() {
        assert_eq!(Stats::of([]), Stats::default());
        let empty = Histogram::new(3).expect("three digits are fine");
        assert_eq!(Stats::of_times(&empty), Stats::default());
    }

    #[test]
    fn times_agree_with_what_was_recorded() {
        let mut times = Histogram::new(3).expect("three digits are fine");
        for ms in 1..=100 {
            times.record(ms * 1_000_000).expect("it grows");
        }
        let stats = Stats::of_times(&times);
        for (found, wanted) in [
            (stats.min, 0.001),
            (stats.median, 0.050),
            (stats.p95, 0.095),
            (stats.p99, 0.099),
            (stats.max, 0.100),
        ] {
            assert!((found / wanted - 1.0).abs() < 0.002, "{found} {wanted}");
        }
    }

    #[test]
    fn classes_hold_every_time_once() {
        for times in [
            &[5][..],
            &[5, 5, 5],
            &[1, 2, 3, 4],
            &[1_000, 1_000_000, 1_000_000_000],
            &[123_456, 123_999, 130_000, 177_777],
        ] {
            let mut histogram = Histogram::new(3).expect("three digits are fine");
            for time in times {
                histogram.record(*time).expect("it grows");
            }
            let sum: u64 = classes(&histogram).iter().map(|(_, count)| count).sum();
            assert_eq!(sum, times.len() as u64, "{times:?}");
        }
    }
}
