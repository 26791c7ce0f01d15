//! The door to TLS: handshake bytes in, handshake bytes and keys out. RFC 9001 §4.

use std::fmt;

use courser_wire::TransportErrorCode;

use crate::{CipherSuite, EncryptionLevel, Exporter, SecretPair};

/// One TLS handshake.
///
/// The transport hands over the contents of CRYPTO frames in order, level by level, and sends
/// what the session writes. The session never sees a packet, the transport never a TLS message.
pub trait TlsSession: Send {
    /// Takes bytes of the CRYPTO stream of `level`, in order.
    ///
    /// # Errors
    /// [`TlsError`] when the peer broke a rule; the session is of no use afterwards and repeats
    /// the error.
    fn read(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError>;

    /// Appends what is to be sent, and returns the next keys if they are due.
    ///
    /// The bytes belong to the level before the change. Call again until it returns `None` and
    /// appends nothing; also after a failed [`TlsSession::read`] there is nothing to send.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// True until the handshake is complete: our Finished was sent, the peer's verified
    /// (RFC 9001 §4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The encoded transport parameters of the peer, as soon as they were read. They are
    /// authentic once the handshake is complete. RFC 9001 §8.2.
    fn peer_transport_parameters(&self) -> Option<&[u8]>;

    /// What was negotiated, as far as it is known.
    fn handshake_data(&self) -> HandshakeData;

    /// The certificate chain of the peer, DER, its own certificate first. `None` when it sent
    /// none; on a resumed session it is the chain of the first one.
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>>;

    /// Hands out the exporter, which outlives the session. `None` before the handshake is
    /// complete.
    fn exporter(&self) -> Option<Exporter>;

    /// Fills `out` with keying material; see [`Exporter::export`].
    ///
    /// # Errors
    /// [`TlsError`] before the handshake is complete, or when label or output are too long.
    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        let exporter = self
            .exporter()
            .ok_or_else(|| TlsError::internal("the handshake is not complete"))?;
        exporter
            .export(out, label, context)
            .map_err(|error| TlsError::internal(error.to_string()))
    }

    /// True when nothing that may still arrive needs the session: on a server with a complete
    /// handshake whose tickets have been written. A client keeps it to receive tickets.
    ///
    /// Whoever drops the session answers further CRYPTO data with the alert
    /// [`UNEXPECTED_MESSAGE`]: a client has nothing left to say (RFC 9001 §6).
    fn can_be_dropped(&self) -> bool;
}

/// Keys that [`TlsSession::write`] has ready.
#[derive(Debug)]
pub enum KeyChange {
    /// From now on bytes are read and written at the Handshake level.
    Handshake(SecretPair),
    /// From now on bytes are written at the 1-RTT level. A server must not open packets with
    /// these keys before the handshake is complete (RFC 9001 §5.7).
    OneRtt(SecretPair),
}

/// What a handshake negotiated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandshakeData {
    /// The application protocol (ALPN).
    pub protocol: Option<Vec<u8>>,
    /// The name that the client asked for (SNI). On a client it is the name it was given, even
    /// if that is an address, which is not sent.
    pub server_name: Option<String>,
    /// The cipher suite.
    pub suite: Option<CipherSuite>,
    /// The name of the key exchange group, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True when an earlier session was resumed.
    pub resumed: bool,
}

/// The peer broke a rule of TLS, or of RFC 9001 about TLS. It ends the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsError {
    /// The alert that becomes CRYPTO_ERROR (RFC 9001 §4.8). `None` where RFC 9001 asks for
    /// PROTOCOL_VIOLATION instead.
    pub alert: Option<u8>,
    /// For humans.
    pub message: String,
}

impl TlsError {
    /// An error that TLS has an alert for.
    pub fn alert(alert: u8, message: impl Into<String>) -> Self {
        Self {
            alert: Some(alert),
            message: message.into(),
        }
    }

    /// An error that QUIC calls PROTOCOL_VIOLATION.
    pub fn protocol_violation(message: impl Into<String>) -> Self {
        Self {
            alert: None,
            message: message.into(),
        }
    }

    /// The alert internal_error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::alert(INTERNAL_ERROR, message)
    }

    /// The error code of the connection.
    pub fn code(&self) -> TransportErrorCode {
        self.alert.map_or(
            TransportErrorCode::PROTOCOL_VIOLATION,
            TransportErrorCode::crypto,
        )
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TlsError {}

/// The TLS alert unexpected_message. RFC 8446 §6.
pub const UNEXPECTED_MESSAGE: u8 = 10;

/// The TLS alert internal_error. RFC 8446 §6.
pub const INTERNAL_ERROR: u8 = 80;

/// Starts sessions of a client.
pub trait ClientTls: Send + Sync {
    /// Starts a handshake with the server called `server_name`, a DNS name or an IP address.
    /// `parameters` are the encoded transport parameters.
    ///
    /// # Errors
    /// [`TlsStartError`] when the name is neither, or the configuration does not work.
    fn start(
        &self,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError>;
}

/// Starts sessions of a server.
pub trait ServerTls: Send + Sync {
    /// Starts a handshake with whoever comes. `parameters` are the encoded transport parameters.
    ///
    /// # Errors
    /// [`TlsStartError`] when the configuration does not work.
    fn start(&self, parameters: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError>;
}

/// A handshake could not start, for a reason that is ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsStartError {
    /// The server name is neither a DNS name nor an IP address.
    InvalidServerName(String),
    /// The configuration does not work.
    Configuration(String),
}

impl fmt::Display for TlsStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidServerName(name) => {
                write!(
                    f,
                    "server name '{name}' is neither a DNS name nor an IP address"
                )
            }
            Self::Configuration(reason) => write!(f, "cannot start TLS: {reason}"),
        }
    }
}

impl std::error::Error for TlsStartError {}
