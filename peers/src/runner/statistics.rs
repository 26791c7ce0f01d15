//! Medians and how sure they are.

use serde::Serialize;

/// A median with the interval that resampling gives it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    /// 2.5 of 100 resampled medians lie below.
    pub(crate) low: f64,
    /// 2.5 of 100 lie above.
    pub(crate) high: f64,
}

impl Estimate {
    /// Bootstrap: the median of as many values drawn with replacement, many times over. The
    /// draws are the same in every run. `None` without values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let mut draws = Draws(SEED);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                let drawn: Vec<f64> = values
                    .iter()
                    .map(|_| values[draws.below(values.len())])
                    .collect();
                self::median(&drawn)
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
}

/// The middle value, or the mean of the two; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[middle - 1], upper))
}

/// SplitMix64, which passes for random and needs no crate.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The high half of a product is below the bound; the bias is bound / 2^64.
        ((u128::from(mixed) * bound as u128) >> 64) as usize
    }
}

const RESAMPLES: usize = 10_000;
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        let estimate = Estimate::of(&[2.0; 10]).unwrap();
        assert_eq!(
            estimate,
            Estimate {
                median: 2.0,
                low: 2.0,
                high: 2.0
            }
        );
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_interval_holds_the_median_and_leaves_out_the_extremes() {
        let values: Vec<f64> = (1..=21).map(f64::from).collect();
        let estimate = Estimate::of(&values).unwrap();
        assert!((estimate.median - 11.0).abs() < 1e-9, "{estimate:?}");
        // The exact interval for a median of 21 by order statistics is 6 to 16.
        assert!((5.0..=8.0).contains(&estimate.low), "{estimate:?}");
        assert!((14.0..=17.0).contains(&estimate.high), "{estimate:?}");
    }

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values = [1.0, 5.0, 2.0, 8.0, 3.0];
        assert_eq!(Estimate::of(&values), Estimate::of(&values));
    }

    #[test]
    fn draws_reach_every_value_alike() {
        let mut draws = Draws(SEED);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[draws.below(4)] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
    }
}
