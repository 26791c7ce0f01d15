//! The traces of a run.

use std::path::Path;
use std::sync::Arc;

use courser_qlog::QlogDirectory;

use crate::sim::error::Error;

/// Makes the directory for the traces of one run. Each run has its own, since connection IDs follow from
/// the seed and those of two scenarios may be the same.
pub(crate) fn create(
    directory: &Path,
    scenario: &str,
    seed: u64,
) -> Result<Arc<QlogDirectory>, Error> {
    let path = directory.join(format!("{scenario}-{seed}"));
    let title = format!("{scenario}, seed {seed}");
    match QlogDirectory::create(&path) {
        Ok(traces) => Ok(Arc::new(traces.title(title).synchronous())),
        Err(error) => Err(Error::Traces { path, error }),
    }
}

/// Fails when the traces of a run could not be written.
pub(crate) fn check(traces: &QlogDirectory) -> Result<(), Error> {
    match traces.take_error() {
        None => Ok(()),
        Some(error) => Err(Error::Traces {
            path: traces.path().to_owned(),
            error,
        }),
    }
}
