//! A server at one address, and what its user sees of it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_client::hooks::Destination;
use http::Uri;

/// A server at one address.
pub(super) struct Server {
    pub(super) destination: Destination,
    pub(super) target: usize,
    pub(super) address: SocketAddr,
    pub(super) uri: Uri,
    pub(super) heard: Heard,
}

/// When a server was last heard of.
pub(super) struct Heard {
    began: Instant,
    /// Milliseconds after `began`.
    last_ms: AtomicU64,
}

impl Heard {
    /// Counts as heard now.
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    pub(super) fn now(&self) {
        self.last_ms.store(self.age_ms(), Relaxed);
    }

    /// Returns true if the server was not heard of for this time.
    pub(super) fn is_older_than(&self, time: Duration) -> bool {
        let age = self.age_ms().saturating_sub(self.last_ms.load(Relaxed));
        Duration::from_millis(age) >= time
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The state of one address of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Backend {
    /// The address of the server.
    pub address: SocketAddr,
    /// True if calls are sent to it.
    pub is_ready: bool,
    /// The attempts to connect to it that failed in a row.
    pub failures: u32,
}
