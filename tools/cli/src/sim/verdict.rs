//! Compares the runs of a scenario with its bounds.

use courser_sim::report::{RunReport, Unit};
use courser_sim::scenario::{Bound, BoundResult, Scenario};
use courser_units::{bits, seconds};

/// A bound of a scenario, and its verdict over all runs.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The measure and its limit.
    pub(super) bound: Bound,
    /// The value of the runs, and whether the bound holds.
    pub(super) verdict: BoundResult,
}

/// Checks the bounds of a scenario against its runs.
pub(super) fn judge(scenario: &Scenario, runs: &[RunReport]) -> Vec<Judged> {
    let rtt = scenario.base_rtt();
    let judge = |bound: &Bound| Judged {
        bound: bound.clone(),
        verdict: bound.check(runs, rtt),
    };
    scenario.bounds.iter().map(judge).collect()
}

/// Returns a value with its unit; `none` if no run has one.
pub(super) fn shown(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else {
        return "none".to_owned();
    };
    match unit {
        // More digits for shares that are close to zero.
        Unit::Share if value > 0.0 && value < 0.001 => format!("{:.4} %", value * 100.0),
        Unit::Share => format!("{:.2} %", value * 100.0),
        Unit::Seconds => seconds(value),
        Unit::BitsPerSecond => bits(value),
        Unit::Count => format!("{value:.0}"),
        Unit::Ratio => format!("{value:.2}"),
    }
}
