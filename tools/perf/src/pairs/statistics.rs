//! Medians and how sure they are.

use serde::Serialize;

/// A median, and the interval that 95 of 100 medians of resampled values fall into.
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
    /// Estimates the median of values by drawing as many of them with replacement 10 000 times (bootstrap). The same values give the
    /// same interval. `None` without values.
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

/// Sorts the values and returns the one in the middle, or the mean of both.
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

/// The generator SplitMix64: the draws need no secrecy, and are the same in each run.
struct Draws(u64);

impl Draws {
    /// Returns a number below `bound`, each with nearly the same chance.
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
    fn median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(median_of(&mut []), None);
        assert_eq!(median_of(&mut [9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_of(&mut [4.0, 1.0, 2.0, 9.0]), Some(3.0));
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
        assert_eq!(Estimate::of(&values), Some(estimate), "no chance in it");
    }

    #[test]
    fn equal_values_have_no_spread() {
        let all = Estimate::of(&[2.0; 5]).expect("values");
        assert_eq!([all.low, all.median, all.high], [2.0; 3]);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn each_number_is_drawn_as_often() {
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
