//! Writes the qlog traces of a run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use courser_qlog::QlogDirectory;

use crate::error::Failure;

/// Creates the directory for the traces of one run. Each run has its own because traces are named after connection
/// IDs, which depend on the seed and can be the same in two scenarios.
pub(super) fn create(
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

/// Fails if the traces of a run could not be written.
pub(super) fn check(traces: &QlogDirectory) -> Result<(), Failure> {
    match traces.take_error() {
        None => Ok(()),
        Some(error) => Err(cannot_write(traces.path(), &error)),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::new(format!(
        "cannot write traces to {path}: {error}; choose another directory with --qlog"
    ))
}
