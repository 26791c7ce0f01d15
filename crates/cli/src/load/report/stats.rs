//! What a set of numbers has in common.

use hdrhistogram::Histogram;

/// What a set of numbers has in common; all zero for an empty one.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub(super) struct Stats {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) median: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) mean: f64,
    /// Standard deviation of the numbers as a sample.
    pub(super) sd: f64,
    /// Share of the numbers within one standard deviation of the mean, from 0 to 1.
    pub(super) within_sd: f64,
}

impl Stats {
    /// Of numbers that are all at hand.
    pub(super) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
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

    /// Of nanoseconds, in seconds.
    pub(super) fn of_times(histogram: &Histogram<u64>) -> Self {
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

/// The smallest number that so large a share of all does not exceed.
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

pub(super) fn seconds(nanoseconds: u64) -> f64 {
    to_f64(nanoseconds) / 1e9
}

pub(super) use crate::output::to_f64;

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
}
