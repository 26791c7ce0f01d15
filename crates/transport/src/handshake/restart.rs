//! A client that begins again in another version. RFC 9368 §2.1.

use std::sync::Arc;

use bytes::Bytes;
use courser_base::foreign::Foreign;
use courser_crypto::{ClientTls, TicketOrigin, TlsStartError};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, Version};

use super::Handshake;
use super::crypto_streams::CryptoStreams;
use super::step::Turn;
use super::tls::Tls;

/// The values that a client needs for a first flight in another version.
pub(crate) struct Restart {
    pub(crate) tls: Foreign<Arc<dyn ClientTls>, true>,
    pub(crate) server_name: String,
    /// The server by name and port, for its tickets.
    pub(crate) server: String,
    pub(crate) parameters: TransportParameters,
    pub(crate) grease: Option<u64>,
}

impl Handshake {
    /// Begins a client's handshake again in another version, with a first flight to `destination`
    /// (RFC 9368 §2.1).
    ///
    /// # Errors
    ///
    /// Fails if TLS does not start. The connection cannot go on then.
    pub(crate) fn restart(
        &mut self,
        version: Version,
        destination: ConnectionId,
    ) -> Result<(), TlsStartError> {
        let unexpected = || TlsStartError::Configuration("no other version was offered".to_owned());
        let Restart {
            tls,
            server_name,
            server,
            mut parameters,
            grease,
        } = *self.restart.take().ok_or_else(unexpected)?;
        parameters.version_information = self.version.information(version);
        let mut bytes = Vec::with_capacity(256);
        parameters.encode(&mut bytes, grease);
        let origin = TicketOrigin {
            server: &server,
            version: Some(version.value()),
        };
        let session = tls.start_with_tickets_of(origin, &server_name, bytes)?;
        self.tls = Tls::Here(Foreign::new(session));
        self.turn = Turn::Write;
        self.crypto = CryptoStreams::new(self.side());
        self.ids.restart(destination);
        self.token = Bytes::new();
        self.take_token();
        Ok(())
    }
}
