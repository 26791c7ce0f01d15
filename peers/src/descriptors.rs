//! The limit of open file descriptors.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::Failure;

/// Lets this process and its children have many file descriptors: as many as [`DESCRIPTORS`] where it
/// may raise its limit, else as many as the limit allows. Returns how many these are.
///
/// # Errors
/// When the kernel refuses a limit that it allowed.
pub fn raise() -> Result<u64, Failure> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if most < DESCRIPTORS && setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS).is_ok() {
        return Ok(DESCRIPTORS);
    }
    let allowed = most.min(DESCRIPTORS);
    setrlimit(Resource::RLIMIT_NOFILE, allowed, most)?;
    Ok(allowed)
}

/// File descriptors for 100 000 open files and many connections.
const DESCRIPTORS: u64 = 250_000;
