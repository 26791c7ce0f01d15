//! Early data (0-RTT) of a server: its sessions, and the defence against replays. RFC 8446 §8.

mod filter;
mod limits;
mod sessions;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};

pub use self::filter::{MemoryReplayFilter, ReplayFilter};
pub(crate) use self::limits::EarlyLimits;

use self::sessions::Sessions;

/// The sessions that clients may resume with early data, and the filter that refuses replays.
///
/// The default holds both in memory, which suits a single server. Servers that share an address
/// either share both, or refuse the early data of clients that met another one of them.
#[derive(Clone, Debug)]
pub struct EarlyDataOptions {
    /// The store of sessions. The default stores 8192 sessions in memory (limit K150), and forgets
    /// the oldest ones. Clones share it.
    ///
    /// rustls calls the store inside the handshake, so one that waits for other machines needs TLS
    /// tasks of their own (`offload_tls`).
    pub sessions: Arc<dyn StoresServerSessions>,
    /// The filter of replays, which is called inside the handshake too.
    pub filter: Arc<dyn ReplayFilter>,
    /// The settings of the application that clients rely on in early data, in any form. A session
    /// that was issued with other ones is not resumed (RFC 9114 §7.2.4.2). Empty by default.
    pub application: Vec<u8>,
}

impl Default for EarlyDataOptions {
    fn default() -> Self {
        Self {
            sessions: ServerSessionMemoryCache::new(MAX_SESSIONS),
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

/// Sessions in memory, each of which holds some two hundred bytes and at most K151 (limit K150).
const MAX_SESSIONS: usize = 8192;

/// Encrypts no tickets, so that rustls stores sessions instead.
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
