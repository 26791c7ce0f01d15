//! Settings of servers.

use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use courser_quic as quic;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{EndpointConfig, TimeSource, TransportConfig, known_versions};
use crate::crypto::{self, HandshakeTokenKey};
use crate::token::{self, TokenLog};
use crate::unsupported::{note, warn};

/// Settings of a server: its certificate, and how it accepts connections.
#[derive(Clone)]
pub struct ServerConfig {
    /// The settings of the connections.
    pub transport: Arc<TransportConfig>,
    /// The settings of TLS.
    pub crypto: Arc<dyn crypto::ServerConfig>,
    migration: bool,
    preferred_v4: Option<SocketAddrV4>,
    preferred_v6: Option<SocketAddrV6>,
    max_incoming: usize,
    token_key: Option<[u8; 32]>,
    retry_token_lifetime: Duration,
    /// `None` until the program sets it.
    incoming_buffer_size: Option<u64>,
    incoming_buffer_size_total: u64,
    validation_token: ValidationTokenConfig,
    time_source: Option<Arc<dyn TimeSource>>,
}

impl ServerConfig {
    /// Creates settings from those of TLS, and a key for tokens.
    pub fn new(
        crypto: Arc<dyn crypto::ServerConfig>,
        token_key: Arc<dyn HandshakeTokenKey>,
    ) -> Self {
        let mut config = Self::with_crypto(crypto);
        config.token_key(token_key);
        config
    }

    /// Creates settings from those of TLS. Tokens are sealed with a random key.
    pub fn with_crypto(crypto: Arc<dyn crypto::ServerConfig>) -> Self {
        Self {
            transport: Arc::default(),
            crypto,
            migration: true,
            preferred_v4: None,
            preferred_v6: None,
            max_incoming: 1 << 16,
            token_key: None,
            retry_token_lifetime: Duration::from_secs(15),
            incoming_buffer_size: None,
            incoming_buffer_size_total: 100 << 20,
            validation_token: ValidationTokenConfig::default(),
            time_source: None,
        }
    }

    /// Creates settings with a certificate chain, the server's own first, and its key.
    ///
    /// # Errors
    /// Returns an error if the key cannot be used.
    pub fn with_single_cert(
        cert_chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let crypto = crypto::rustls::QuicServerConfig::with_single_cert(cert_chain, key)?;
        Ok(Self::with_crypto(Arc::new(crypto)))
    }

    /// Sets the settings of the connections.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// Sets how many tokens clients are given for later connections.
    pub fn validation_token_config(&mut self, config: ValidationTokenConfig) -> &mut Self {
        self.validation_token = config;
        self
    }

    /// Sets the key from which that of tokens is derived. Servers with the same key accept each other's tokens.
    pub fn token_key(&mut self, value: Arc<dyn HandshakeTokenKey>) -> &mut Self {
        self.token_key = crypto::derived_token_key(&*value);
        if self.token_key.is_none() {
            warn("ServerConfig::token_key has no effect: the key cannot seal 32 bytes");
        }
        self
    }

    /// Sets the time for which the token of a Retry packet is valid, in whole seconds, 1 s to 10 years. Default 15 s.
    pub fn retry_token_lifetime(&mut self, value: Duration) -> &mut Self {
        self.retry_token_lifetime = value;
        self
    }

    /// Allows clients to change their address. Default on.
    pub fn migration(&mut self, value: bool) -> &mut Self {
        self.migration = value;
        self
    }

    /// Asks clients that use IPv4 to move to this address. Default none.
    pub fn preferred_address_v4(&mut self, address: Option<SocketAddrV4>) -> &mut Self {
        self.preferred_v4 = address;
        self
    }

    /// Asks clients that use IPv6 to move to this address. Default none.
    pub fn preferred_address_v6(&mut self, address: Option<SocketAddrV6>) -> &mut Self {
        self.preferred_v6 = address;
        self
    }

    /// Sets how many clients may wait to be accepted, at least 1. Default 65 536.
    pub fn max_incoming(&mut self, max_incoming: usize) -> &mut Self {
        self.max_incoming = max_incoming.max(1);
        self
    }

    /// Sets the bytes that one client who waits to be accepted may hold, at least 1200. Unless it is set, eight
    /// datagrams.
    pub fn incoming_buffer_size(&mut self, incoming_buffer_size: u64) -> &mut Self {
        self.incoming_buffer_size = Some(incoming_buffer_size);
        self
    }

