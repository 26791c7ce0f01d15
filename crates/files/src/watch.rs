//! Folders whose changes the kernel reports (inotify).
//!
//! A report only means that information about a folder may be outdated; the folder is checked at
//! the next request. Merged or duplicate reports, and reports about files without requests, are
//! therefore harmless.
//!
//! Request handlers read the reports, at most once in a millisecond. That takes 0.3 us and needs
//! neither a task nor a thread, and an idle service has no cost.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use courser_base::{Mutex, RwLock};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::age::{Moment, NOTICED_AFTER};

/// The folders below a root that are watched.
#[derive(Debug)]
pub(crate) struct Watcher {
    inotify: OwnedFd,
    read_at: AtomicU64,
    /// Counts reports about any folder.
    reports: AtomicU64,
    /// The watched folders by path below the root.
    folders: RwLock<HashMap<PathBuf, Arc<Folder>>>,
    by_number: Mutex<HashMap<i32, (PathBuf, Arc<Folder>)>>,
}

/// A folder, and the reports about it.
#[derive(Debug, Default)]
struct Folder {
    /// Counts names that appeared, disappeared or changed their meaning.
    names: AtomicU64,
    /// Counts changes of the content or attributes of files.
    content: AtomicU64,
}

/// The reports about the folders on the path of a file, up to the moment it was opened.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The folders from the root to the folder of the file, each with its count of names.
    folders: Box<[(Arc<Folder>, u64)]>,
    content: u64,
    /// The count of reports about any folder up to which none concerned this file.
    reports: AtomicU64,
}

impl Watcher {
    /// Creates a watcher. Returns `None` if the system grants no further inotify instance.
    pub(crate) fn new() -> Option<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            inotify,
            read_at: AtomicU64::new(0),
            reports: AtomicU64::new(0),
            folders: RwLock::default(),
            by_number: Mutex::default(),
        })
    }

    /// Returns the reports so far about the folders on the path of the file at `relative`, if all
    /// of them are watched. Call this before opening the file.
    pub(crate) fn watched(&self, relative: &Path) -> Option<Watched> {
        let reports = self.reports.load(SeqCst);
        let known = self.folders.read();
        let mut folders = Vec::new();
        for folder in parents(relative) {
            let folder = known.get(folder)?.clone();
            let names = folder.names.load(SeqCst);
            folders.push((folder, names));
        }
        let content = folders.last()?.0.content.load(SeqCst);
        Some(Watched {
            folders: folders.into(),
            content,
            reports: AtomicU64::new(reports),
        })
    }

    /// Watches the folders on the path of the file at `relative`, none of which is a symbolic link.
    /// Returns false if one of them cannot be watched.
    pub(crate) fn watch(&self, root: &Path, relative: &Path) -> bool {
        parents(relative)
            .into_iter()
            .all(|folder| self.add(root, folder))
    }

    fn add(&self, root: &Path, folder: &Path) -> bool {
        let mut by_number = self.by_number.lock();
        let known = || self.folders.read();
        if known().contains_key(folder) {
            return true;
        }
        if by_number.len() >= MAX_FOLDERS {
            return false;
        }
        let path = root.join(folder);
        let Ok(number) = inotify::add_watch(&self.inotify, &path, CHANGES) else {
            return false;
        };
        if by_number.contains_key(&number) {
            // The same folder has another path, such as a mount. Reports name only one of them.
            return false;
        }
        let watched = Arc::new(Folder::default());
        by_number.insert(number, (folder.to_owned(), watched.clone()));
        let mut folders = self.folders.write();
        folders.insert(folder.to_owned(), watched);
        true
    }

    /// Reads the pending reports, unless they were read within [`NOTICED_AFTER`](crate::age::NOTICED_AFTER).
    pub(crate) fn read_reports(&self, now: Moment) {
        let before = self.read_at.load(Relaxed);
        if now.is_within(Moment::of(before), NOTICED_AFTER) {
            return;
        }
        let exchanged = self
            .read_at
            .compare_exchange(before, now.get(), SeqCst, Relaxed);
        if exchanged.is_err() {
            return;
        }
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut space);
        for _ in 0..MAX_REPORTS {
            let Ok(report) = reader.next() else {
                return;
            };
            self.record(report.wd(), report.events());
            self.reports.fetch_add(1, SeqCst);
        }
        // There are too many reports to read one by one.
        self.invalidate_all();
    }

    fn record(&self, number: i32, what: ReadFlags) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.invalidate_all();
        }
        let mut by_number = self.by_number.lock();
        let Some((path, folder)) = by_number.get(&number) else {
            return;
        };
        let is_of_content = (ReadFlags::MODIFY | ReadFlags::ATTRIB).contains(what);
        if is_of_content {
            folder.content.fetch_add(1, SeqCst);
        } else {
            folder.names.fetch_add(1, SeqCst);
        }
        if what.contains(ReadFlags::IGNORED) {
            let mut folders = self.folders.write();
            folders.remove(path);
            by_number.remove(&number);
        }
    }

    fn invalidate_all(&self) {
        for (_, folder) in self.by_number.lock().values() {
            folder.names.fetch_add(1, SeqCst);
        }
        self.reports.fetch_add(1, SeqCst);
    }

    /// Stops watching all folders, because another root is at their paths.
    pub(crate) fn clear(&self) {
        self.invalidate_all();
        let mut by_number = self.by_number.lock();
        for number in by_number.keys() {
            // The kernel has already removed the watches of deleted folders.
            let _ = inotify::remove_watch(&self.inotify, *number);
        }
        by_number.clear();
        let mut folders = self.folders.write();
        folders.clear();
    }
}

impl Watched {
    /// Returns true if no report concerns the file.
    pub(crate) fn is_unchanged(&self, watcher: &Watcher) -> bool {
        let reports = watcher.reports.load(SeqCst);
        if self.reports.load(Relaxed) == reports {
            return true;
        }
        let is_same = |(folder, names): &(Arc<Folder>, u64)| folder.names.load(SeqCst) == *names;
        let has_content =
            |(folder, _): &(Arc<Folder>, u64)| folder.content.load(SeqCst) == self.content;
        if !self.folders.iter().all(is_same) || !self.folders.last().is_some_and(has_content) {
            return false;
        }
        self.reports.store(reports, Relaxed);
        true
    }
}

/// Returns the folders on the path of a file, the root first.
fn parents(relative: &Path) -> Vec<&Path> {
    let mut parents: Vec<&Path> = relative.ancestors().skip(1).collect();
    parents.reverse();
    parents
}

const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// Largest number of watched folders: half of the smallest limit of Linux for each user.
pub(crate) const MAX_FOLDERS: usize = 4096;

/// Largest number of reports that are read at once.
pub(crate) const MAX_REPORTS: usize = 1024;
