//! Names, units and order of measures in the report.

use courser_plot::Unit;
use courser_sim::report::{self, MEASURES, Measure};

/// Returns the name of a measure with spaces.
pub(super) fn display_name(measure: &Measure) -> String {
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
