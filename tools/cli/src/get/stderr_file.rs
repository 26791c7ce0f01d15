//! `--stderr`: another destination for messages.

use std::path::Path;

use super::exit::{FAILED_INIT, Failed, WRITE_ERROR};

/// Writes messages to a file, or to standard output for `-`.
#[cfg(unix)]
pub(super) fn redirect(path: &Path) -> Result<(), Failed> {
    use std::os::fd::AsFd as _;
    let failed = |error: &dyn std::fmt::Display| {
        let text = format!("--stderr {}: {error}", path.display());
        Failed::new(WRITE_ERROR, text)
    };
    let redirected = match path.to_str() {
        Some("-") => rustix::stdio::dup2_stderr(std::io::stdout().as_fd()),
        _ => {
            let file = std::fs::File::create(path).map_err(|error| failed(&error))?;
            rustix::stdio::dup2_stderr(file.as_fd())
        }
    };
    redirected.map_err(|error| Failed::new(FAILED_INIT, failed(&error).text))
}

#[cfg(not(unix))]
pub(super) fn redirect(_: &Path) -> Result<(), Failed> {
    let text = "--stderr is not supported on this system: redirect standard error in the shell";
    Err(Failed::new(FAILED_INIT, text))
}
