//! File access, by operating system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
mod resolve;

use std::fs::Metadata;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Access, Folder, Reading, open_root};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::portable::{Access, Folder, Reading, open_root};

/// Returns true if the file has several names. The kernel may then report a change for another folder.
#[cfg(unix)]
pub(crate) fn has_other_names(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
pub(crate) fn has_other_names(_: &Metadata) -> bool {
    true
}
