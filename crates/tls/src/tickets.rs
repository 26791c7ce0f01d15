//! Session tickets by version of QUIC. RFC 9369 §5.
//!
//! A ticket of a connection of one version must not be used in another. Servers mark the tickets of
//! version 2, and [clients](crate::client_tickets) store them separately.

use std::sync::Arc;

use courser_wire::Version;
use rustls::ServerConfig;
use rustls::server::{ProducesTickets, StoresServerSessions};

/// The number of versions of QUIC.
pub(crate) const VERSIONS: usize = Version::ALL.len();

/// Returns the index of a version in tables of all versions.
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

/// Stores the sessions of version 2 under marked keys.
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

#[cfg(test)]
mod tests;
