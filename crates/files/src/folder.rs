//! Folders without an index, for the handlers that list them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::age::Moment;
use crate::disk::{self, StateKind};
use crate::find::FoundFolder;
use crate::path;
use crate::root::{Kind, Root};
use crate::serve_error::Blocking;
use crate::threads::ThreadShare;
use crate::unavailable::Unavailable;

/// A folder without an `index.html` that was requested.
///
/// The folder is open: it stays the one that was found below the root, even if its path leads elsewhere
/// by now.
pub struct Folder {
    root: Arc<Root>,
    found: FoundFolder,
    dotfiles: bool,
    /// The time of the request.
    now: Moment,
    /// The client's share of the threads that may wait.
    share: ThreadShare,
}

/// The files and folders in a [`Folder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entries {
    /// The entries, in no particular order.
    pub listed: Vec<Entry>,
    /// Number of names that were not looked at because of the limit.
    pub omitted: usize,
}

/// A file or folder in a [`Folder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The name, without a path.
    pub name: OsString,
    /// True for a folder.
    pub is_folder: bool,
    /// Size in bytes. For folders, this has no meaning.
    pub len: u64,
    /// Time of the last modification, if the system knows it.
    pub modified: Option<SystemTime>,
}

impl Entry {
    /// Returns the percent-encoded name, which is relative to the URL of the folder.
    pub fn url(&self) -> String {
        path::name_to_url(&self.name)
    }
}

impl Folder {
    pub(crate) const fn new(
        root: Arc<Root>,
        found: FoundFolder,
        dotfiles: bool,
        now: Moment,
        share: ThreadShare,
    ) -> Self {
        Self {
            root,
            found,
            dotfiles,
            now,
            share,
        }
    }

    /// Runs `read` on a thread that may wait for the disk, such as `|folder| folder.entries(1000)`. The thread counts
    /// towards the client's share of the [threads](crate::Builder::threads).
    ///
    /// # Errors
    /// [`Unavailable::Busy`] if no thread became free in time, and [`Unavailable::Failed`] if `read` panicked.
    pub async fn read<R: Send + 'static>(
        self,
        read: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Result<R, Unavailable> {
        let share = self.share.clone();
        let result = share.run(move || read(&self)).await;
        result.map_err(|error| Unavailable::of(&error).unwrap_or(Unavailable::Failed))
    }

    /// Returns the path of the folder on disk.
    pub fn path(&self) -> PathBuf {
        self.root.path().join(&self.found.relative)
    }

    /// Returns the path of the folder below the root. It is empty for the root.
    pub fn relative(&self) -> &Path {
        &self.found.relative
    }

    /// Returns what is in the folder and would be served: files and folders, and links to them that the
    /// settings allow. Names that begin with a dot are included if
    /// [`dotfiles`](crate::Builder::dotfiles) allows them. Looks at no more than `limit` of them.
    ///
    /// Waits for the disk, so call it on a thread that may block.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn entries(&self, limit: usize) -> io::Result<Entries> {
        let mut entries = Entries {
            listed: Vec::new(),
            omitted: 0,
        };
        let mut seen = 0;
        for name in disk::names(&self.found.file, &self.path())? {
            let name = name?;
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if is_hidden && !self.dotfiles {
                continue;
            }
            if seen == limit {
                entries.omitted += 1;
                continue;
            }
            seen += 1;
            entries.listed.extend(self.entry(&name));
        }
        Ok(entries)
    }

    /// Returns the entry of a name, unless a request for it would fail.
    fn entry(&self, name: &OsStr) -> Option<Entry> {
        let state = disk::state(&self.found.file, &self.path(), name).ok()?;
        let (is_folder, len, modified) = match state.kind {
            StateKind::File => (false, state.len, state.modified),
            StateKind::Folder => (true, state.len, state.modified),
            StateKind::Link => return self.target(name),
            StateKind::Other => return None,
        };
        Some(Entry {
            name: name.to_owned(),
            is_folder,
            len,
            modified,
        })
    }

    /// Returns the entry of a symbolic link, which is that of its target.
    fn target(&self, name: &OsStr) -> Option<Entry> {
        let path = self.found.relative.join(name);
        let opened = self.root.open(&path, self.now, Blocking::Allowed).ok()?;
        Some(Entry {
            name: name.to_owned(),
            is_folder: match opened.kind {
                Kind::File => false,
                Kind::Folder => true,
                Kind::Other => return None,
            },
            len: opened.version.len(),
            modified: opened.version.modified(),
        })
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
