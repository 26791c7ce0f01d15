//! The handshakes in progress of one shard.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the handshakes in progress of one shard. They are read without the lock on those of all shards.
///
/// Only the shard itself changes and reads them, so they have a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct HandshakeCounts {
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    half_open: AtomicUsize,
}

impl HandshakeCounts {
    /// Returns the number of clients that wait to be accepted.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Returns the bytes of the datagrams of waiting clients.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Relaxed)
    }

    /// Returns the number of handshakes in progress, those of waiting clients included.
    pub fn half_open(&self) -> usize {
        self.half_open.load(Relaxed)
    }

    /// Counts a client that begins to wait, with `bytes` of datagrams.
    pub fn on_waiting(&self, bytes: usize) {
        self.waiting.fetch_add(1, Relaxed);
        self.waiting_bytes.fetch_add(bytes, Relaxed);
        self.half_open.fetch_add(1, Relaxed);
    }

    /// Counts another `bytes` of a waiting client.
    pub fn on_waiting_bytes(&self, bytes: usize) {
        self.waiting_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a client with `bytes` of datagrams as no longer waiting.
    pub fn on_left(&self, bytes: usize) {
        self.waiting.fetch_sub(1, Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Counts the end of a handshake.
    pub fn on_ended(&self) {
        self.half_open.fetch_sub(1, Relaxed);
    }
}
