//! The lists of `--block` and `--allow`, which are read again when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use courser::server::ServerHandle;
use courser::{AddressFilter, AddressPrefix};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::error::Failure;
use crate::output;

/// Both lists.
#[derive(Debug, Default)]
pub(super) struct AddressLists {
    block: Option<List>,
    allow: Option<List>,
}

/// A list and the file that it is in.
#[derive(Debug)]
struct List {
    path: PathBuf,
    /// Identifies the last version that was read, valid or not.
    stamp: Option<Stamp>,
    prefixes: Vec<AddressPrefix>,
}

/// Differs between two versions of a file.
type Stamp = (Option<SystemTime>, u64);

impl AddressLists {
    /// # Errors
    /// When a file cannot be read, or a line is wrong.
    pub(super) fn load(block: Option<&Path>, allow: Option<&Path>) -> Result<Self, Failure> {
        let load = |flag, path: Option<&Path>| path.map(|path| List::load(flag, path)).transpose();
        Ok(Self {
            block: load("--block", block)?,
            allow: load("--allow", allow)?,
        })
    }

    /// Builds the filter of both lists.
    pub(super) fn filter(&self) -> AddressFilter {
        AddressFilter::new(prefixes(self.block.as_ref()), prefixes(self.allow.as_ref()))
    }

    fn is_empty(&self) -> bool {
        self.lists().next().is_none()
    }

    /// True if a file looks different from when it was read. One that is gone does too.
    fn have_changed(&self) -> bool {
        self.lists()
            .any(|list| stamp(&list.path).ok() != list.stamp)
    }

    /// Reads both files again, whether or not they have changed.
    ///
    /// # Errors
    /// As of [`load`](Self::load); both lists then stay as they were.
    fn reload(&mut self) -> Result<(), Failure> {
        let path = |list: &Option<List>| list.as_ref().map(|list| list.path.clone());
        for list in [&mut self.block, &mut self.allow].into_iter().flatten() {
            // What is wrong is told once.
            list.stamp = stamp(&list.path).ok();
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
    fn load(flag: &'static str, path: &Path) -> Result<Self, Failure> {
        let wrong = |why: &dyn fmt::Display| {
            Failure::new(format!("cannot use {flag} {}: {why}", path.display()))
        };
        // Before the content: a change between the two is noticed at the next look.
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

/// The lists of a server that runs.
#[derive(Debug)]
pub(super) struct Watch {
    lists: Mutex<AddressLists>,
    handle: ServerHandle,
    as_json: bool,
}

impl Watch {
    /// Also starts the task that looks for changes.
    pub(super) fn begin(
        lists: AddressLists,
        handle: ServerHandle,
        as_json: bool,
    ) -> (Arc<Self>, JoinHandle<()>) {
        let watch = Arc::new(Self {
            lists: Mutex::new(lists),
            handle,
            as_json,
        });
        let task = tokio::spawn(watch.clone().run());
        (watch, task)
    }

    /// Reads the lists again when their files change.
    async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let watch = self.clone();
            // A list of millions of lines takes seconds, in which a worker thread could serve clients.
            let look = move || watch.reload_if(AddressLists::have_changed);
            if tokio::task::spawn_blocking(look).await.is_err() {
                return;
            }
        }
    }

    /// Reads the lists again, if there are any, on a thread that may wait.
    pub(super) fn reload(self: &Arc<Self>) {
        let watch = self.clone();
        tokio::task::spawn_blocking(move || watch.reload_if(|_| true));
    }

    fn reload_if(&self, condition: impl Fn(&AddressLists) -> bool) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.is_empty() || !condition(&lists) {
            return;
        }
        match lists.reload() {
            Ok(()) => {
                self.handle.set_address_filter(lists.filter());
                self.say_replaced(&lists);
            }
            Err(error) => self.say_kept(&error),
        }
    }

    fn say_replaced(&self, lists: &AddressLists) {
        let blocked = prefixes(lists.block.as_ref()).len();
        let allowed = prefixes(lists.allow.as_ref()).len();
        let text = format!("the address lists were replaced: {blocked} blocked, {allowed} allowed");
        if self.as_json {
            let event = json!({
                "event": "address_lists_replaced",
                "text": text,
                "blocked": blocked,
                "allowed": allowed,
            });
            output::line(event.to_string());
        } else {
            output::note(text);
        }
    }

    fn say_kept(&self, error: &Failure) {
        let text = format!("keeping the old address lists: {error}");
        if self.as_json {
            output::line(json!({"event": "address_lists_kept", "text": text}).to_string());
        } else {
            output::note(text);
        }
    }
}

/// As for certificates.
const INTERVAL: Duration = Duration::from_secs(1);
/// As many of the longest lines, without comments (limit K103).
const MAX_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests;
