//! File stamps, which detect changes of files.

use std::path::Path;
use std::time::SystemTime;

/// The metadata that changes when a file is modified or replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FileStamp {
    modified: Option<SystemTime>,
    len: u64,
    /// The inode, which detects a file that was replaced by `mv` with the same time.
    inode: u64,
}

impl FileStamp {
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
