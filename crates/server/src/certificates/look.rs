//! The state of a file, which shows whether it has changed.

use std::path::Path;
use std::time::SystemTime;

/// The properties that change when a file does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Look {
    modified: Option<SystemTime>,
    len: u64,
    /// The inode, which reveals a file replaced by `mv` with the same time.
    inode: u64,
}

impl Look {
    pub(super) fn at(path: &Path) -> Self {
        let Ok(metadata) = std::fs::metadata(path) else {
            return Self::default();
        };
        Self {
            modified: metadata.modified().ok(),
            len: metadata.len(),
            inode: inode(&metadata),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}
