//! The folder that is served, and the opening of files below it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use courser_base::RwLock;

use crate::age::Moment;
use crate::disk::{self, Access, Folder};
use crate::serve_error::{Blocking, ServeError};
use crate::version::Version;

/// The folder that is served.
///
/// Names are looked up from an open folder, so that renames and links made during a lookup cannot
/// reach anything outside of it. The path of the root itself is checked again from time to time. If
/// another folder has replaced the root, that folder is served from then on.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    access: Access,
    current: RwLock<Option<Arc<Current>>>,
    checked: AtomicU64,
}

/// The folder that is currently at the path of the root.
#[derive(Debug)]
struct Current {
    folder: Folder,
    version: Version,
    /// Distinguishes the folders that were at the path.
    generation: u64,
}

/// A file or folder that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) version: Version,
    pub(crate) kind: Kind,
    /// True if no symbolic link was on the path, so that its names are those of the folders.
    pub(crate) is_direct: bool,
    /// True if the file has other names on disk, through which it may change too.
    pub(crate) has_other_names: bool,
    /// The generation of the root that contains the file.
    pub(crate) generation: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Folder,
    /// A pipe, a socket or a device.
    Other,
}

impl Root {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// Fails if there is no folder at `path`.
    pub(crate) fn new(path: &Path, follow_symlinks: bool) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::Error::other("it is not a folder"));
        }
        let (folder, version) = disk::open_root(&path, Blocking::Allowed)?;
        let access = Access::probe(&folder, follow_symlinks);
        let current = Current {
            folder,
            version,
            generation: 0,
        };
        Ok(Self {
            path,
            access,
            current: RwLock::new(Some(Arc::new(current))),
            checked: AtomicU64::new(0),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the generation of the folder at the path. Checks the path first if the last check is
    /// too long ago.
    pub(crate) fn generation(&self, now: Moment, blocking: Blocking) -> Result<u64, ServeError> {
        Ok(self.current(now, blocking)?.generation)
    }

    fn current(&self, now: Moment, blocking: Blocking) -> Result<Arc<Current>, ServeError> {
        let lock = || self.current.read();
        if now.is_within(Moment::of(self.checked.load(Relaxed)), ROOT_CHECK_INTERVAL) {
            return lock().clone().ok_or(ServeError::NotFound);
        }
        let seen = match disk::open_root(&self.path, blocking) {
            Ok(seen) => Some(seen),
            Err(error) => match ServeError::from(error) {
                ServeError::NotFound => None,
                error => return Err(error),
            },
        };
        let before = lock().clone();
        self.checked.store(now.get(), Relaxed);
        if let (Some(before), Some((_, version))) = (&before, &seen)
            && before.version.is_same_file(version)
        {
            return Ok(before.clone());
        }
        let mut current = self.current.write();
        // A root that is gone is dropped, but its generation is not reused, so the files kept from
        // it stay outdated.
        let generation = GENERATIONS.fetch_add(1, Relaxed);
        *current = seen.map(|(folder, version)| {
            Arc::new(Current {
                folder,
                version,
                generation,
            })
        });
        current.clone().ok_or(ServeError::NotFound)
    }

    /// Opens `relative` and follows symbolic links as far as the policy allows.
    pub(crate) fn open(
        &self,
        relative: &Path,
        now: Moment,
        blocking: Blocking,
    ) -> Result<Opened, ServeError> {
        let current = self.current(now, blocking)?;
        let relative = match relative.as_os_str().is_empty() {
            true => Path::new("."),
            false => relative,
        };
        let (file, is_direct) =
            self.access
                .open(&current.folder, &self.path, relative, blocking)?;
        let metadata = file.metadata()?;
        Ok(Opened {
            version: Version::of(&metadata),
            kind: if metadata.is_file() {
                Kind::File
            } else if metadata.is_dir() {
                Kind::Folder
            } else {
                Kind::Other
            },
            is_direct,
            has_other_names: disk::has_other_names(&metadata),
            generation: current.generation,
            file,
        })
    }
}

/// The next generation in this process. The first root of each service has generation 0.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

/// Interval between checks of the root, because deployments may swap the folder at any time.
const ROOT_CHECK_INTERVAL: std::time::Duration = crate::age::UNWATCHED;
