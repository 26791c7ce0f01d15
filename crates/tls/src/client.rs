//! TLS sessions of clients.

use std::fmt;
use std::sync::Arc;

use courser_crypto::{ClientTls, TicketOrigin, TlsSession, TlsStartError};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, Version};

use crate::client_tickets::{ClientTickets, SessionTickets};
use crate::config::{check_alpn, check_names};
use crate::ech::Ech;
use crate::error::TlsConfigError;
use crate::secrets::{Secrets, Tap};
use crate::session::Session;

/// Starts TLS sessions of a client from a rustls configuration.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    /// Tickets by server and version of QUIC.
    tickets: ClientTickets,
    /// True if sessions that only use version 1 keep their tickets in `tickets` as well, instead of
    /// the configured store.
    keeps_all_tickets: bool,
    /// Records rejections of ECH by servers.
    ech: Option<Ech>,
}

impl TlsClient {
    /// Wraps a configuration of the user, or one from [`client_config`](crate::client_config).
    ///
    /// The configuration is copied and shares the stores it refers to. Early data is disabled, and
    /// a protocol that was not offered is never accepted.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if the configuration names no application protocol or does not
    /// support TLS 1.3.
    pub fn new(config: Arc<ClientConfig>) -> Result<Self, TlsConfigError> {
        check_alpn(&config.alpn_protocols)?;
        Self::build(&config, false)
    }

    /// Wraps a configuration like [`TlsClient::new`] and offers early data (0-RTT) to servers whose
    /// tickets permit it. RFC 9001 §4.6.
    ///
    /// # Errors
    /// As [`TlsClient::new`].
    pub fn with_early_data(config: Arc<ClientConfig>) -> Result<Self, TlsConfigError> {
        check_alpn(&config.alpn_protocols)?;
        Self::build(&config, true)
    }

    /// Wraps a configuration like [`TlsClient::new`], but accepts one without application protocols: both
    /// ends must agree on the protocol by another mechanism (RFC 9001 §8.1).
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if a protocol has an invalid name, or the configuration does not support
    /// TLS 1.3.
    pub fn with_optional_alpn(
        config: Arc<ClientConfig>,
        early_data: bool,
    ) -> Result<Self, TlsConfigError> {
        check_names(&config.alpn_protocols)?;
        Self::build(&config, early_data)
    }

    /// Records rejections of ECH in `ech`, which must be part of the configuration.
    #[must_use]
    pub fn with_ech_reports(mut self, ech: Option<Ech>) -> Self {
        self.ech = ech;
        self
    }

    /// Keeps the tickets of sessions that may change their version of QUIC in `tickets` instead of
    /// the configured store.
    #[must_use]
    pub fn with_tickets(mut self, tickets: ClientTickets) -> Self {
        self.tickets = tickets;
        self
    }

    /// Keeps the tickets of all sessions that start with [`ClientTls::start_with_tickets_of`] in `tickets`
    /// instead of the configured store, which does not distinguish the ports of a host.
    #[must_use]
    pub fn with_all_tickets(mut self, tickets: ClientTickets) -> Self {
        self.keeps_all_tickets = true;
        self.with_tickets(tickets)
    }

    fn build(config: &ClientConfig, early_data: bool) -> Result<Self, TlsConfigError> {
        let mut config = config.clone();
        config.enable_early_data = early_data;
        config.check_selected_alpn = true;
        config.key_log = Tap::new(config.key_log);
        let client = Self {
            config: Arc::new(config),
            tickets: ClientTickets::default(),
            keeps_all_tickets: false,
            ech: None,
        };
        // rustls checks whether versions and suites work with QUIC only when a connection starts.
        // No ticket exists for this name, so the check consumes none.
        client.connection(
            &client.config,
            ServerName::try_from("check.invalid").expect("a DNS name"),
            Vec::new(),
        )?;
        Ok(client)
    }

    fn connection(
        &self,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
        parameters: Vec<u8>,
    ) -> Result<ClientConnection, TlsConfigError> {
        // The versions of rustls differ only in the labels of keys, and courser derives keys
        // itself.
        ClientConnection::new(Arc::clone(config), Version::V1, name, parameters)
            .map_err(|error| TlsConfigError::Unusable(error.to_string()))
    }
}

impl TlsClient {
    fn session(
        &self,
        config: &Arc<ClientConfig>,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Session, TlsStartError> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| TlsStartError::InvalidServerName(server_name.to_owned()))?;
        // With early data, rustls derives the first secret here.
        let mut secrets = Secrets::default();
        let connection = secrets
            .capture(|| self.connection(config, name, parameters))
            .map_err(|error| TlsStartError::Configuration(error.to_string()))?;
        let server_name = Some(server_name.to_owned());
        let mut session = Session::new(Connection::Client(connection), server_name, secrets);
        session.set_ech(self.ech.clone());
        Ok(session)
    }
}

impl ClientTls for TlsClient {
    fn start(
        &self,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let config = Arc::clone(&self.config);
        let session = self.session(&config, server_name, parameters)?;
        Ok(Box::new(session))
    }

    fn start_with_tickets_of(
        &self,
        origin: TicketOrigin<'_>,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError> {
        if origin.version.is_none() && !self.keeps_all_tickets {
            return self.start(server_name, parameters);
        }
        let tickets = Arc::new(SessionTickets::new(&self.tickets, origin));
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::store(tickets.clone());
        let mut session = self.session(&Arc::new(config), server_name, parameters)?;
        session.set_tickets(tickets);
        Ok(Box::new(session))
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}
