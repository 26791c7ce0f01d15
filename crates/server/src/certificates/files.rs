//! PEM files that may be replaced.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use courser_quic::{ConfigError, Identity};

/// A chain and its key.
#[derive(Debug)]
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
    /// The state of both files when they were last read, successfully or not.
    seen: [Look; 2],
}

/// The properties that change when a file does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Look {
    modified: Option<SystemTime>,
    len: u64,
    /// The inode, which reveals a file replaced by `mv` with the same time.
    inode: u64,
}

impl Look {
    fn at(path: &Path) -> Self {
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

impl Files {
    pub(super) fn open(chain: &Path, key: &Path) -> Result<(Self, Identity), ConfigError> {
        let mut files = Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            seen: [Look::default(); 2],
        };
        let identity = files.load()?;
        Ok((files, identity))
    }

    pub(super) fn have_changed(&self) -> bool {
        self.look() != self.seen
    }

    /// Reads both files, changed or not.
    pub(super) fn read(&mut self) -> Result<Option<Identity>, ConfigError> {
        self.load().map(Some)
    }

    fn load(&mut self) -> Result<Identity, ConfigError> {
        // The check comes first, so that changes during the read cause another read.
        self.seen = self.look();
        Identity::from_pem_files(&self.chain, &self.key)
    }

    fn look(&self) -> [Look; 2] {
        [Look::at(&self.chain), Look::at(&self.key)]
    }
}
