//! Counts that the tasks of a program share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Datagrams, PathCounts};

/// The counts of a server, which the runner compares with the requests of the client.
#[derive(Debug, Default)]
pub struct Tally {
    /// Connections whose handshake came to its end.
    pub connections: AtomicU64,
    /// Streams answered to the end, or requests where there are no streams.
    pub answers: AtomicU64,
    /// Bytes received, headers apart.
    pub received: AtomicU64,
    /// Bytes sent.
    pub sent: AtomicU64,
    path: Mutex<Option<PathCounts>>,
    datagrams: Mutex<Option<Datagrams>>,
}

impl Tally {
    /// Counts one answer.
    pub fn answered(&self, received: u64, sent: u64) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.received.fetch_add(received, Ordering::Relaxed);
        self.sent.fetch_add(sent, Ordering::Relaxed);
    }

    /// Keeps what a connection counted until another one ends.
    pub fn ended(&self, path: PathCounts) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = Some(path);
    }

    /// Returns the counts of the connection that ended last.
    pub fn path(&self) -> Option<PathCounts> {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the datagrams of a connection until another one ends.
    pub fn datagrams_came(&self, datagrams: Datagrams) {
        *self
            .datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(datagrams);
    }

    /// Returns the datagrams of the connection that ended last, if any were looked for.
    pub fn datagrams(&self) -> Option<Datagrams> {
        *self
            .datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one connection.
    pub fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }
}

/// Work that several tasks take from, one piece at a time.
#[derive(Debug)]
pub struct Work {
    left: AtomicU64,
}

impl Work {
    /// `count` pieces.
    pub fn new(count: u64) -> Self {
        Self {
            left: AtomicU64::new(count),
        }
    }

    /// Takes a piece; false when none is left.
    pub fn take(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        taken.is_ok()
    }
}
