//! Settings of a client.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use courser_base::Mutex;
use courser_crypto::ClientTls;
use courser_wire::{ConnectionId, Version, Versions};

use super::TransportConfig;
use super::transport::{ConfigError, check};

/// A store for the NEW_TOKEN tokens that servers gave to a client. RFC 9000 §8.1.3.
///
/// A server is a name and a port: `example.org` at port 443, and `example.org:4433` or `[::1]:4433` at
/// any other. Tokens of one server are of no use to another, and would connect the visits of the client to
/// both servers.
///
/// Tokens of connections of QUIC version 2 are stored under the server with the suffix `#quic-v2`,
/// because they are of no use in version 1 (RFC 9369 §5).
///
/// A store is called under the lock of the endpoint. It must not block, and a use of the endpoint or its
/// connections panics, which ends the connection that the token is for.
pub trait TokenStore: Send + Sync {
    /// Stores a token for the next connection to this server.
    fn put(&self, server: &str, token: Bytes);
    /// Removes and returns a token: each is used once.
    fn take(&self, server: &str) -> Option<Bytes>;
}

/// Makes the first Destination Connection ID of a connection.
pub type InitialDestination = dyn Fn() -> ConnectionId + Send + Sync;

/// Settings of a client.
#[derive(Clone)]
pub struct ClientConfig {
    /// Creates the TLS session of each connection.
    pub tls: Arc<dyn ClientTls>,
    /// Settings of the connections that it opens.
    pub transport: Arc<TransportConfig>,
    /// Tokens from earlier connections; `None` stores none.
    pub tokens: Option<Arc<dyn TokenStore>>,
    /// Moves to the address that a server prefers, if it answers there (RFC 9000 §9.6). Default on.
    /// An address of a smaller scope than that of the handshake is never used, such as one on the
    /// local network that a server on the Internet prefers.
    pub follow_preferred_address: bool,
    /// Makes the Destination Connection ID of the first packet of each connection, of at least 8 bytes that others
    /// cannot predict (RFC 9000 §7.2). It is called under the lock of the endpoint, and must neither block nor use
    /// the endpoint. Default `None`: 8 random bytes.
    pub initial_destination: Option<Arc<InitialDestination>>,
    /// Hands TLS work out through [`Endpoint::poll_tls_task`](crate::Endpoint::poll_tls_task)
    /// instead of running it where a packet is received. The embedder must run it. Default off.
    pub offload_tls: bool,
    /// Versions of QUIC, the preferred one first. The server may move the connection from the version
    /// of the first flight to another one (RFC 9368). Not empty. Default [`Versions::V1`], which sends
    /// no version_information.
    ///
    /// With any other list, TLS keeps session tickets for each version in memory, and the
    /// configured store of tickets is not used: tickets belong to one version (RFC 9369 §5).
    pub versions: Versions,
    /// The version of the first flight, one of `versions`; `None` for the first one of them. Default
    /// `None`. Servers that follow the client's preference move it only if this is not the preferred
    /// version (RFC 9368 §2.3).
    pub first_version: Option<Version>,
}

impl ClientConfig {
    /// Creates the default settings around a TLS configuration, with tokens kept in memory.
    pub fn new(tls: Arc<dyn ClientTls>) -> Self {
        Self {
            tls,
            transport: Arc::new(TransportConfig::default()),
            tokens: Some(Arc::new(MemoryTokenStore::default())),
            follow_preferred_address: true,
            initial_destination: None,
            offload_tls: false,
            versions: Versions::V1,
            first_version: None,
        }
    }

    /// Checks that every value is within its range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] contains the field, its value and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.transport.validate()?;
        check_versions(self.versions)?;
        match self.first_version {
            Some(first) if !self.versions.contains(first) => Err(ConfigError {
                field: "first_version",
                message: format!("is {first:?}, which is not one of versions"),
            }),
            _ => Ok(()),
        }
    }
}

/// Checks that a list of versions is not empty.
pub(super) fn check_versions(versions: Versions) -> Result<(), ConfigError> {
    let count = versions.iter().count() as u64;
    check("versions", count, 1, Version::ALL.len() as u64)
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Stores tokens in memory: two for each of the 256 most recent servers.
#[derive(Debug, Default)]
pub struct MemoryTokenStore(Mutex<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    by_server: HashMap<String, VecDeque<Bytes>>,
    order: VecDeque<String>,
}

const MAX_SERVERS: usize = 256;
const MAX_TOKENS_PER_SERVER: usize = 2;

impl TokenStore for MemoryTokenStore {
    fn put(&self, server_name: &str, token: Bytes) {
        let mut tokens = self.0.lock();
        if !tokens.by_server.contains_key(server_name) {
            if tokens.order.len() >= MAX_SERVERS
                && let Some(oldest) = tokens.order.pop_front()
            {
                tokens.by_server.remove(&oldest);
            }
            tokens.order.push_back(server_name.to_owned());
        }
        let kept = tokens.by_server.entry(server_name.to_owned()).or_default();
        if kept.contains(&token) {
            return;
        }
        if kept.len() >= MAX_TOKENS_PER_SERVER {
            kept.pop_front();
        }
        kept.push_back(token);
    }

    fn take(&self, server_name: &str) -> Option<Bytes> {
        let mut tokens = self.0.lock();
        tokens.by_server.get_mut(server_name)?.pop_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_handed_out_once() {
        let store = MemoryTokenStore::default();
        store.put("a", Bytes::from_static(b"1"));
        store.put("a", Bytes::from_static(b"1"));
        assert_eq!(store.take("a"), Some(Bytes::from_static(b"1")));
        assert_eq!(store.take("a"), None);
        assert_eq!(store.take("b"), None);
    }

    #[test]
    fn memory_is_bounded() {
        let store = MemoryTokenStore::default();
        for server in 0..1000 {
            for token in 0..5u8 {
                store.put(&server.to_string(), Bytes::copy_from_slice(&[token]));
            }
        }
        let tokens = store.0.lock();
        assert_eq!(
            (tokens.by_server.len(), tokens.order.len()),
            (MAX_SERVERS, MAX_SERVERS)
        );
        assert!(
            tokens
                .by_server
                .values()
                .all(|kept| kept.len() <= MAX_TOKENS_PER_SERVER)
        );
    }
}
