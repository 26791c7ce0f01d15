//! The directory of a machine.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory for temporary files that is removed with its contents.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

/// The number of directories that this process has tried to create.
static CREATED: AtomicU64 = AtomicU64::new(0);

impl Directory {
    /// Creates a directory that no other process can read. The length of its path is the same in each run, so
    /// that the size of a message that contains it is too.
    pub(super) fn create() -> io::Result<Self> {
        let (base, process) = (std::env::temp_dir(), std::process::id());
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..MAX_ATTEMPTS {
            let number = CREATED.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("courser-sim-{process:010}-{number:08}"));
            match private().create(&path) {
                Ok(()) => return Ok(Self(path)),
                // A process with this number has ended without removing its directories.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left for the system, which cleans such directories.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
fn private() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private() -> DirBuilder {
    DirBuilder::new()
}

/// The number of names to try (limit K511).
const MAX_ATTEMPTS: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_distinct_and_removed() -> io::Result<()> {
        let (first, second) = (Directory::create()?, Directory::create()?);
        assert_ne!(first.path(), second.path());
        let len = |directory: &Directory| directory.path().as_os_str().len();
        assert_eq!(len(&first), len(&second));
        let path = first.path().to_owned();
        std::fs::write(path.join("file"), "content")?;
        drop(first);
        assert!(!path.exists());
        assert!(second.path().exists());
        Ok(())
    }
}
