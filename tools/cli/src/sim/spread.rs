//! The values of a measure over several runs.

use courser_sim::report::quantile;
use serde::Serialize;

/// The distribution of values. Percentiles are values that occurred, as in bounds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) p10: f64,
    pub(super) p90: f64,
    #[serde(skip)]
    pub(super) lowest: f64,
    #[serde(skip)]
    pub(super) highest: f64,
}

impl Spread {
    /// Returns the distribution of values; `None` without any.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: quantile(values, 0.5)?,
            p10: quantile(values, 0.1)?,
            p90: quantile(values, 0.9)?,
            lowest: quantile(values, 0.0)?,
            highest: quantile(values, 1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let spread = Spread::of(&values).expect("values");
        assert_eq!((spread.median, spread.p10, spread.p90), (51.0, 11.0, 90.0));
        assert_eq!((spread.lowest, spread.highest), (1.0, 100.0));
        assert_eq!(Spread::of(&[]), None);
    }
}
