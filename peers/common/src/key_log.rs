//! The key log of stacks that do not write one themselves.

use std::env;
use std::fs::{File, OpenOptions};
use std::io;

/// Opens the file in `SSLKEYLOGFILE` to append to it. Returns `None` if the variable is not set.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub fn open() -> io::Result<Option<File>> {
    let Some(path) = env::var_os("SSLKEYLOGFILE") else {
        return Ok(None);
    };
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(Some(file))
}
