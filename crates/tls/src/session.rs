//! One rustls handshake as a [`TlsSession`].

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use courser_base::Side;
use courser_crypto::{
    CipherSuite, EncryptionLevel, Exporter, HandshakeData, KeyChange, Secret, TlsError, TlsSession,
};
use rustls::HandshakeKind;
use rustls::quic::{self, Connection};

use crate::alert::tls_error;
use crate::client_hello::ClientHelloCheck;
use crate::client_tickets::SessionTickets;
use crate::ech::Ech;
use crate::secrets::Secrets;

/// A TLS session of a client or a server.
pub(crate) struct Session {
    connection: Connection,
    /// The server name that the client requested. On a server it is `None`: the name comes from the
    /// ClientHello.
    server_name: Option<String>,
    /// The level at which the next bytes of the peer must arrive.
    level: EncryptionLevel,
    secrets: Secrets,
    client_hello: ClientHelloCheck,
    /// Output of rustls that the transport has not fetched yet. It is taken from rustls after every
    /// read: once rustls has the secrets of two levels, its queue mixes the bytes of both.
    pending: VecDeque<Output>,
    failure: Option<TlsError>,
    /// The tickets of a client, if they depend on the version of QUIC or on the port.
    tickets: Option<Arc<SessionTickets>>,
    /// The encryption of the ClientHello, if the client is configured with one.
    ech: Option<Ech>,
}

/// Bytes of one level and the keys that follow them.
struct Output {
    bytes: Vec<u8>,
    change: Option<KeyChange>,
}

impl Session {
    /// Wraps a connection that has not read any bytes. On a client, `server_name` is the name of
    /// the server. `secrets` are those that rustls has logged so far.
    pub(crate) fn new(
        connection: Connection,
        server_name: Option<String>,
        secrets: Secrets,
    ) -> Self {
        Self {
            connection,
            server_name,
            level: EncryptionLevel::Initial,
            secrets,
            client_hello: ClientHelloCheck::default(),
            pending: VecDeque::new(),
            failure: None,
            tickets: None,
            ech: None,
        }
    }

    /// Sets the encryption of the ClientHello with which the connection was created.
    pub(crate) fn set_ech(&mut self, ech: Option<Ech>) {
        self.ech = ech;
    }

    /// Sets the ticket store with which the connection was created.
    pub(crate) fn set_tickets(&mut self, tickets: Arc<SessionTickets>) {
        self.tickets = Some(tickets);
    }

    fn side(&self) -> Side {
        match self.connection {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }

    fn suite(&self) -> Option<CipherSuite> {
        suite_of(self.connection.negotiated_cipher_suite()?.suite())
    }

    fn try_read(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        if data.is_empty() {
            return Ok(());
        }
        if level != self.level {
            return Err(TlsError::protocol_violation(format!(
                "CRYPTO data at level {level:?}, expected at {:?}",
                self.level
            )));
        }
        if level == EncryptionLevel::Initial && self.side().is_server() {
            self.client_hello.on_bytes(data)?;
        }
        let was_handshaking = self.is_handshaking();
        let connection = &mut self.connection;
        if let Err(error) = self.secrets.capture(|| connection.read_hs(data)) {
            if let Some(ech) = &self.ech {
                ech.on_error(&error);
            }
            return Err(tls_error(&error, self.connection.alert(), was_handshaking));
        }
        if self.connection.negotiated_cipher_suite().is_some() && self.suite().is_none() {
            // The user's crypto provider may offer other suites, such as those for which RFC 9001
            // §5.3 defines no header protection.
            return Err(TlsError::alert(
                HANDSHAKE_FAILURE,
                "cipher suite cannot be used with QUIC",
            ));
        }
        self.collect()?;
        if !self.is_handshaking() {
            self.level = EncryptionLevel::OneRtt;
        }
        Ok(())
    }

    /// Moves the output of rustls to `pending`.
    fn collect(&mut self) -> Result<(), TlsError> {
        loop {
            let mut bytes = Vec::new();
            let change = self.connection.write_hs(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                return Ok(());
            }
            let change = change.map(|change| self.key_change(&change)).transpose()?;
            self.pending.push_back(Output { bytes, change });
        }
    }

    /// Replaces the keys of rustls with the captured secrets.
    fn key_change(&mut self, change: &quic::KeyChange) -> Result<KeyChange, TlsError> {
        let missing = || TlsError::internal("traffic secrets are missing");
        let suite = self.suite().ok_or_else(missing)?;
        let side = self.side();
        match change {
            quic::KeyChange::Handshake { .. } => {
                self.level = EncryptionLevel::Handshake;
                let secrets = self
                    .secrets
                    .take_handshake(suite, side)
                    .ok_or_else(missing)?;
                Ok(KeyChange::Handshake(secrets))
            }
            quic::KeyChange::OneRtt { .. } => {
                let secrets = self.secrets.take_one_rtt(suite, side).ok_or_else(missing)?;
                Ok(KeyChange::OneRtt(secrets))
            }
        }
    }
}

impl TlsSession for Session {
    fn set_client(&mut self, client: IpAddr) {
        self.secrets.set_client(client);
    }

