//! The sessions of a server that accepts early data, each used once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::StoresServerSessions;
use rustls::time_provider::TimeProvider;

use super::filter::ReplayFilter;
use super::limits::EarlyLimits;
use crate::secrets::limits_at_work;

/// Wraps a store of sessions: it remembers the limits with which each session was issued, and
/// returns a session only once and only if those limits still hold.
///
/// rustls calls it on the thread of a handshake, which has lent its limits.
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
        let Some(limits) = limits_at_work().filter(|_| value.len() <= MAX_SESSION) else {
            return false;
        };
        let mut bytes = limits.encode().to_vec();
        bytes.extend_from_slice(&self.application);
        bytes.extend_from_slice(&value);
        self.store.put(key, bytes)
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        // TLS 1.2 alone uses this.
        None
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let bytes = self.store.take(key)?;
        let (remembered, rest) = EarlyLimits::decode(&bytes)?;
        let session = rest.strip_prefix(&self.application[..])?;
        let now = self.clock.current_time()?;
        // Without its session the client performs a full handshake, and its early data is refused.
        let is_usable = limits_at_work()?.cover(&remembered)
            && self
                .filter
                .is_first_use(key, Duration::from_secs(now.as_secs()));
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

/// Bytes of a session that is stored (limit K151). One with a long chain of client certificates is
/// not, and its client gets no ticket.
const MAX_SESSION: usize = 8 << 10;
