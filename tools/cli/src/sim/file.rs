//! Reads and writes text files, with errors that name the file.

use std::fs;
use std::path::Path;

use crate::error::Failure;

/// Reads a UTF-8 file.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| cannot_read(path, &error))
}

/// Returns the error for a file or directory that cannot be read.
pub(super) fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read {}: {error}", path.display()))
}

/// Returns the error for a file with unusable content.
pub(super) fn unusable(path: &Path, reason: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {reason}", path.display()))
}

/// Replaces a file atomically: readers see the old or the new content, also after an interruption.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let created = match path.parent() {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    };
    let new = path.with_extension("new");
    let written = created
        .and_then(|()| fs::write(&new, text))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}
