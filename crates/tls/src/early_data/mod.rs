//! Early data (0-RTT) of a server: its sessions, and the protection against replays. RFC 8446 §8.

mod filter;
mod limits;
mod session_memory;
mod sessions;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ProducesTickets, StoresServerSessions};

pub use self::filter::{MemoryReplayFilter, ReplayFilter};
pub(crate) use self::limits::EarlyLimits;

use self::session_memory::SessionMemory;
use self::sessions::Sessions;

/// The sessions that clients may resume with early data, and the filter that refuses replays.
///
/// The default holds both in memory, which suits a single server. Servers that share an address
/// should share both. Otherwise they refuse the early data of clients that have tickets of another
/// server.
#[derive(Clone, Debug)]
pub struct EarlyDataOptions {
    /// The store of sessions. The default stores 8192 sessions in memory (limit K150), and removes
    /// the oldest of the site (/16 of IPv4, /48 of IPv6) that has the most. Clones share it.
    ///
    /// A stored session contains the address of its client, for shares by source.
    ///
    /// rustls calls the store during the handshake. A store that waits for other machines requires
    /// separate tasks for TLS (`offload_tls`).
    pub sessions: Arc<dyn StoresServerSessions>,
    /// The replay filter, which is called during the handshake too.
    pub filter: Arc<dyn ReplayFilter>,
    /// The settings of the application on which clients rely in early data, in any encoding. A
    /// session that was issued with other settings is not resumed (RFC 9114 §7.2.4.2). Empty by
    /// default.
    pub application: Vec<u8>,
}

impl Default for EarlyDataOptions {
    fn default() -> Self {
        Self {
            sessions: Arc::new(SessionMemory::new(MAX_SESSIONS)),
            filter: Arc::new(MemoryReplayFilter::default()),
            application: Vec::new(),
        }
    }
}

impl EarlyDataOptions {
    /// Replaces the tickets and sessions of a configuration.
    pub(crate) fn apply(self, config: &mut ServerConfig) {
        let clock = Arc::clone(&config.time_provider);
        let sessions = Sessions::new(self.sessions, self.filter, clock, &self.application);
        config.session_storage = Arc::new(sessions);
        // rustls accepts early data only from sessions that it stores (RFC 8446 §8.1).
        config.ticketer = Arc::new(NoTickets);
    }
}

/// Maximum number of sessions in memory (limit K150). Each takes some two hundred bytes, and at
/// most K151.
const MAX_SESSIONS: usize = 8192;

/// Disables encrypted tickets, so that rustls stores sessions instead.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(test)]
mod tests;
