//! Reasons for responses with 503 and 500.

use std::fmt;

use crate::serve_error::{ServeError, is_out_of_descriptors};

/// The reason for a response with 503 (Service Unavailable) or 500 (Internal Server Error), which has it as an extension.
///
/// ```
/// use courser_files::{Body, Unavailable};
///
/// # fn check(response: http::Response<Body>) {
/// if let Some(reason) = response.extensions().get::<Unavailable>() {
///     eprintln!("{}: {reason}", response.status());
/// }
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// No thread for blocking calls became free in time; see [`Builder::threads`](crate::Builder::threads).
    Busy,
    /// The process or the system is out of file descriptors.
    OutOfDescriptors,
    /// The system is out of memory.
    OutOfMemory,
    /// The file did not stop changing.
    Unsettled,
    /// The file could not be read.
    Failed,
}

impl Unavailable {
    /// Returns the reason of an error, unless the request is answered with another status.
    pub(crate) fn of(error: &ServeError) -> Option<Self> {
        Some(match error {
            ServeError::NotFound | ServeError::Forbidden => return None,
            ServeError::Busy => Self::Busy,
            ServeError::Exhausted(error) if is_out_of_descriptors(error) => Self::OutOfDescriptors,
            ServeError::Exhausted(_) => Self::OutOfMemory,
            ServeError::WouldBlock | ServeError::Unsettled(_) => Self::Unsettled,
            ServeError::Failed(_) => Self::Failed,
        })
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "no thread that may wait for a disk became free in time",
            Self::OutOfDescriptors => "the system is out of file descriptors",
            Self::OutOfMemory => "the system is out of memory",
            Self::Unsettled => "the file did not stop changing",
            Self::Failed => "the file could not be read",
        })
    }
}

/// Lets errors of bodies have a reason as their source.
impl std::error::Error for Unavailable {}
