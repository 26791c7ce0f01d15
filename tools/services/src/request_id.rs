//! IDs of requests, which connect the access log with the logs of an upstream server.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::{HeaderName, HeaderValue};

/// The ID of a request: 32 hexadecimal digits, of which the first half is that of the process.
///
/// It is unique but not secret: the second half counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestId {
    process: u64,
    number: u64,
}

impl RequestId {
    /// Returns the ID of the next request.
    pub(crate) fn next() -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            // Keys of a hasher are random.
            process: *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id())),
            number: NUMBER.fetch_add(1, Relaxed),
        }
    }

    /// Returns the ID as the value of a field.
    pub(crate) fn value(self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.to_string()).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.process, self.number)
    }
}

/// The field in which the ID is forwarded.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
