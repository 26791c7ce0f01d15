//! The counts of a proxy of sessions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The use of a [`SessionProxy`](super::SessionProxy).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SessionProxyStats {
    /// Sessions that are open or being opened.
    pub open: usize,
    /// Sessions that were forwarded so far.
    pub forwarded: u64,
    /// Sessions that the upstream server has refused.
    pub refused_upstream: u64,
    /// Sessions that were refused because there was none at the upstream server: it could not be reached, or has no
    /// WebTransport.
    pub failed: u64,
    /// Datagrams that were dropped because they were too large for the other side.
    pub datagrams_too_large: u64,
}

/// Counts of all relays.
#[derive(Debug, Default)]
pub(super) struct Counts {
    forwarded: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    too_large: AtomicU64,
}

impl Counts {
    pub(super) fn on_forwarded(&self) {
        self.forwarded.fetch_add(1, Relaxed);
    }

    pub(super) fn on_too_large(&self) {
        self.too_large.fetch_add(1, Relaxed);
    }

    pub(super) fn on_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(super) fn on_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub(super) fn stats(&self, open: usize) -> SessionProxyStats {
        SessionProxyStats {
            open,
            forwarded: self.forwarded.load(Relaxed),
            refused_upstream: self.refused.load(Relaxed),
            failed: self.failed.load(Relaxed),
            datagrams_too_large: self.too_large.load(Relaxed),
        }
    }
}
