//! Files that are written in one step.

use std::fs;
use std::path::Path;

use crate::sim::error::Error;

/// Writes a file and puts it in place at once: no reader sees half of it, and an interruption leaves the
/// old one.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let made = match path.parent() {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    };
    let new = path.with_extension("new");
    let written = made
        .and_then(|()| fs::write(&new, text))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| Error::write(path, error))
}
