//! Statistics of measured numbers.

use courser_units::to_f64;
use serde::Serialize;

/// Statistics of a set of numbers; all zero for an empty set.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Stats {
    /// The smallest number of the set.
    pub min: f64,
    /// The largest number of the set.
    pub max: f64,
    /// The 50th percentile.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The arithmetic mean, in the unit of the numbers.
    pub mean: f64,
    /// The sample standard deviation, with divisor n - 1.
    pub sd: f64,
    /// The share of the numbers within one standard deviation of the mean, from 0 to 1.
    pub within_sd: f64,
}

impl Stats {
    /// Computes the statistics of numbers. Percentiles follow the nearest-rank method.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let sorted = sorted(numbers);
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
            median: percentile(&sorted, 50),
            p95: percentile(&sorted, 95),
            p99: percentile(&sorted, 99),
            mean,
            sd,
            within_sd: to_f64(within.count() as u64) / count,
        }
    }
}

/// Percentiles by the nearest-rank method: each is one of the numbers.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Percentiles {
    /// The 10th percentile, which nine of ten numbers reach.
    pub p10: f64,
    /// The 50th percentile.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
}

impl Percentiles {
    /// Computes the percentiles of numbers; `None` without any.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let sorted = sorted(numbers);
        (!sorted.is_empty()).then(|| Self {
            p10: percentile(&sorted, 10),
            p50: percentile(&sorted, 50),
            p90: percentile(&sorted, 90),
        })
    }
}

/// Returns the numbers in ascending order.
fn sorted(numbers: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the smallest number that at least `percent` of the numbers do not exceed. `sorted` must not be
/// empty.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank.max(1) - 1]
}

/// A median with its 95 % confidence interval, from resampled values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The median of the values.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Estimates the median of values by bootstrapping with 10 000 resamples. The resamples are the same at
    /// each call. Returns `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut drawn = values.to_vec();
        let median = median_of(&mut drawn)?;
        let mut draws = Draws(1);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                drawn.clear();
                drawn.extend(values.iter().map(|_| values[draws.below(values.len())]));
                median_of(&mut drawn)
            })
            .collect();
        medians.sort_unstable_by(f64::total_cmp);
        let tail = medians.len() / 40;
        Some(Self {
            median,
            low: medians[tail],
            high: medians[medians.len() - 1 - tail],
        })
    }

    /// Returns true if the interval lies on one side of `value`.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || self.high < value
    }
}

/// Returns the median: the middle value, or the mean of the two middle ones. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of(&mut values.to_vec())
}

/// Sorts the values and returns the median.
fn median_of(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(values[middle - 1], upper))
}

const RESAMPLES: usize = 10_000;

/// The generator SplitMix64 with a fixed seed, so that each run has the same result.
struct Draws(u64);

impl Draws {
    /// Returns a number below `bound`, with nearly uniform distribution.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let product = u128::from(mixed) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_describe_the_numbers() {
        let stats = Stats::of([4.0, 1.0, 2.0, 3.0]);
        assert_eq!((stats.min, stats.max, stats.median), (1.0, 4.0, 2.0));
        assert_eq!((stats.p95, stats.mean), (4.0, 2.5));
        assert!((stats.sd - 1.29).abs() < 0.01, "{stats:?}");
        assert!((stats.within_sd - 0.5).abs() < f64::EPSILON, "{stats:?}");
    }

    #[test]
    fn statistics_of_no_numbers_are_zero() {
        assert_eq!(Stats::of([]), Stats::default());
        assert_eq!(Percentiles::of([]), None);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let all = Percentiles::of((1..=11).rev().map(f64::from)).expect("eleven numbers");
        assert_eq!([all.p10, all.p50, all.p90], [2.0, 6.0, 10.0]);
        let one = Percentiles::of([7.0]).expect("one number");
        assert_eq!([one.p10, one.p50, one.p90], [7.0; 3]);
    }

    #[test]
    fn median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn interval_is_near_that_of_order_statistics() {
        let values: Vec<f64> = (1..=21).map(f64::from).collect();
        let estimate = Estimate::of(&values).expect("values");
        assert_eq!(estimate.median.to_bits(), 11.0_f64.to_bits());
        // By order statistics it is 6 to 16.
        assert!((5.0..=8.0).contains(&estimate.low), "{estimate:?}");
        assert!((14.0..=17.0).contains(&estimate.high), "{estimate:?}");
        assert!(estimate.excludes(4.0) && estimate.excludes(18.0) && !estimate.excludes(11.0));
        assert_eq!(
            Estimate::of(&values),
            Some(estimate),
            "the draws are the same"
        );
    }

    #[test]
    fn equal_values_have_no_spread() {
        let all = Estimate::of(&[2.0; 5]).expect("values");
        assert_eq!([all.low, all.median, all.high], [2.0; 3]);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn numbers_are_drawn_uniformly() {
        let mut draws = Draws(1);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[draws.below(4)] += 1;
        }
        let mut all = counts.iter();
        assert!(
            all.all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
    }
}
