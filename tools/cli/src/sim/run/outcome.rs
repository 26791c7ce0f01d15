//! The runs of scenarios, judged.

use std::path::Path;

use courser_sim::report::RunReport;

use super::sources::Source;
use crate::sim::error::Error;
use crate::sim::pages;
use crate::sim::verdict::{Judged, judge, shown};

/// The runs of one scenario, and which of its bounds hold.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    /// The scenario.
    pub(super) source: &'a Source,
    /// Its runs, in the order of their seeds.
    pub(super) runs: &'a [RunReport],
    /// Its bounds.
    pub(super) judged: Vec<Judged>,
}

/// Judges the runs of scenarios, which are in the order of [`run_all`](crate::sim::jobs::run_all).
pub(super) fn outcomes<'a>(sources: &'a [Source], runs: &'a [RunReport]) -> Vec<Outcome<'a>> {
    let each = (runs.len() / sources.len().max(1)).max(1);
    let pairs = sources.iter().zip(runs.chunks(each));
    let outcomes = pairs.map(|(source, runs)| Outcome {
        source,
        runs,
        judged: judge(&source.scenario, runs),
    });
    outcomes.collect()
}

/// Writes an HTML report of all runs into a directory.
///
/// # Errors
/// When the directory or a file in it cannot be written.
pub(super) fn write_report(
    directory: &Path,
    runs: &[RunReport],
    outcomes: &[Outcome<'_>],
) -> Result<(), Error> {
    let mut verdicts = Vec::new();
    for outcome in outcomes {
        verdicts.extend(outcome.judged.iter().map(|judged| pages::Verdict {
            scenario: outcome.source.scenario.name.clone(),
            bound: judged.bound.to_string(),
            seen: shown(judged.verdict.value, judged.bound.measure.unit),
            is_kept: judged.verdict.holds,
        }));
    }
    pages::write(directory, runs, &verdicts)
}
