//! File access, by operating system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
mod resolve;

use std::fs::Metadata;
use std::time::SystemTime;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Access, Folder, Reading, names, open_root, state};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::portable::{Access, Folder, Reading, names, open_root, state};

/// The state of a name in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) kind: StateKind,
    pub(crate) len: u64,
    pub(crate) modified: Option<SystemTime>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StateKind {
    File,
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// Returns true if the file has several names. The kernel may then report a change for another folder.
#[cfg(unix)]
pub(crate) fn has_other_names(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
pub(crate) fn has_other_names(_: &Metadata) -> bool {
    true
}
