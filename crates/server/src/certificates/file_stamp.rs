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
    /// The time at which the owner or the permissions have changed last: a file may have become readable.
    status_changed: StatusTime,
}

/// Seconds and nanoseconds of a system, or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct StatusTime {
    seconds: i64,
    nanoseconds: i64,
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
            status_changed: status_changed(&metadata),
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

#[cfg(unix)]
fn status_changed(metadata: &std::fs::Metadata) -> StatusTime {
    use std::os::unix::fs::MetadataExt as _;
    StatusTime {
        seconds: metadata.ctime(),
        nanoseconds: metadata.ctime_nsec(),
    }
}

#[cfg(not(unix))]
fn status_changed(_: &std::fs::Metadata) -> StatusTime {
    StatusTime::default()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A key that could not be read is tried again after `chmod` or `chown`.
    #[test]
    fn change_of_permissions_is_a_change() {
        let path = std::env::temp_dir().join(format!("courser-stamp-{}", std::process::id()));
        std::fs::write(&path, "key").expect("a file");
        let before = FileStamp::at(&path);
        assert_eq!(FileStamp::at(&path), before);
        // The time of the system has a coarse resolution.
        let after = loop {
            std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("our file");
            let after = FileStamp::at(&path);
            if after != before {
                break after;
            }
        };
        assert_eq!(after.modified, before.modified);
        std::fs::remove_file(&path).expect("our file");
    }
}
