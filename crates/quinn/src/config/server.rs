//! Settings of servers.

use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use courser_quic as quic;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{EndpointConfig, TimeSource, TransportConfig, known_versions};
use crate::crypto::{self, HandshakeTokenKey};
use crate::token::TokenLog;
use crate::unsupported::note;

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
    /// Settings without effect, as the program has given them.
    retry_token_lifetime: Duration,
    incoming_buffer_size: u64,
    incoming_buffer_size_total: u64,
    validation_token: ValidationTokenConfig,
}

impl ServerConfig {
    /// Creates settings from those of TLS. The key of tokens has no effect: tokens are sealed with a key of the
    /// endpoint.
    pub fn new(
        crypto: Arc<dyn crypto::ServerConfig>,
        _token_key: Arc<dyn HandshakeTokenKey>,
    ) -> Self {
        note("ServerConfig::token_key");
        Self::with_crypto(crypto)
    }

    /// Creates settings from those of TLS.
    pub fn with_crypto(crypto: Arc<dyn crypto::ServerConfig>) -> Self {
        Self {
            transport: Arc::default(),
            crypto,
            migration: true,
            preferred_v4: None,
            preferred_v6: None,
            max_incoming: 1 << 16,
            retry_token_lifetime: Duration::from_secs(15),
            incoming_buffer_size: 10 << 20,
            incoming_buffer_size_total: 100 << 20,
            validation_token: ValidationTokenConfig::default(),
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

    /// Has no effect: tokens are sealed with a key of the endpoint.
    pub fn token_key(&mut self, _value: Arc<dyn HandshakeTokenKey>) -> &mut Self {
        note("ServerConfig::token_key");
        self
    }

    /// Has no effect: courser sets the lifetime of tokens in Retry packets.
    pub fn retry_token_lifetime(&mut self, value: Duration) -> &mut Self {
        note("ServerConfig::retry_token_lifetime");
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

    /// Has no effect: courser keeps the first datagrams of a client that waits, and drops later ones.
    pub fn incoming_buffer_size(&mut self, incoming_buffer_size: u64) -> &mut Self {
        note("ServerConfig::incoming_buffer_size");
        self.incoming_buffer_size = incoming_buffer_size;
        self
    }

    /// Sets the bytes that clients who wait to be accepted may hold in total, at least 1200. Default 100 MiB.
    pub fn incoming_buffer_size_total(&mut self, incoming_buffer_size_total: u64) -> &mut Self {
        self.incoming_buffer_size_total = incoming_buffer_size_total;
        self
    }

    /// Has no effect: the time of day is that of the runtime.
    pub fn time_source(&mut self, _time_source: Arc<dyn TimeSource>) -> &mut Self {
        note("ServerConfig::time_source");
        self
    }

    /// Returns the bytes that clients who wait may hold: one datagram at least.
    fn incoming_bytes(&self) -> usize {
        let bytes = usize::try_from(self.incoming_buffer_size_total).unwrap_or(usize::MAX);
        bytes.max(usize::from(super::MIN_MTU))
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
            .max_incoming_bytes(self.incoming_bytes());
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
            .field("incoming_buffer_size", &self.incoming_buffer_size)
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
            sent: 2,
        }
    }
}

impl ValidationTokenConfig {
    /// Has no effect: courser sets the lifetime of tokens.
    pub fn lifetime(&mut self, value: Duration) -> &mut Self {
        note("ValidationTokenConfig::lifetime");
        self.lifetime = value;
        self
    }

    /// Has no effect: courser detects tokens that are used twice itself.
    pub fn log(&mut self, _log: Arc<dyn TokenLog>) -> &mut Self {
        note("ValidationTokenConfig::log");
        self
    }

    /// Sets how many tokens each client is given. Default 2.
    pub fn sent(&mut self, value: u32) -> &mut Self {
        self.sent = value;
        self
    }
}
