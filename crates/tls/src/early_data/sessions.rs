//! The sessions of a server that accepts early data, each used once.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use rustls::server::StoresServerSessions;
use rustls::time_provider::TimeProvider;

use super::filter::ReplayFilter;
use super::limits::EarlyLimits;
use crate::secrets::{current_client, current_limits};

/// Wraps a store of sessions. It stores the limits with which each session was issued and the address of its client,
/// and returns a session only once and only if no limit has fallen.
///
/// rustls calls it on the thread of a handshake, to which the limits and the address are lent.
pub(super) struct Sessions {
    store: Arc<dyn StoresServerSessions>,
    filter: Arc<dyn ReplayFilter>,
    clock: Arc<dyn TimeProvider>,
    /// The settings of the application, with their length.
    application: Vec<u8>,
}

impl Sessions {
    /// Wraps `store`. `settings` are those of the application.
    pub(super) fn new(
        store: Arc<dyn StoresServerSessions>,
        filter: Arc<dyn ReplayFilter>,
        clock: Arc<dyn TimeProvider>,
        settings: &[u8],
    ) -> Self {
        Self {
            store,
            filter,
            clock,
            application: [&(settings.len() as u64).to_be_bytes()[..], settings].concat(),
        }
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let Some(limits) = current_limits().filter(|_| value.len() <= MAX_SESSION) else {
            return false;
        };
        let mut bytes = limits.encode().to_vec();
        bytes.extend_from_slice(&encode(current_client()));
        bytes.extend_from_slice(&self.application);
        bytes.extend_from_slice(&value);
        self.store.put(key, bytes)
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        // Only TLS 1.2 uses this.
        None
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let bytes = self.store.take(key)?;
        let (remembered, rest) = EarlyLimits::decode(&bytes)?;
        let (client, rest) = rest.split_first_chunk()?;
        let session = rest.strip_prefix(&self.application[..])?;
        let now = self.clock.current_time()?;
        // Without its session the client performs a full handshake, and its early data is refused.
        let is_usable = current_limits()?.cover(&remembered)
            && self.filter.is_first_use_from(
                decode(*client),
                key,
                Duration::from_secs(now.as_secs()),
            );
        is_usable.then(|| session.to_vec())
    }

    fn can_cache(&self) -> bool {
        self.store.can_cache()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

/// Encodes the address of the client to which a session is issued. Its handshake has proven the address, while that of the
/// first flight with early data may be forged.
fn encode(client: Option<IpAddr>) -> [u8; 16] {
    match client {
        None => Ipv6Addr::UNSPECIFIED,
        Some(IpAddr::V4(client)) => client.to_ipv6_mapped(),
        Some(IpAddr::V6(client)) => client,
    }
    .octets()
}

fn decode(client: [u8; 16]) -> Option<IpAddr> {
    let client = Ipv6Addr::from(client);
    (!client.is_unspecified()).then(|| client.to_canonical())
}

/// Maximum number of bytes of a stored session (limit K151). Sessions with a long chain of client
/// certificates are not stored, and their clients get no ticket.
const MAX_SESSION: usize = 8 << 10;
