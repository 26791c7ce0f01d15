//! Settings of a server.

use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use courser_crypto::ServerTls;
use courser_wire::Versions;
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::TransportConfig;
use super::client::check_versions;
use super::token_hooks::{TimeOfDay, TokenLog};
use super::transport::{ConfigError, check};

/// Decides when a client must prove its address before the server spends work on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RetryPolicy {
    /// Sends Retry under pressure: while clients wait longer than
    /// [`ServerConfig::max_incoming_delay`], the queue of incoming connections is three quarters
    /// full, or handshakes hold more than [`ServerConfig::half_open_bytes`].
    #[default]
    Auto,
    /// Sends Retry to every client without a token.
    Always,
    /// Never sends Retry automatically; [`crate::Endpoint::retry`] still works.
    Never,
}

/// Settings of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Creates the TLS session of each connection.
    pub tls: Arc<dyn ServerTls>,
    /// Settings of the accepted connections.
    pub transport: Arc<TransportConfig>,
    /// When to send Retry. Default [`RetryPolicy::Auto`].
    pub retry: RetryPolicy,
    /// Connections that may wait to be accepted. Default 16 384.
    pub max_incoming: usize,
    /// Bytes that waiting connections may hold in total. Default 32 MiB.
    pub max_incoming_bytes: usize,
    /// Time that connections may wait to be accepted before [`RetryPolicy::Auto`] sends Retry.
    /// Default 200 ms. Applies while at least 32 wait.
    pub max_incoming_delay: Duration,
    /// Bytes that handshakes in progress may hold before [`RetryPolicy::Auto`] sends Retry. Each
    /// counts as 28 KiB. With less than that, also with 0, clients without a token always receive a
    /// Retry, and one address may have three handshakes in progress. More than
    /// [`EndpointConfig::memory_budget`](crate::EndpointConfig::memory_budget) has the effect of the
    /// whole budget. `None`, the default, is half of it.
    pub half_open_bytes: Option<u64>,
    /// Connections per second that one address (IPv4, /64 of IPv6, or a link-local or unique
    /// local IPv6 address) may open, and a quarter of those that one network (/24, or /56) may open.
    /// Clients beyond the limit receive a Retry if they have no token, and are refused if they have one.
    /// At least 1. Default `None`, no limit (limit K102).
    pub connection_rate: Option<u32>,
    /// Like [`connection_rate`](Self::connection_rate), but applied only under pressure, as defined
    /// by [`RetryPolicy::Auto`]. Default `None`: then networks take turns, so that a flood from one
    /// of them delays no other.
    pub loaded_connection_rate: Option<u32>,
    /// NEW_TOKEN tokens sent on each connection, at most 4. Default 2. A token proves the client's
    /// address once, within 24 hours; a Retry token within 10 seconds (limit K23).
    pub new_tokens: u32,
    /// The key that seals tokens, instead of [`EndpointConfig::token_key`](crate::EndpointConfig::token_key). Servers
    /// with the same key accept each other's tokens. Default `None`.
    pub token_key: Option<[u8; 32]>,
    /// Time for which the token of a Retry packet is valid, 1 s to 10 years. Default 10 s (limit K23).
    pub retry_token_lifetime: Duration,
    /// Time for which a NEW_TOKEN token is valid, 1 s to 10 years. Default 24 hours (limit K23).
    pub new_token_lifetime: Duration,
    /// Records the NEW_TOKEN tokens that were used. Default `None`: the endpoint does, in memory.
    pub token_log: Option<Arc<dyn TokenLog>>,
    /// The clock by which tokens are issued and expire. Default `None`: the time of day at the start of the endpoint
    /// ([`EndpointConfig::unix_seconds_at_epoch`](crate::EndpointConfig::unix_seconds_at_epoch)) plus the time since then.
    pub time_of_day: Option<Arc<dyn TimeOfDay>>,
    /// Bytes that one waiting connection may hold, within `max_incoming_bytes`, at least 1200; in datagrams of
    /// 256 bytes on average (limit K571). Its first datagram is always kept. Default `None`: eight datagrams.
    pub incoming_bytes_per_client: Option<usize>,
    /// Bytes of 0-RTT packets that the server accepts on a connection, if its TLS accepts early data.
    /// The client sends the rest again when the handshake is complete. Default 64 KiB
    /// (limit K153).
    pub max_early_data: u64,
    /// Lets clients change their address. Default on. Otherwise clients are asked not to
    /// (disable_active_migration, RFC 9000 §18.2), and packets from another IP address are dropped.
    /// Another port of the same address is followed, because NATs rebind.
    pub migration: bool,
    /// Address and port that clients over IPv4 are asked to move to once the handshake is confirmed
    /// (RFC 9000 §9.6). Datagrams to it must arrive at the same endpoint, and the system must report
    /// the local addresses of datagrams. Not offered without connection IDs. Default `None`.
    pub preferred_address_v4: Option<SocketAddrV4>,
    /// As [`preferred_address_v4`](Self::preferred_address_v4), for clients over IPv6.
    pub preferred_address_v6: Option<SocketAddrV6>,
    /// Hands TLS work out through [`Endpoint::poll_tls_task`](crate::Endpoint::poll_tls_task)
    /// instead of running it where a packet is received. The embedder must run it. Default off.
    pub offload_tls: bool,
    /// Versions of QUIC that the server accepts and offers, the preferred one first. Not empty.
    /// Default [`Versions::ALL`].
    pub versions: Versions,
    /// Moves clients to the server's most preferred version among those that the client supports
    /// (RFC 9368 §2.3). Default off: a connection stays in the version in which the client began.
    pub moves_clients: bool,
}

