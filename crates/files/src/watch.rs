//! Folders whose changes the kernel reports (inotify).
//!
//! A report says that what is known of a folder may be out of date, and nothing else: what is there is
//! looked at when it is asked for next. So a report that is merged with others, comes twice, or is of
//! a file that nobody asks for does no harm.
//!
//! Reports are read by whoever handles a request, at most once in a millisecond. That takes 0.3 us, no
//! task and no thread, and a service that is not asked for anything does nothing.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::age::{Moment, NOTICED_AFTER};

/// The folders below a root that are watched.
#[derive(Debug)]
pub(crate) struct Watcher {
    inotify: OwnedFd,
    read_at: AtomicU64,
    /// Counts reports about any folder.
    reports: AtomicU64,
    /// By path below the root.
    folders: RwLock<HashMap<PathBuf, Arc<Folder>>>,
    by_number: Mutex<HashMap<i32, (PathBuf, Arc<Folder>)>>,
}

/// A folder, and what was reported of it.
#[derive(Debug, Default)]
struct Folder {
    /// Counts names that came, went, or mean something else.
    names: AtomicU64,
    /// Counts files whose content or attributes were changed.
    content: AtomicU64,
}

/// What had been reported of the folders on the way to a file when it was opened.
#[derive(Debug)]
pub(crate) struct Watched {
    /// From the root to the folder of the file.
    folders: Box<[(Arc<Folder>, u64)]>,
    content: u64,
    /// Reports about any folder, up to which nothing concerned this file.
    reports: AtomicU64,
}

impl Watcher {
    /// `None` where the system has no inotify left for us.
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

    /// What was reported of the folders on the way to the file at `relative`, if all of them are
    /// watched. To be called before the file is opened.
    pub(crate) fn watched(&self, relative: &Path) -> Option<Watched> {
        let reports = self.reports.load(SeqCst);
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner);
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

    /// Watches the folders on the way to the file at `relative`, none of which is a symbolic link.
    /// False where one cannot be watched.
    pub(crate) fn watch(&self, root: &Path, relative: &Path) -> bool {
        parents(relative)
            .into_iter()
            .all(|folder| self.add(root, folder))
    }

    fn add(&self, root: &Path, folder: &Path) -> bool {
        let mut by_number = self.numbers();
        let known = || self.folders.read().unwrap_or_else(PoisonError::into_inner);
        if known().contains_key(folder) {
            return true;
        }
        if by_number.len() >= MOST_FOLDERS {
            return false;
        }
        let path = root.join(folder);
        let Ok(number) = inotify::add_watch(&self.inotify, &path, CHANGES) else {
            return false;
        };
        if by_number.contains_key(&number) {
            // The same folder by another path, such as a mount. Reports name one path only.
            return false;
        }
        let watched = Arc::new(Folder::default());
        by_number.insert(number, (folder.to_owned(), watched.clone()));
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        folders.insert(folder.to_owned(), watched);
        true
    }

    /// Reads the reports that there are, unless that was done a moment ago.
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
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut room);
        for _ in 0..MOST_REPORTS {
            let Ok(report) = reader.next() else {
                return;
            };
            self.note(report.wd(), report.events());
            self.reports.fetch_add(1, SeqCst);
        }
        // There is more than is worth reading one by one.
        self.doubt_all();
    }

    fn note(&self, number: i32, what: ReadFlags) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.doubt_all();
        }
        let mut by_number = self.numbers();
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
            let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
            folders.remove(path);
            by_number.remove(&number);
        }
    }

    fn doubt_all(&self) {
        for (_, folder) in self.numbers().values() {
            folder.names.fetch_add(1, SeqCst);
        }
        self.reports.fetch_add(1, SeqCst);
    }

    /// Forgets all folders: another root is at their paths.
    pub(crate) fn forget_all(&self) {
        self.doubt_all();
        let mut by_number = self.numbers();
        for number in by_number.keys() {
            // One that is gone has been forgotten by the kernel.
            let _ = inotify::remove_watch(&self.inotify, *number);
        }
        by_number.clear();
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        folders.clear();
    }

    fn numbers(&self) -> MutexGuard<'_, HashMap<i32, (PathBuf, Arc<Folder>)>> {
        self.by_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Returns true if nothing was reported that concerns the file.
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

/// The folders on the way to a file, the root first.
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

/// Half of what Linux grants each user at least.
pub(crate) const MOST_FOLDERS: usize = 4096;

/// Reports that are read at once.
pub(crate) const MOST_REPORTS: usize = 1024;