    fn read(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        if self.failure.is_none() {
            self.failure = self.try_read(level, data).err();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        if self.failure.is_none() && self.pending.is_empty() {
            self.failure = self.collect().err();
        }
        if self.failure.is_some() {
            return None;
        }
        let output = self.pending.pop_front()?;
        out.extend_from_slice(&output.bytes);
        output.change
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        // A client that resumes a session starts with remembered parameters, for early data. They
        // do not apply to this connection (RFC 9000 §7.4.1).
        if self.side().is_client() && self.is_handshaking() {
            return None;
        }
        self.connection.quic_transport_parameters()
    }

    fn handshake_data(&self) -> HandshakeData {
        let server_name = match &self.connection {
            Connection::Client(_) => self.server_name.clone(),
            Connection::Server(server) => server.server_name().map(str::to_owned),
        };
        HandshakeData {
            protocol: self.connection.alpn_protocol().map(<[u8]>::to_vec),
            server_name,
            suite: self.suite(),
            key_exchange: self
                .connection
                .negotiated_key_exchange_group()
                .map(|group| format!("{:?}", group.name())),
            resumed: matches!(
                self.connection.handshake_kind(),
                Some(HandshakeKind::Resumed)
            ),
            certificate_compression: self.secrets.certificate_compression(),
            ocsp_response: self.secrets.ocsp_response().map(<[u8]>::to_vec),
            // The handshake fails if the server does not accept ECH.
            encrypted_hello: !self.is_handshaking()
                && self.ech.as_ref().is_some_and(|ech| !ech.is_grease()),
        }
    }

    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        let chain = self.connection.peer_certificates()?;
        Some(
            chain
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
        )
    }

    fn exporter(&self) -> Option<Exporter> {
        if self.is_handshaking() {
            return None;
        }
        self.secrets.exporter(self.suite()?)
    }

    fn take_early_secret(&mut self) -> Option<Secret> {
        // Without these keys the server has refused the early data, although the secret was logged.
        self.connection.zero_rtt_keys()?;
        let suite = self.suite()?;
        self.secrets.take_early(suite)
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        let is_remembered = self.side().is_client() && self.is_handshaking();
        let parameters = self.connection.quic_transport_parameters();
        parameters.filter(|_| is_remembered)
    }

    fn is_early_data_accepted(&self) -> bool {
        match &self.connection {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(_) => self.connection.zero_rtt_keys().is_some(),
        }
    }

    fn on_version(&mut self, version: u32) {
        if let Some(tickets) = &self.tickets {
            tickets.set_version(version);
        }
    }

    fn can_be_dropped(&self) -> bool {
        self.side().is_server() && !self.is_handshaking() && self.pending.is_empty()
    }
}

fn suite_of(suite: rustls::CipherSuite) -> Option<CipherSuite> {
    match suite {
        rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(CipherSuite::Aes128Gcm),
        rustls::CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(CipherSuite::Aes256Gcm),
        rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(CipherSuite::ChaCha20Poly1305),
        _ => None,
    }
}

const HANDSHAKE_FAILURE: u8 = 40;

#[cfg(test)]
mod tests;
