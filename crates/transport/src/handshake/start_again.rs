//! A client that begins again in another version. RFC 9368 §2.1.

use bytes::Bytes;
use courser_base::foreign::Foreign;
use courser_crypto::{TicketOrigin, TlsStartError};
use courser_wire::{ConnectionId, Version};

use super::crypto_streams::CryptoStreams;
use super::restart::Restart;
use super::step::Turn;
use super::tls::Tls;
use super::token_names::token_key;
use super::{Handshake, MAX_TOKEN};

impl Handshake {
    /// Takes a token of an earlier connection of the same version from the store.
    pub(super) fn take_token(&mut self) {
        if let Some((store, name)) = self.token_store.as_deref() {
            let token = store.take(&token_key(name, self.version.current()));
            let token = token.filter(|token| token.len() <= MAX_TOKEN);
            self.token = token.unwrap_or_default();
        }
    }

    /// Begins a client's handshake again in another version, with a first flight to `destination`
    /// (RFC 9368 §2.1).
    ///
    /// # Errors
    ///
    /// Fails if TLS does not start. The connection cannot go on then.
    pub(crate) fn start_again(
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
        self.ids.start_again(destination);
        self.token = Bytes::new();
        self.take_token();
        Ok(())
    }
}
