//! TLS sessions of servers.

use std::fmt;
use std::sync::Arc;

use courser_crypto::{Answer, ServerTls, TlsSession, TlsStartError};
use courser_wire::Version as QuicVersion;
use rustls::ServerConfig;
use rustls::quic::{Connection, ServerConnection, Version};

use crate::config::{check_alpn, check_names};
use crate::deferred::Deferred;
use crate::early_data::{EarlyDataOptions, EarlyLimits};
use crate::error::TlsConfigError;
use crate::secrets::{Secrets, Tap};
use crate::session::Session;
use crate::tickets::{self, VERSIONS};

/// Starts TLS sessions of a server from a rustls configuration.
#[derive(Clone)]
pub struct TlsServer {
    /// A configuration for each version of QUIC, because a ticket belongs to one version.
    configs: [Arc<ServerConfig>; VERSIONS],
}

impl TlsServer {
    /// Wraps a configuration of the user, or one from [`server_config`](crate::server_config).
    ///
    /// The configuration is copied and shares the stores it refers to. Early data is disabled.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if the configuration names no application protocol or does not
    /// support TLS 1.3.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, TlsConfigError> {
        check_alpn(&config.alpn_protocols)?;
        Self::build(ServerConfig::clone(&config), false)
    }

    /// Wraps a configuration like [`TlsServer::new`] and accepts early data (0-RTT) of clients that
    /// resume a session. RFC 9001 §4.6, RFC 8446 §8.
    ///
    /// An attacker who captures early data can replay it, unless the server detects that. Therefore
    /// tickets do not contain encrypted state: each is the name of a session that this server
    /// stores, and can be used once. [`EarlyDataOptions`] has the store and the filter.
    ///
    /// # Errors
    /// As [`TlsServer::new`].
    pub fn with_early_data(
        config: Arc<ServerConfig>,
        early_data: EarlyDataOptions,
    ) -> Result<Self, TlsConfigError> {
        check_alpn(&config.alpn_protocols)?;
        Self::with_optional_alpn(config, Some(early_data))
    }

    /// Wraps a configuration like [`TlsServer::new`], or [`TlsServer::with_early_data`] if there
    /// are options for it, but accepts one without application protocols: both ends must agree on
    /// the protocol by another mechanism (RFC 9001 §8.1). A server without protocols refuses
    /// clients that offer protocols.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if a protocol has an invalid name, or the configuration does not support
    /// TLS 1.3.
    pub fn with_optional_alpn(
        config: Arc<ServerConfig>,
        early_data: Option<EarlyDataOptions>,
    ) -> Result<Self, TlsConfigError> {
        check_names(&config.alpn_protocols)?;
        let mut config = ServerConfig::clone(&config);
        let has_early_data = early_data.is_some();
        if let Some(early_data) = early_data {
            early_data.apply(&mut config);
        }
        Self::build(config, has_early_data)
    }

    fn build(mut config: ServerConfig, early_data: bool) -> Result<Self, TlsConfigError> {
        // RFC 9001 §4.6.1: the only value that permits early data.
        config.max_early_data_size = if early_data { u32::MAX } else { 0 };
        config.key_log = Tap::new(config.key_log);
        let server = Self {
            configs: tickets::server_configs(config),
        };
        server.connection(QuicVersion::V1, Vec::new())?;
        Ok(server)
    }

    fn connection(
        &self,
        version: QuicVersion,
        parameters: Vec<u8>,
    ) -> Result<ServerConnection, TlsConfigError> {
        // The versions of rustls differ only in the labels of keys, and courser derives keys
        // itself.
        let config = Arc::clone(&self.configs[tickets::index(version)]);
        ServerConnection::new(config, Version::V1, parameters)
            .map_err(|error| TlsConfigError::Unusable(error.to_string()))
    }
}

impl ServerTls for TlsServer {
    fn start(&self, parameters: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError> {
        self.start_in_version(courser_wire::VERSION_1, parameters)
    }

    fn start_in_version(
        &self,
        version: u32,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let version = QuicVersion::from_value(version).unwrap_or(QuicVersion::V1);
        let has_early_data = self.configs[tickets::index(version)].max_early_data_size > 0;
        let limits = has_early_data.then(|| EarlyLimits::of(&parameters));
        let connection = self
            .connection(version, parameters)
            .map_err(|error| TlsStartError::Configuration(error.to_string()))?;
        Ok(Box::new(Session::new(
            Connection::Server(connection),
            None,
            Secrets::with_limits(limits),
        )))
    }

    fn start_after_hello(&self, answer: Answer) -> Result<Box<dyn TlsSession>, TlsStartError> {
        Ok(Box::new(Deferred::new(self.clone(), answer)))
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").finish_non_exhaustive()
    }
}
