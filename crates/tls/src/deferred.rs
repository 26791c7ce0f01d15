//! Server sessions that wait for the ClientHello before TLS starts. RFC 9368 §2.3.

use std::net::IpAddr;

use courser_crypto::{
    Answer, EncryptionLevel, Exporter, HandshakeData, KeyChange, Secret, ServerTls, TlsError,
    TlsSession,
};

use crate::client_hello;

/// A session that starts when the ClientHello is complete, because the version and the transport
/// parameters of the server depend on it.
pub(crate) enum Deferred {
    /// Waits for the rest of the ClientHello.
    Waiting {
        server: Box<dyn ServerTls>,
        answer: Option<Answer>,
        hello: Vec<u8>,
        client: Option<IpAddr>,
    },
    /// TLS runs. All calls are passed to its session.
    Started(Box<dyn TlsSession>),
    /// TLS could not start. All reads return the error.
    Failed(TlsError),
}

impl Deferred {
    pub(crate) fn new(server: impl ServerTls + 'static, answer: Answer) -> Self {
        Self::Waiting {
            server: Box::new(server),
            answer: Some(answer),
            hello: Vec::new(),
            client: None,
        }
    }

    fn started(&self) -> Option<&dyn TlsSession> {
        match self {
            Self::Started(session) => Some(&**session),
            _ => None,
        }
    }
}

impl TlsSession for Deferred {
    fn set_client(&mut self, address: IpAddr) {
        match self {
            Self::Waiting { client, .. } => *client = Some(address),
            Self::Started(session) => session.set_client(address),
            Self::Failed(_) => {}
        }
    }

    fn read(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        let (server, answer, hello, client) = match self {
            Self::Started(session) => return session.read(level, data),
            Self::Failed(error) => return Err(error.clone()),
            Self::Waiting {
                server,
                answer,
                hello,
                client,
            } => (server, answer, hello, *client),
        };
        if level != EncryptionLevel::Initial {
            return Err(TlsError::protocol_violation(format!(
                "CRYPTO data at level {level:?} before a ClientHello"
            )));
        }
        hello.extend_from_slice(data);
        // A longer message is passed on, and TLS refuses it.
        if client_hello::is_incomplete(hello) && hello.len() <= MAX_CLIENT_HELLO {
            return Ok(());
        }
        let hello = std::mem::take(hello);
        let Some(answer) = answer.take() else {
            return Ok(());
        };
        let (version, parameters) = answer(client_hello::transport_parameters(&hello));
        match server.start_in_version(version, parameters) {
            Ok(mut session) => {
                if let Some(client) = client {
                    session.set_client(client);
                }
                let read = session.read(level, &hello);
                *self = Self::Started(session);
                read
            }
            Err(error) => {
                let error = TlsError::internal(error.to_string());
                *self = Self::Failed(error.clone());
                Err(error)
            }
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        match self {
            Self::Started(session) => session.write(out),
            _ => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.started().is_none_or(TlsSession::is_handshaking)
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.started()?.peer_transport_parameters()
    }

    fn handshake_data(&self) -> HandshakeData {
        let data = self.started().map(TlsSession::handshake_data);
        data.unwrap_or_default()
    }

    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.started()?.peer_certificates()
    }

    fn exporter(&self) -> Option<Exporter> {
        self.started()?.exporter()
    }

    fn take_early_secret(&mut self) -> Option<Secret> {
        match self {
            Self::Started(session) => session.take_early_secret(),
            _ => None,
        }
    }

    fn is_early_data_accepted(&self) -> bool {
        self.started()
            .is_some_and(TlsSession::is_early_data_accepted)
    }

    fn on_version(&mut self, version: u32) {
        if let Self::Started(session) = self {
            session.on_version(version);
        }
    }

    fn can_be_dropped(&self) -> bool {
        self.started().is_some_and(TlsSession::can_be_dropped)
    }
}

/// Maximum length of a ClientHello that is buffered until it is complete (limit K170). rustls
/// refuses longer messages.
const MAX_CLIENT_HELLO: usize = 64 * 1024;

#[cfg(test)]
mod tests;
