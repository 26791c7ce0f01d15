//! Files with lists of blocked and allowed addresses, which are reloaded when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::server::ServerHandle;
use courser::{AddressFilter, AddressPrefix};
use courser_base::Mutex;
use tokio::task::JoinError;

/// The list of blocked addresses and the list of exceptions, each read from a file.
#[derive(Debug, Default)]
pub struct AddressLists {
    block: Option<List>,
    allow: Option<List>,
}

/// A list of addresses: blocked or allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListKind {
    /// The list of blocked addresses.
    Block,
    /// The list of exceptions.
    Allow,
}

/// The reason why a list cannot be used.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("cannot use the {kind} list {}: {reason}", .path.display())]
pub struct ListError {
    /// Whether this is the list of blocked addresses or that of exceptions.
    pub kind: ListKind,
    /// The path as given to [`AddressLists::load`].
    pub path: PathBuf,
    /// The I/O error, or the line and its mistake.
    pub reason: String,
}

/// Reports that a [`ListWatch`] has reloaded the lists or failed to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListEvent {
    /// The lists were reloaded and are in use.
    Replaced {
        /// Number of blocked prefixes.
        blocked: usize,
        /// Number of allowed prefixes.
        allowed: usize,
    },
    /// A list cannot be used. The server keeps the previous lists.
    Kept(ListError),
}

impl fmt::Display for ListKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Block => "block",
            Self::Allow => "allow",
        })
    }
}

/// A list and its file.
#[derive(Debug)]
struct List {
    path: PathBuf,
    /// Stamp of the version that was last read, valid or not.
    stamp: Option<Stamp>,
    /// Stamp at the last check.
    seen: Option<Stamp>,
    prefixes: Vec<AddressPrefix>,
}

/// Whether the files have changed since they were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileState {
    /// The files are unchanged.
    Same,
    /// A file has changed since the last check and may be partly written.
    Changing,
    /// A file has changed since it was read, but not since the last check.
    Changed,
}

/// Modification time and size, which distinguish two versions of a file.
type Stamp = (Option<SystemTime>, u64);

impl AddressLists {
    /// Reads each list whose path is given.
    ///
    /// # Errors
    /// A file cannot be read, is too large, or has an invalid line.
    pub fn load(block: Option<&Path>, allow: Option<&Path>) -> Result<Self, ListError> {
        let load = |kind, path: Option<&Path>| path.map(|path| List::load(kind, path)).transpose();
        Ok(Self {
            block: load(ListKind::Block, block)?,
            allow: load(ListKind::Allow, allow)?,
        })
    }

    /// Builds the filter of both lists.
    pub fn filter(&self) -> AddressFilter {
        AddressFilter::new(prefixes(self.block.as_ref()), prefixes(self.allow.as_ref()))
    }

    fn is_empty(&self) -> bool {
        self.lists().next().is_none()
    }

    /// Compares the files with the versions that were read. A missing file counts as changed.
    ///
    /// A change is reported only after two equal checks: many programs truncate a file before they write it, and
    /// an empty list would block no address.
    fn check(&mut self) -> FileState {
        let (mut is_changed, mut is_settled) = (false, true);
        for list in [&mut self.block, &mut self.allow].into_iter().flatten() {
            let now = stamp(&list.path).ok();
            is_settled &= std::mem::replace(&mut list.seen, now) == now;
            is_changed |= now != list.stamp;
        }
        match (is_changed, is_settled) {
            (false, _) => FileState::Same,
            (true, false) => FileState::Changing,
            (true, true) => FileState::Changed,
        }
    }

    /// Reads both files again, even if they are unchanged.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Self::load) and keeps both lists as they were.
    fn reload(&mut self) -> Result<(), ListError> {
        let path = |list: &Option<List>| list.as_ref().map(|list| list.path.clone());
        for list in [&mut self.block, &mut self.allow].into_iter().flatten() {
            // The stamps are updated first, so that each error is reported once.
            list.stamp = stamp(&list.path).ok();
            list.seen = list.stamp;
        }
        let (block, allow) = (path(&self.block), path(&self.allow));
        *self = Self::load(block.as_deref(), allow.as_deref())?;
        Ok(())
    }

