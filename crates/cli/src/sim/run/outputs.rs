//! What `--report` and `--qlog` write.

use std::path::Path;
use std::sync::Arc;

use courser_qlog::QlogDirectory;
use courser_sim::report::RunReport;

use super::{Outcome, verdict};
use crate::error::Failure;
use crate::sim::report;

/// Writes the report of all runs into a directory.
pub(super) fn report(
    directory: &Path,
    runs: &[RunReport],
    outcomes: &[Outcome<'_>],
) -> Result<(), Failure> {
    let mut verdicts = Vec::new();
    for outcome in outcomes {
        verdicts.extend(outcome.judged.iter().map(|judged| report::Verdict {
            scenario: outcome.source.scenario.name.clone(),
            bound: judged.bound.to_string(),
            seen: verdict::shown(judged.verdict.value, judged.bound.measure.unit),
            is_kept: judged.verdict.holds,
        }));
    }
    report::write(directory, runs, &verdicts)
}

/// Where the traces of one run go: a directory of its own, since connection IDs follow from the
/// seed and those of two scenarios may be the same.
pub(super) fn traces(
    directory: &Path,
    scenario: &str,
    seed: u64,
) -> Result<Arc<QlogDirectory>, Failure> {
    let path = directory.join(format!("{scenario}-{seed}"));
    let title = format!("{scenario}, seed {seed}");
    match QlogDirectory::create(&path) {
        Ok(traces) => Ok(Arc::new(traces.title(title).synchronous())),
        Err(error) => Err(cannot_write(&path, &error)),
    }
}

/// What went wrong with the traces of a run, if anything did.
pub(super) fn check(traces: &QlogDirectory) -> Result<(), Failure> {
    match traces.take_error() {
        None => Ok(()),
        Some(error) => Err(cannot_write(traces.path(), &error)),
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    let advice = "choose another place with --qlog";
    Failure::new(format!("cannot write traces to {path}: {error}; {advice}"))
}
