//! A connection to the upstream server that is counted while it is open and records facts about received bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
};
use std::time::Duration;

use crate::proxy::observed::{Observe, Observed};

/// The number of open connections.
#[derive(Clone, Debug, Default)]
pub(in crate::proxy) struct OpenConnections(Arc<AtomicUsize>);

impl OpenConnections {
    pub(in crate::proxy) fn count(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Counts a connection as open until the guard is dropped.
    pub(super) fn begin(&self) -> OpenGuard {
        self.0.fetch_add(1, Relaxed);
        OpenGuard(self.0.clone())
    }
}

#[derive(Debug)]
pub(super) struct OpenGuard(Arc<AtomicUsize>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

/// Facts about a connection for its pool and for logs.
#[derive(Debug)]
pub(super) struct ConnectionFacts {
    pub(super) address: Option<SocketAddr>,
    /// Time that it took to establish the connection.
    pub(super) connecting: Duration,
    received: AtomicU64,
    /// True if the first bytes are those of an HTTP/1 response.
    is_http1: AtomicBool,
    is_used: AtomicBool,
}

impl ConnectionFacts {
    pub(super) fn new(address: Option<SocketAddr>, connecting: Duration) -> Arc<Self> {
        Arc::new(Self {
            address,
            connecting,
            received: AtomicU64::new(0),
            is_http1: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
        })
    }

    /// Returns the number of bytes received so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(super) fn is_http1(&self) -> bool {
        self.is_http1.load(Relaxed)
    }

    /// Returns true for the first call.
    pub(super) fn begin_use(&self) -> bool {
        !self.is_used.swap(true, Relaxed)
    }

    fn on_received(&self, bytes: &[u8]) {
        let before = self.received.fetch_add(bytes.len() as u64, Relaxed);
        if before == 0 {
            let length = bytes.len().min(HTTP1.len());
            let is_http1 = bytes[..length] == HTTP1[..length];
            self.is_http1.store(is_http1, Relaxed);
        }
    }
}

const HTTP1: &[u8] = b"HTTP/1.";

/// The socket of a connection, including after an upgrade.
pub(super) type Counted<T> = Observed<T, Receiving>;

/// Records facts about the received bytes of a connection, and counts the connection as open.
pub(super) struct Receiving {
    facts: Arc<ConnectionFacts>,
    _open: OpenGuard,
}

impl Receiving {
    pub(super) const fn new(facts: Arc<ConnectionFacts>, open: OpenGuard) -> Self {
        Self { facts, _open: open }
    }
}

impl Observe for Receiving {
    fn on_read(&mut self, received: &[u8], result: io::Result<()>) -> io::Result<()> {
        if !received.is_empty() {
            self.facts.on_received(received);
        }
        result
    }
}