    /// Sets the bytes that clients who wait to be accepted may hold in total, at least 1200. Default 100 MiB.
    pub fn incoming_buffer_size_total(&mut self, incoming_buffer_size_total: u64) -> &mut Self {
        self.incoming_buffer_size_total = incoming_buffer_size_total;
        self
    }

    /// Sets the clock by which tokens are issued and expire. It is called under the lock of the endpoint, and must
    /// neither block nor use the endpoint. Default [`StdSystemTime`](crate::StdSystemTime).
    pub fn time_source(&mut self, time_source: Arc<dyn TimeSource>) -> &mut Self {
        self.time_source = Some(time_source);
        self
    }

    /// Returns the settings for courser, for an endpoint with these.
    pub(crate) fn build(&self, endpoint: &EndpointConfig) -> quic::ServerConfig {
        let parts = self.crypto.parts();
        let mut config = quic::ServerConfig::with_rustls(parts.tls)
            .alpn_optional(true)
            .transport_config(self.transport.build())
            .new_tokens(self.validation_token.sent)
            .migration(self.migration)
            .preferred_address(self.preferred_v4, self.preferred_v6)
            .max_incoming(self.max_incoming)
            .max_incoming_bytes(incoming_bytes(self.incoming_buffer_size_total))
            .incoming_bytes_per_client(self.incoming_buffer_size.map(incoming_bytes))
            .token_key(self.token_key)
            .retry_token_lifetime(token_lifetime(self.retry_token_lifetime))
            .new_token_lifetime(token_lifetime(self.validation_token.lifetime))
            .token_log(self.validation_token.log.clone().map(token::adapted_log))
            .time_of_day(self.time_source.clone().map(token::adapted_clock));
        if let Some(options) = parts.early_data {
            config = config.early_data(options);
        }
        let versions = endpoint.supported_versions.as_deref();
        match versions.map(known_versions) {
            Some(versions) if !versions.is_empty() => config.versions(versions),
            _ => config,
        }
    }
}

/// Returns a limit on the bytes of clients who wait: one datagram at least.
fn incoming_bytes(bytes: u64) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    bytes.max(usize::from(super::MIN_MTU))
}

/// Returns a lifetime of tokens that courser accepts.
fn token_lifetime(lifetime: Duration) -> Duration {
    lifetime.clamp(Duration::from_secs(1), TEN_YEARS)
}

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The bytes that a client who waits may hold with quinn.
const INCOMING_BUFFER: u64 = 10 << 20;

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("transport", &self.transport)
            .field("retry_token_lifetime", &self.retry_token_lifetime)
            .field("validation_token", &self.validation_token)
            .field("migration", &self.migration)
            .field("preferred_address_v4", &self.preferred_v4)
            .field("preferred_address_v6", &self.preferred_v6)
            .field("max_incoming", &self.max_incoming)
            .field(
                "incoming_buffer_size",
                &self.incoming_buffer_size.unwrap_or(INCOMING_BUFFER),
            )
            .field(
                "incoming_buffer_size_total",
                &self.incoming_buffer_size_total,
            )
            .finish_non_exhaustive()
    }
}

/// Settings of the tokens with which clients validate their address on a later connection.
#[derive(Clone)]
pub struct ValidationTokenConfig {
    lifetime: Duration,
    log: Option<Arc<dyn TokenLog>>,
    sent: u32,
}

impl fmt::Debug for ValidationTokenConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerValidationTokenConfig")
            .field("lifetime", &self.lifetime)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl Default for ValidationTokenConfig {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(14 * 24 * 60 * 60),
            log: None,
            sent: 2,
        }
    }
}

impl ValidationTokenConfig {
    /// Sets the time for which a token is valid, in whole seconds, 1 s to 10 years. Default two weeks.
    pub fn lifetime(&mut self, value: Duration) -> &mut Self {
        self.lifetime = value;
        self
    }

    /// Sets the log of used tokens. It is called under the lock of the endpoint, and must neither block nor use the
    /// endpoint. By default courser has its own, which accepts each token once.
    pub fn log(&mut self, log: Arc<dyn TokenLog>) -> &mut Self {
        self.log = Some(log);
        self
    }

    /// Sets how many tokens each client is given, at most 4. Default 2.
    pub fn sent(&mut self, value: u32) -> &mut Self {
        if value > 4 {
            note("ValidationTokenConfig::sent (more than 4)");
        }
        self.sent = value;
        self
    }
}
