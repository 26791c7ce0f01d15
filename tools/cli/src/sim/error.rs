//! Errors of files and runs.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why scenarios are not run, or their results are not written.
#[derive(thiserror::Error, Debug)]
pub(crate) enum Error {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A page of a report cannot be written.
    #[error("cannot write the report to {}: {error}", .path.display())]
    Report {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The traces of a run cannot be written.
    #[error("cannot write traces to {}: {error}", .path.display())]
    Traces {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A file is not valid.
    #[error("{}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// Scenarios, bounds or rows do not fit together.
    #[error("{0}")]
    Mismatch(String),
    /// A simulated world stopped before its end, which is a bug.
    #[error("{scenario}, seed {seed}: {stall}: this is a bug")]
    Stall {
        /// The file of the scenario.
        path: PathBuf,
        /// The name of the scenario.
        scenario: String,
        /// The seed of the run.
        seed: u64,
        /// The report of the stall.
        stall: String,
    },
    /// Results cannot be written as JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, error }
    }

    pub(crate) fn write(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        Self::Write { path, error }
    }

    /// Reports something wrong in a file. The reason becomes one line: that of a parser has several.
    pub(crate) fn content(path: &Path, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Content {
            path: path.to_owned(),
            reason: reason.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }
}
