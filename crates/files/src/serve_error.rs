//! Reasons why a file is not served, and the effort allowed for an attempt.

use std::io;
use std::time::Duration;

/// A reason why a file cannot be opened or read.
#[derive(Debug)]
pub(crate) enum ServeError {
    /// The request would wait for a disk or compute for a long time. Try again on a thread that may
    /// block.
    WouldBlock,
    /// The file is being written. Try again after this time.
    Unsettled(Duration),
    /// There is no file or folder that may be served.
    NotFound,
    /// The operating system denies access.
    Forbidden,
    /// No thread that may block became free in time.
    Busy,
    /// The system has run out of file descriptors or of memory.
    Exhausted(io::Error),
    /// Another error of the file system, or a file that changed while it was sent.
    Failed(io::Error),
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{
            InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, OutOfMemory,
            PermissionDenied, WouldBlock,
        };
        match error.kind() {
            WouldBlock => Self::WouldBlock,
            NotFound | NotADirectory | InvalidFilename | InvalidInput | IsADirectory => {
                Self::NotFound
            }
            PermissionDenied => Self::Forbidden,
            OutOfMemory => Self::Exhausted(error),
            _ if is_loop(&error) || is_no_file(&error) => Self::NotFound,
            _ if is_out_of_descriptors(&error) => Self::Exhausted(error),
            _ => Self::Failed(error),
        }
    }
}

/// Returns true for ELOOP: too many symbolic links, or a link where none is allowed.
fn is_loop(error: &io::Error) -> bool {
    let number = if cfg!(target_os = "linux") { 40 } else { 62 };
    cfg!(unix) && error.raw_os_error() == Some(number)
}

/// Returns true for ENXIO and ENODEV, with which the opening of sockets and of devices without a driver
/// fails.
fn is_no_file(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(6 | 19))
}

/// Returns true for EMFILE and ENFILE, which have no [`io::ErrorKind`].
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
        || cfg!(windows) && error.raw_os_error() == Some(4)
}

/// Whether an operation may block its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocking {
    /// Other requests use this thread, so only data in memory may be read.
    Forbidden,
    /// The thread is reserved for blocking calls.
    Allowed,
}

/// The effort allowed for one attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Effort {
    pub(crate) blocking: Blocking,
    /// Serves files that are still being written, because the request has already waited for them.
    pub(crate) accepts_unsettled: bool,
}

impl Effort {
    pub(crate) const NONBLOCKING: Self = Self {
        blocking: Blocking::Forbidden,
        accepts_unsettled: false,
    };
}