impl ServerConfig {
    /// Creates the default settings around a TLS configuration.
    pub fn new(tls: Arc<dyn ServerTls>) -> Self {
        Self {
            tls,
            transport: Arc::new(TransportConfig::default()),
            retry: RetryPolicy::Auto,
            max_incoming: 16_384,
            max_incoming_bytes: 32 * 1024 * 1024,
            max_incoming_delay: Duration::from_millis(200),
            half_open_bytes: None,
            connection_rate: None,
            loaded_connection_rate: None,
            new_tokens: 2,
            token_key: None,
            retry_token_lifetime: RETRY_LIFETIME,
            new_token_lifetime: VALIDATION_LIFETIME,
            token_log: None,
            time_of_day: None,
            incoming_bytes_per_client: None,
            max_early_data: 65_536,
            migration: true,
            preferred_address_v4: None,
            preferred_address_v6: None,
            offload_tls: false,
            versions: Versions::ALL,
            moves_clients: false,
        }
    }

    /// Checks that every value is within its range. [`EndpointConfig::validate_server`](crate::EndpointConfig::validate_server)
    /// also compares them with those of the endpoint.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] contains the field, its value and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.transport.validate()?;
        check_versions(self.versions)?;
        let most = usize::MAX as u64;
        check("max_incoming", self.max_incoming as u64, 1, most)?;
        let bytes = self.max_incoming_bytes as u64;
        check(
            "max_incoming_bytes",
            bytes,
            MIN_INITIAL_DATAGRAM as u64,
            most,
        )?;
        if let Some(bytes) = self.incoming_bytes_per_client {
            let least = MIN_INITIAL_DATAGRAM as u64;
            check("incoming_bytes_per_client", bytes as u64, least, most)?;
        }
        for (field, lifetime) in [
            ("retry_token_lifetime (s)", self.retry_token_lifetime),
            ("new_token_lifetime (s)", self.new_token_lifetime),
        ] {
            check(field, lifetime.as_secs(), 1, MAX_TOKEN_LIFETIME)?;
        }
        for (field, rate) in [
            ("connection_rate", self.connection_rate),
            ("loaded_connection_rate", self.loaded_connection_rate),
        ] {
            if let Some(rate) = rate {
                check(field, rate.into(), 1, MAX_CONNECTION_RATE)?;
            }
        }
        Ok(())
    }

    /// Returns the rate at which one address may open connections now.
    pub(crate) fn rate(&self, is_loaded: bool) -> Option<u32> {
        let loaded = self.loaded_connection_rate.filter(|_| is_loaded);
        self.connection_rate.into_iter().chain(loaded).min()
    }
}

/// Lifetime of a Retry token, which the client returns at once (limit K23).
pub(crate) const RETRY_LIFETIME: Duration = Duration::from_secs(10);
/// Lifetime of a token from NEW_TOKEN (limit K23).
pub(crate) const VALIDATION_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest lifetime of tokens in seconds: ten years.
const MAX_TOKEN_LIFETIME: u64 = 10 * 365 * 24 * 60 * 60;

/// The highest configurable rate of connections: more than one machine can accept.
const MAX_CONNECTION_RATE: u64 = 1_000_000;

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("transport", &self.transport)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}
