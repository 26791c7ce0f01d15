//! The presentation of measures.

use courser_plot::Unit;
use courser_sim::report::{self, MEASURES, Measure, quantile};

/// The values of a measure over the runs of a scenario.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) p10: f64,
    pub(super) p90: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spread {
    /// Returns the distribution of values; `None` without a value. Percentiles are values that occurred,
    /// as in bounds.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Some(Self {
            median: quantile(&values, 0.5)?,
            p10: quantile(&values, 0.1)?,
            p90: quantile(&values, 0.9)?,
            lowest: quantile(&values, 0.0)?,
            highest: quantile(&values, 1.0)?,
        })
    }
}

/// Returns the name of a measure with spaces.
pub(super) fn words(measure: &Measure) -> String {
    measure.name.replace('_', " ")
}

/// Returns the unit in which a measure is shown.
pub(super) fn unit(measure: &Measure) -> Unit {
    match measure.unit {
        // Jain's index is written as a number from 0 to 1 in the literature.
        _ if measure.name == "jain" => Unit::Plain,
        report::Unit::Share => Unit::Share,
        report::Unit::Seconds => Unit::Seconds,
        report::Unit::BitsPerSecond => Unit::BitsPerSecond,
        report::Unit::Count | report::Unit::Ratio => Unit::Plain,
    }
}

/// Returns true for measures of which more is better, unlike delays, losses and failures.
pub(super) fn is_more_better(measure: &Measure) -> bool {
    MORE_IS_BETTER.contains(&measure.name)
}

/// Returns the measures that have a column in the table of all scenarios.
pub(super) fn main() -> impl Iterator<Item = &'static Measure> {
    MEASURES
        .iter()
        .filter(|measure| MAIN.contains(&measure.name))
}

const MORE_IS_BETTER: &[&str] = &[
    "goodput",
    "goodput_share",
    "utilization",
    "steady_utilization",
    "jain",
    "least_share",
];

const MAIN: &[&str] = &[
    "goodput",
    "goodput_share",
    "jain",
    "queue_delay_median",
    "loss_rate",
    "completion_time",
    "handshake_time",
    "exchange_median",
    "recovery_time",
    "failures",
    "unfinished",
];
