//! Lists of blocked and allowed addresses in files, which are read again when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::server::ServerHandle;
use courser::{AddressFilter, AddressPrefix};
use courser_base::Mutex;
use tokio::task::JoinError;

/// A list of blocked addresses and a list of exceptions from it, each in a file.
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
    /// The kind of the list.
    pub kind: ListKind,
    /// Its file.
    pub path: PathBuf,
    /// The error.
    pub reason: String,
}

/// An event that concerns the lists of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListEvent {
    /// The lists were read again, and are in use.
    Replaced {
        /// Prefixes that are blocked.
        blocked: usize,
        /// Prefixes that are allowed.
        allowed: usize,
    },
    /// A list cannot be used; the server keeps the old ones.
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

/// A list and the file that it is in.
#[derive(Debug)]
struct List {
    path: PathBuf,
    /// Identifies the last version that was read, valid or not.
    stamp: Option<Stamp>,
    /// Identifies the version at the last look.
    seen: Option<Stamp>,
    prefixes: Vec<AddressPrefix>,
}

/// The state of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    /// They are as they were read.
    Same,
    /// They have changed since the last look, and may be half written.
    Changing,
    /// They have changed since they were read, and are complete.
    Changed,
}

/// Differs between two versions of a file.
type Stamp = (Option<SystemTime>, u64);

impl AddressLists {
    /// Reads both lists, as far as they are given.
    ///
    /// # Errors
    /// When a file cannot be read, or a line is wrong.
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

    /// Looks at the files. One that is gone has changed.
    ///
    /// Many programs empty a file before they write it, and an empty list would block no address.
    fn look(&mut self) -> Look {
        let (mut is_changed, mut is_settled) = (false, true);
        for list in [&mut self.block, &mut self.allow].into_iter().flatten() {
            let now = stamp(&list.path).ok();
            is_settled &= std::mem::replace(&mut list.seen, now) == now;
            is_changed |= now != list.stamp;
        }
        match (is_changed, is_settled) {
            (false, _) => Look::Same,
            (true, false) => Look::Changing,
            (true, true) => Look::Changed,
        }
    }

    /// Reads both files again, whether or not they have changed.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load). Both lists then stay as they were.
    fn reload(&mut self) -> Result<(), ListError> {
        let path = |list: &Option<List>| list.as_ref().map(|list| list.path.clone());
        for list in [&mut self.block, &mut self.allow].into_iter().flatten() {
            // Each error is reported once.
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
        // Read before the content: a change between the two is noticed at the next look.
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

/// The lists of a running server, which are read again when their files change.
pub struct ListWatch {
    lists: Mutex<AddressLists>,
    handle: ServerHandle,
    on_event: Box<dyn Fn(&ListEvent) + Send + Sync>,
}

impl ListWatch {
    /// Watches these lists while it [runs](Self::run). `on_event` is called when they were read again.
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

    /// Reads the lists again when their files change. Never completes without an error.
    ///
    /// # Errors
    /// If a look at them panics.
    pub async fn run(self: Arc<Self>) -> Result<(), JoinError> {
        let mut pause = INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            let watch = self.clone();
            // A list of millions of lines takes seconds, in which a worker thread could serve clients.
            let look = tokio::task::spawn_blocking(move || watch.look());
            pause = match look.await? {
                Look::Changing => SETTLING,
                Look::Same | Look::Changed => INTERVAL,
            };
        }
    }

    /// Reads the lists again, if there are any, on a thread that may wait.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn reload(self: &Arc<Self>) {
        let watch = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut lists = watch.lists.lock();
            let event = (!lists.is_empty()).then(|| watch.replace(&mut lists));
            drop(lists);
            event.iter().for_each(&watch.on_event);
        });
    }

    /// Reads the lists again if they have changed.
    fn look(&self) -> Look {
        let mut lists = self.lists.lock();
        let look = lists.look();
        let event = (look == Look::Changed).then(|| self.replace(&mut lists));
        drop(lists);
        event.iter().for_each(&self.on_event);
        look
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

/// Time between two looks at the files, the same as for certificates.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a file must not change before it is read.
const SETTLING: Duration = Duration::from_millis(100);
/// Largest size of a file: as many of the longest lines, without comments (limit K103).
const MAX_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests;
