//! Which bounds hold.

use courser_sim::report::{RunReport, Unit};
use courser_sim::scenario::{Bound, Scenario, Verdict};

use super::Outcome;
use crate::error::Failure;
use crate::output;

/// A bound of a scenario, and what the runs showed.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Judged {
    pub(in crate::sim) bound: Bound,
    pub(in crate::sim) verdict: Verdict,
}

pub(in crate::sim) fn judge(scenario: &Scenario, runs: &[RunReport]) -> Vec<Judged> {
    let rtt = scenario.base_rtt();
    let judge = |bound: &Bound| Judged {
        bound: bound.clone(),
        verdict: bound.check(runs, rtt),
    };
    scenario.bounds.iter().map(judge).collect()
}

/// Success unless a bound does not hold.
pub(super) fn conclude(outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let all = outcomes.iter().flat_map(|outcome| &outcome.judged);
    let (total, failed) = all.fold((0, 0), |(total, failed), judged| {
        (total + 1, failed + u32::from(!judged.verdict.holds))
    });
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{failed} of {total} bounds violated"))),
    }
}

/// A value for humans.
pub(in crate::sim) fn shown(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else {
        return "none".to_owned();
    };
    match unit {
        // More digits where it is close to all or nothing.
        Unit::Share if value > 0.0 && value < 0.001 => format!("{:.4} %", value * 100.0),
        Unit::Share => format!("{:.2} %", value * 100.0),
        Unit::Seconds => output::seconds(value),
        Unit::BitsPerSecond => output::bits(value),
        Unit::Count => format!("{value:.0}"),
        Unit::Ratio => format!("{value:.2}"),
    }
}