    fn lists(&self) -> impl Iterator<Item = &List> {
        [&self.block, &self.allow].into_iter().flatten()
    }
}

impl List {
    fn load(kind: ListKind, path: &Path) -> Result<Self, ListError> {
        let wrong = |reason: &dyn fmt::Display| ListError {
            kind,
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        // The stamp is read before the content, so that a change in between is detected at the next check.
        let stamp = stamp(path).map_err(|error| wrong(&error))?;
        if stamp.1 > MAX_BYTES {
            let len = stamp.1;
            return Err(wrong(&format!(
                "the file has {len} bytes, {MAX_BYTES} are allowed"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        Ok(Self {
            path: path.to_owned(),
            stamp: Some(stamp),
            seen: Some(stamp),
            prefixes: AddressPrefix::parse_list(&text).map_err(|error| wrong(&error))?,
        })
    }
}

fn prefixes(list: Option<&List>) -> &[AddressPrefix] {
    list.map_or(&[], |list| &list.prefixes)
}

fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let metadata = path.metadata()?;
    Ok((metadata.modified().ok(), metadata.len()))
}

/// Reloads the address lists of a running server when their files change.
pub struct ListWatch {
    lists: Mutex<AddressLists>,
    handle: ServerHandle,
    on_event: Box<dyn Fn(&ListEvent) + Send + Sync>,
}

impl ListWatch {
    /// Creates a watch of these lists, which starts with [`run`](Self::run). `on_event` is called after each
    /// reload.
    pub fn new(
        lists: AddressLists,
        handle: ServerHandle,
        on_event: impl Fn(&ListEvent) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            lists: Mutex::new(lists),
            handle,
            on_event: Box::new(on_event),
        })
    }

    /// Reloads the lists when their files change. Runs until an error.
    ///
    /// # Errors
    /// A check of the files panicked.
    pub async fn run(self: Arc<Self>) -> Result<(), JoinError> {
        let mut pause = INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            let watch = self.clone();
            // Reading millions of lines takes seconds, which would block a worker thread.
            let check = tokio::task::spawn_blocking(move || watch.check());
            pause = match check.await? {
                FileState::Changing => SETTLING,
                FileState::Same | FileState::Changed => INTERVAL,
            };
        }
    }

    /// Reloads the lists, if any, on a thread that may block.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn reload(self: &Arc<Self>) {
        let watch = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut lists = watch.lists.lock();
            let event = (!lists.is_empty()).then(|| watch.replace(&mut lists));
            drop(lists);
            event.iter().for_each(&watch.on_event);
        });
    }

    /// Reloads the lists if they have changed.
    fn check(&self) -> FileState {
        let mut lists = self.lists.lock();
        let check = lists.check();
        let event = (check == FileState::Changed).then(|| self.replace(&mut lists));
        drop(lists);
        event.iter().for_each(&self.on_event);
        check
    }

    fn replace(&self, lists: &mut AddressLists) -> ListEvent {
        match lists.reload() {
            Ok(()) => {
                self.handle.set_address_filter(lists.filter());
                ListEvent::Replaced {
                    blocked: prefixes(lists.block.as_ref()).len(),
                    allowed: prefixes(lists.allow.as_ref()).len(),
                }
            }
            Err(error) => ListEvent::Kept(error),
        }
    }
}

impl fmt::Debug for ListWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("lists", &self.lists)
            .finish_non_exhaustive()
    }
}

/// Interval between two checks of the files, the same as for certificates.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a file must remain unchanged before it is read.
const SETTLING: Duration = Duration::from_millis(100);
/// Largest size of a file (limit K103): as many of the longest lines as a filter accepts, without comments.
const MAX_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests;
