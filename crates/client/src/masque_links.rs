//! The connections of a client to its MASQUE proxies.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_http3_tokio as h3;

use super::proxy::Via;

/// One connection over HTTP/3 to each proxy, which all tunnels share.
#[derive(Default)]
pub(super) struct MasqueLinks(Mutex<HashMap<Via, Slot>>);

/// The place of a connection. Its lock is held while the connection is made.
pub(super) type Slot = Arc<tokio::sync::Mutex<State>>;

/// What is known of a proxy.
#[derive(Clone, Default)]
pub(super) enum State {
    #[default]
    New,
    /// A connection, which may have ended.
    Open(MasqueLink),
    /// The proxy was not reached over QUIC at this time, for this reason.
    Unreachable(Instant, Arc<str>),
}

/// A connection to a proxy.
#[derive(Clone)]
pub(super) struct MasqueLink {
    pub(super) client: h3::Client,
    pub(super) remote: SocketAddr,
}

impl MasqueLinks {
    /// Returns the place of the connection to a proxy.
    pub(super) fn slot(&self, via: &Via) -> Slot {
        let mut slots = self.0.lock();
        if slots.len() >= MOST && !slots.contains_key(via) {
            // Connections that are in use stay open.
            slots.clear();
        }
        slots.entry(via.clone()).or_default().clone()
    }
}

impl MasqueLink {
    /// Returns true if the connection accepts further requests.
    pub(super) fn is_usable(&self) -> bool {
        let connection = self.client.quic();
        connection.close_reason().is_none()
            && !self.client.goes_away()
            && !connection.is_path_silent()
    }
}

impl State {
    /// Returns the reason if the proxy was not reached a short while ago.
    pub(super) fn is_unreachable(&self) -> Option<&Arc<str>> {
        match self {
            Self::Unreachable(at, reason) if at.elapsed() < AGAIN => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Debug for MasqueLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasqueLinks").finish_non_exhaustive()
    }
}

/// Proxies whose connections are kept (limit K653). A function can name any number.
const MOST: usize = 64;

/// Time until a proxy that was not reached over QUIC is tried again (limit K653).
const AGAIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K653.
    #[test]
    fn proxies_that_are_remembered_are_bounded() {
        let links = MasqueLinks::default();
        for port in 1..1000 {
            let via = Via {
                uri: format!("https://p.test:{port}/").parse().expect("a URI"),
                authorization: None,
                credentials: None,
                template: None,
            };
            links.slot(&via);
        }
        assert!(links.0.lock().len() <= MOST);
        let now = Instant::now();
        let state = State::Unreachable(now, "x".into());
        assert!(state.is_unreachable().is_some());
        if let Some(long_ago) = now.checked_sub(AGAIN) {
            let state = State::Unreachable(long_ago, "x".into());
            assert!(state.is_unreachable().is_none());
        }
    }
}
