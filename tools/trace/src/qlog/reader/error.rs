//! Errors of reading a trace.

use std::fmt;
use std::io;

/// An error in a file or in one of its lines.
#[derive(Debug)]
pub struct ReadError {
    /// The line, counted from 1. In a plain file, the number of the event.
    pub line: u64,
    /// The cause, and the remedy if there is one.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

impl ReadError {
    pub(super) fn new(line: u64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { line, message }
    }

    pub(super) fn io(line: u64, error: &io::Error) -> Self {
        Self::new(line, format!("cannot be read: {error}"))
    }
}

/// The message for files that are something else.
pub(super) const NOT_QLOG: &str = "not a qlog trace: neither JSON-SEQ nor JSON with a trace in it";
