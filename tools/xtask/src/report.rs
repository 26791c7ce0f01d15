//! The results of commands.

use std::io::Write;

/// Problems that a command found, one line each. A command without problems succeeds.
pub(crate) type Problems = Vec<String>;

/// Prints text to a reader that may close the pipe early, such as `head`.
pub(crate) fn print(text: &str) {
    // Without a reader there is no place to report the error.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
