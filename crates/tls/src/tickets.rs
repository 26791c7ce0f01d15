//! Session tickets by version of QUIC. RFC 9369 §5.
//!
//! A ticket of a connection of one version must not be used in another. Servers mark the tickets of
//! version 2, and clients store them apart.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use courser_wire::Version;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::server::{ProducesTickets, StoresServerSessions};
use rustls::{NamedGroup, ServerConfig};

/// The number of versions.
pub(crate) const VERSIONS: usize = Version::ALL.len();

/// Returns the place of a version in tables of all versions.
pub(crate) fn index(version: Version) -> usize {
    Version::ALL
        .iter()
        .position(|&it| it == version)
        .unwrap_or_default()
}

/// Returns the configurations of a server for all versions. They share its stores, and no session
/// is resumed in another version.
pub(crate) fn server_configs(config: ServerConfig) -> [Arc<ServerConfig>; VERSIONS] {
    Version::ALL.map(|version| {
        let mut config = config.clone();
        config.ticketer = Arc::new(MarkedTickets {
            inner: config.ticketer,
            version,
        });
        if version != Version::V1 {
            config.session_storage = Arc::new(MarkedSessions(config.session_storage));
        }
        Arc::new(config)
    })
}

/// The mark of version 2: the state in a ticket of version 1 never starts like this, because its
/// first byte is 0 or 1.
const MARK: &[u8] = b"quicv2";

/// Marks the tickets of version 2, and refuses those of the other version.
#[derive(Debug)]
struct MarkedTickets {
    inner: Arc<dyn ProducesTickets>,
    version: Version,
}

impl ProducesTickets for MarkedTickets {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        match self.version {
            Version::V1 => self.inner.encrypt(plain),
            _ => self.inner.encrypt(&[MARK, plain].concat()),
        }
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.inner.decrypt(cipher)?;
        match (self.version, plain.strip_prefix(MARK)) {
            (Version::V1, None) => Some(plain),
            (Version::V1, Some(_)) => None,
            (_, rest) => rest.map(<[u8]>::to_vec),
        }
    }
}

/// Stores the sessions of version 2 under marked names.
#[derive(Debug)]
struct MarkedSessions(Arc<dyn StoresServerSessions>);

impl StoresServerSessions for MarkedSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.0.put([MARK, &key].concat(), value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(&[MARK, key].concat())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.take(&[MARK, key].concat())
    }

    fn can_cache(&self) -> bool {
        self.0.can_cache()
    }
}

/// The tickets of a client for each version of QUIC, in memory, which is allocated at the first use:
/// those of the 256 most recent servers. Clones share them.
#[derive(Clone, Default, Debug)]
pub struct ClientTickets(Arc<OnceLock<[ClientSessionMemoryCache; VERSIONS]>>);

impl ClientTickets {
    fn of(&self, version: Version) -> &ClientSessionMemoryCache {
        let new = || Version::ALL.map(|_| ClientSessionMemoryCache::new(SERVERS));
        &self.0.get_or_init(new)[index(version)]
    }
}

/// Servers whose tickets are kept for each version, as many as rustls keeps by default.
const SERVERS: usize = 256;

/// The tickets for one session: it resumes a session of the version in which it starts, and stores
/// tickets of the version that it comes to.
#[derive(Debug)]
pub(crate) struct VersionTickets {
    all: ClientTickets,
    first: Version,
    /// The version of tickets that arrive.
    current: AtomicU32,
}

impl VersionTickets {
    pub(crate) fn new(all: &ClientTickets, first: Version) -> Self {
        Self {
            all: all.clone(),
            first,
            current: AtomicU32::new(first.value()),
        }
    }

    /// Sets the version of tickets that arrive.
    pub(crate) fn set_version(&self, version: u32) {
        self.current.store(version, Ordering::Relaxed);
    }

    fn of_first(&self) -> &ClientSessionMemoryCache {
        self.all.of(self.first)
    }

    fn of_current(&self) -> &ClientSessionMemoryCache {
        let current = Version::from_value(self.current.load(Ordering::Relaxed));
        self.all.of(current.unwrap_or(self.first))
    }
}

impl ClientSessionStore for VersionTickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.of_first().set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.of_first().kx_hint(server_name)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(
        &self,
        server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        self.of_current().insert_tls13_ticket(server_name, value);
    }

    fn take_tls13_ticket(
        &self,
        server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        self.of_first().take_tls13_ticket(server_name)
    }
}

#[cfg(test)]
mod tests;
