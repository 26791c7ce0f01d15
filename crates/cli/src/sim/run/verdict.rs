//! Which bounds hold.

use courser_sim::report::{RunReport, Unit};
use courser_sim::scenario::Scenario;

use super::Outcome;
use crate::error::Failure;
use crate::output;

/// A bound and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Judged {
    pub(super) measure: &'static str,
    pub(super) unit: Unit,
    /// In the words of the scenario: `goodput_share >=0.95`.
    pub(super) bound: String,
    pub(super) value: Option<f64>,
    pub(super) holds: bool,
    /// The seed of the run that is farthest from holding.
    pub(super) worst_seed: Option<u64>,
}

pub(super) fn judge(scenario: &Scenario, runs: &[RunReport]) -> Vec<Judged> {
    let rtt = scenario.base_rtt();
    let judge = |bound: &courser_sim::scenario::Bound| {
        let verdict = bound.check(runs, rtt);
        Judged {
            measure: bound.measure.name,
            unit: bound.measure.unit,
            bound: bound.to_string(),
            value: verdict.value,
            holds: verdict.holds,
            worst_seed: verdict.worst_seed,
        }
    };
    scenario.bounds.iter().map(judge).collect()
}

/// Success unless a bound does not hold.
pub(super) fn conclude(outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let all = outcomes.iter().flat_map(|outcome| &outcome.judged);
    let (total, failed) = all.fold((0, 0), |(total, failed), judged| {
        (total + 1, failed + u32::from(!judged.holds))
    });
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!(
            "{failed} of {total} bounds do not hold"
        ))),
    }
}

/// A value for humans.
pub(super) fn shown(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else {
        return "none".to_owned();
    };
    match unit {
        // More digits where it is close to all or nothing.
        Unit::Share if value > 0.0 && value < 0.001 => format!("{:.4} %", value * 100.0),
        Unit::Share => format!("{:.2} %", value * 100.0),
        Unit::Seconds => output::seconds(value),
        Unit::BitsPerSecond => output::bit_rate(value),
        Unit::Count => format!("{value:.0}"),
    }
}
