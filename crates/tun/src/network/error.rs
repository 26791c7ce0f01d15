//! Refusals of the kernel.

use std::io;

/// A refusal of the kernel.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct NetworkError {
    action: String,
    source: io::Error,
}

impl NetworkError {
    /// Returns the error of the system.
    pub const fn io(&self) -> &io::Error {
        &self.source
    }

    /// Returns true if the process lacks CAP_NET_ADMIN.
    pub fn is_permission(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// Returns true if what was to be added is there.
    pub fn is_present(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

pub(super) fn failed(action: impl Into<String>, source: io::Error) -> NetworkError {
    NetworkError {
        action: action.into(),
        source,
    }
}
