//! Compares the runs of scenarios with their bounds.

use courser_sim::report::RunReport;

use super::sources::Source;
use crate::sim::verdict::{Judged, judge};

/// The runs of one scenario, and the verdicts on its bounds.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    /// The scenario, and the file that it is from.
    pub(crate) source: &'a Source,
    /// The runs of the scenario, in the order of their seeds.
    pub(crate) runs: &'a [RunReport],
    /// The bounds of the scenario, each with its verdict over all runs.
    pub(crate) judged: Vec<Judged>,
}

/// Judges the runs of scenarios, which are in the order of [`run_all`](super::runs::run_all).
pub(crate) fn outcomes<'a>(sources: &'a [Source], runs: &'a [RunReport]) -> Vec<Outcome<'a>> {
    let each = (runs.len() / sources.len().max(1)).max(1);
    let pairs = sources.iter().zip(runs.chunks(each));
    let outcomes = pairs.map(|(source, runs)| Outcome {
        source,
        runs,
        judged: judge(&source.scenario, runs),
    });
    outcomes.collect()
}
