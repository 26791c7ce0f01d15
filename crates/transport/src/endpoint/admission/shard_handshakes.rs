//! Handshakes in progress as one shard sees them: limits for all shards, and its own counts.

use std::sync::Arc;
use std::time::Duration;

use courser_base::{Mutex, Time};

use super::fair_shares::Claim;
use super::handshakes::{Admission, HandshakeLimits, Handshakes};

/// The handshakes of one shard. Those of all shards together are limited by [`Handshakes`].
///
/// Each method corresponds to that of [`Handshakes`] with the same name.
#[derive(Debug)]
pub struct ShardHandshakes {
    all: Arc<Mutex<Handshakes>>,
    /// The counts of this shard, which are read without the lock.
    waiting: usize,
    waiting_bytes: usize,
    half_open: usize,
}

impl ShardHandshakes {
    /// Creates the handshakes of a shard without any.
    pub fn new(all: Arc<Mutex<Handshakes>>) -> Self {
        Self {
            all,
            waiting: 0,
            waiting_bytes: 0,
            half_open: 0,
        }
    }

    /// Returns the handshakes of all shards.
    pub fn all(&self) -> Arc<Mutex<Handshakes>> {
        self.all.clone()
    }

    pub fn set_limits(&self, limits: HandshakeLimits) {
        self.all.lock().set_limits(limits);
    }

    pub fn on_time(&self, now: Time) {
        self.all.lock().on_time(now);
    }

    pub fn admit(&self, claim: Claim, len: usize, delay: Duration) -> Admission {
        self.all.lock().admit(claim, len, delay)
    }

    pub fn admit_without_retry(&self, claim: Claim, len: usize) -> Admission {
        self.all.lock().admit_without_retry(claim, len)
    }

    pub fn is_too_late(&self, delay: Duration) -> bool {
        self.all.lock().is_too_late(delay)
    }

    pub fn may_begin(&self, claim: Claim) -> bool {
        self.all.lock().may_begin(claim)
    }

    pub fn is_loaded(&self) -> bool {
        self.all.lock().is_loaded()
    }

    pub fn on_waiting(&mut self, claim: Claim, len: usize) {
        self.all.lock().on_waiting(claim, len);
        self.waiting += 1;
        self.waiting_bytes += len;
        self.half_open += 1;
    }

    pub fn on_waiting_bytes(&mut self, claim: Claim, len: usize) -> bool {
        let is_kept = self.all.lock().on_waiting_bytes(claim, len);
        self.waiting_bytes += if is_kept { len } else { 0 };
        is_kept
    }

    pub fn on_accepted(&mut self, now: Time, claim: Claim, len: usize) {
        self.all.lock().on_accepted(now, claim, len);
        self.on_left(len);
    }

    pub fn on_refused(&mut self, claim: Claim, len: usize) {
        self.all.lock().on_refused(claim, len);
        self.on_left(len);
        self.half_open = self.half_open.saturating_sub(1);
    }

    pub fn on_handshake_ended(&mut self, claim: Claim) {
        self.all.lock().on_handshake_ended(claim);
        self.half_open = self.half_open.saturating_sub(1);
    }

    fn on_left(&mut self, len: usize) {
        self.waiting = self.waiting.saturating_sub(1);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(len);
    }

    /// Returns the number of clients that wait in this shard.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the bytes kept for clients that wait in this shard.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns the bytes kept for waiting clients of all shards.
    pub fn all_waiting_bytes(&self) -> usize {
        self.all.lock().waiting_bytes()
    }

    /// Returns the number of connections of this shard in a handshake.
    pub fn half_open(&self) -> usize {
        self.half_open
    }

    /// Returns the number of sources with clients in any shard.
    #[cfg(test)]
    pub fn sources(&self) -> usize {
        self.all.lock().sources()
    }
}
