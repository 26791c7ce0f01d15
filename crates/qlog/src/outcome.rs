//! The outcome of writing traces: errors and dropped records.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use courser_base::Mutex;

/// Errors and drops of one or more traces. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Arc<SharedState>);

#[derive(Debug, Default)]
struct SharedState {
    error: Mutex<Option<io::Error>>,
    buffers: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

/// Counts records that were dropped because the queue of their writer was full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Number of buffers, each of about 32 KiB.
    pub buffers: u64,
    /// Number of records in these buffers.
    pub records: u64,
    /// Size of these records in bytes, as written to a trace.
    pub bytes: u64,
}

impl Outcome {
    /// Takes the error that ended a trace, if there was one.
    pub fn take_error(&self) -> Option<io::Error> {
        let mut kept = self.0.error.lock();
        kept.take()
    }

    /// Returns the number of records dropped so far.
    pub fn dropped(&self) -> Dropped {
        Dropped {
            buffers: self.0.buffers.load(Ordering::Relaxed),
            records: self.0.records.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_error(&self, error: io::Error) {
        let mut kept = self.0.error.lock();
        kept.get_or_insert(error);
    }

    pub(crate) fn on_dropped(&self, dropped: Dropped) {
        self.0.buffers.fetch_add(dropped.buffers, Ordering::Relaxed);
        self.0.records.fetch_add(dropped.records, Ordering::Relaxed);
        self.0.bytes.fetch_add(dropped.bytes, Ordering::Relaxed);
    }
}
