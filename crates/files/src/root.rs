//! The folder that is served, and opening what is below it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use crate::age::Moment;
use crate::disk::{self, Access, Folder};
use crate::trouble::{Patience, Trouble};
use crate::version::Version;

/// The folder that is served.
///
/// Names are looked up from an open folder, so that nothing outside of it can be reached by renaming
/// or linking while a name is looked up. The path of the root itself is looked at again from time
/// to time: a folder that was put in its place is served from then on.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    access: Access,
    current: RwLock<Option<Arc<Current>>>,
    checked: AtomicU64,
}

/// The folder at the path of the root at the moment.
#[derive(Debug)]
struct Current {
    folder: Folder,
    version: Version,
    /// Counts the folders that were at the path.
    generation: u64,
}

/// A file or folder that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) version: Version,
    pub(crate) kind: Kind,
    /// No symbolic link was on the way: the names of the path are those of the folders.
    pub(crate) is_direct: bool,
    /// Other names on disk may change it too.
    pub(crate) has_other_names: bool,
    /// The generation of the root in which it is.
    pub(crate) generation: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Folder,
    /// A pipe, a socket, a device.
    Other,
}

impl Root {
    /// # Errors
    /// When there is no folder at `path`.
    pub(crate) fn new(path: &Path, follow_symlinks: bool) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::Error::other("it is not a folder"));
        }
        let (folder, version) = disk::open_root(&path, Patience::Any)?;
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

    /// Returns the number of the folder that is at the path, after a look at the path if the last one
    /// is too long ago.
    pub(crate) fn generation(&self, now: Moment, patience: Patience) -> Result<u64, Trouble> {
        Ok(self.current(now, patience)?.generation)
    }

    fn current(&self, now: Moment, patience: Patience) -> Result<Arc<Current>, Trouble> {
        let lock = || self.current.read().unwrap_or_else(PoisonError::into_inner);
        if now.is_within(Moment::of(self.checked.load(Relaxed)), LOOK_AT_ROOT_EVERY) {
            return lock().clone().ok_or(Trouble::NotFound);
        }
        let seen = match disk::open_root(&self.path, patience) {
            Ok(seen) => Some(seen),
            Err(error) => match Trouble::from(error) {
                Trouble::NotFound => None,
                trouble => return Err(trouble),
            },
        };
        let before = lock().clone();
        self.checked.store(now.get(), Relaxed);
        if let (Some(before), Some((_, version))) = (&before, &seen)
            && before.version.is_same_file(version)
        {
            return Ok(before.clone());
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // A root that is gone is forgotten, but not its number: what was kept of it stays out of date.
        let generation = GENERATIONS.fetch_add(1, Relaxed);
        *current = seen.map(|(folder, version)| {
            Arc::new(Current {
                folder,
                version,
                generation,
            })
        });
        current.clone().ok_or(Trouble::NotFound)
    }

    /// Opens what is at `relative`, following symbolic links as far as the policy allows.
    pub(crate) fn open(
        &self,
        relative: &Path,
        now: Moment,
        patience: Patience,
    ) -> Result<Opened, Trouble> {
        let current = self.current(now, patience)?;
        let relative = match relative.as_os_str().is_empty() {
            true => Path::new("."),
            false => relative,
        };
        let (file, is_direct) =
            self.access
                .open(&current.folder, &self.path, relative, patience)?;
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

/// Roots of all services of the process. The first of each service is 0.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

/// Deployments that swap folders do so behind our back.
const LOOK_AT_ROOT_EVERY: std::time::Duration = crate::age::UNWATCHED;
