//! Counters of the service.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::threads::ThreadUse;

/// Counters of a [`Files`](crate::Files) service since its start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Requests for which the response came from memory.
    pub hits: u64,
    /// Requests that accessed the file system.
    pub misses: u64,
    /// Requests that waited for another thread, because of a disk or a large compression.
    pub waited: u64,
    /// Requests that failed because the system was out of file descriptors or memory.
    pub exhausted: u64,
    /// Requests that were refused, and responses that were aborted, because no thread became free in time
    /// ([`Builder::threads`](crate::Builder::threads)).
    pub busy: u64,
    /// Threads that wait for a disk or compress.
    pub threads: usize,
    /// Requests and responses that wait for a thread.
    pub waiting: usize,
    /// Memory of the cached files in bytes, including their header fields and table entries.
    pub memory: u64,
    /// Number of files in memory; a file in two codings counts twice.
    pub files: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    waited: AtomicU64,
    exhausted: AtomicU64,
}

impl Counters {
    pub(crate) fn on_hit(&self) {
        self.hits.fetch_add(1, Relaxed);
    }

    pub(crate) fn on_miss(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    pub(crate) fn on_waiting(&self) {
        self.waited.fetch_add(1, Relaxed);
    }

    pub(crate) fn on_exhausted(&self) {
        self.exhausted.fetch_add(1, Relaxed);
    }

    pub(crate) fn with_use(&self, (memory, files): (u64, usize), threads: ThreadUse) -> Stats {
        Stats {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            waited: self.waited.load(Relaxed),
            exhausted: self.exhausted.load(Relaxed),
            busy: threads.refused,
            threads: threads.running,
            waiting: threads.waiting,
            memory,
            files,
        }
    }
}
