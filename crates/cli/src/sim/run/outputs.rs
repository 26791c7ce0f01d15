//! What `--report` and `--qlog` write.

use std::path::Path;

use courser_sim::report::RunReport;

use super::Outcome;
use super::verdict;
use crate::error::Failure;
use crate::sim::report;

/// Writes the report of all runs into a directory.
pub(super) fn report(
    directory: &Path,
    runs: &[RunReport],
    outcomes: &[Outcome<'_>],
) -> Result<(), Failure> {
    let verdicts: Vec<report::Verdict> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.judged.iter().map(|judged| report::Verdict {
                scenario: outcome.source.scenario.name.clone(),
                bound: judged.bound.clone(),
                seen: verdict::shown(judged.value, judged.unit),
                is_kept: judged.holds,
            })
        })
        .collect();
    report::write(directory, runs, &verdicts)
}

/// Traces cannot be written yet.
pub(super) fn no_qlog(directory: &Path) -> Failure {
    Failure::new(format!(
        "no traces are written to {}: this build of courser has no writer of qlog; leave --qlog \
         out",
        directory.display()
    ))
}
