//! The interface to TLS: handshake bytes in, handshake bytes and keys out. RFC 9001 §4.

use std::fmt;
use std::net::IpAddr;

use courser_wire::TransportErrorCode;

use crate::{CipherSuite, EncryptionLevel, Exporter, Secret, SecretPair};

/// One TLS handshake.
///
/// The transport passes in the contents of CRYPTO frames in order, level by level, and sends the
/// bytes that the session writes. The session never sees packets, and the transport never parses
/// TLS messages.
pub trait TlsSession: Send {
    /// Processes bytes of the CRYPTO stream of `level`, in order.
    ///
    /// # Errors
    /// Returns [`TlsError`] if the peer violated the protocol. The session is unusable afterwards
    /// and repeats the error.
    fn read(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError>;

    /// Appends the bytes to send to `out`, and returns the next keys if they are due.
    ///
    /// The bytes belong to the level before the change. Call this again until it returns `None` and
    /// appends nothing. After a failed [`TlsSession::read`] there is nothing to send.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// Returns true until the handshake is complete, which means that our Finished was sent and the
    /// peer's Finished was verified (RFC 9001 §4.1.1).
    fn is_handshaking(&self) -> bool;

    /// Returns the encoded transport parameters of the peer as soon as they were read. They are
    /// authentic once the handshake is complete. RFC 9001 §8.2.
    fn peer_transport_parameters(&self) -> Option<&[u8]>;

    /// Returns the negotiated parameters, as far as they are known.
    fn handshake_data(&self) -> HandshakeData;

    /// Returns the certificate chain of the peer in DER, its own certificate first. Returns `None`
    /// if the peer sent none. A resumed session has the chain of the original session.
    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>>;

    /// Returns the exporter, which outlives the session, or `None` before the handshake is
    /// complete.
    fn exporter(&self) -> Option<Exporter>;

    /// Fills `out` with keying material; see [`Exporter::export`].
    ///
    /// # Errors
    /// Returns [`TlsError`] before the handshake is complete, and if the label or the output is too
    /// long.
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

    /// Sets the address of the client of a server's session, before the first [`read`](Self::read). Limits by source use
    /// it. The default implementation ignores it.
    fn set_client(&mut self, client: IpAddr) {
        let _ = client;
    }

    /// Takes the secret of 0-RTT packets, which only clients send. RFC 9001 §4.6.
    ///
    /// A client that resumes a session has it as soon as the session starts. A server has it as
    /// soon as it has read the ClientHello, if it accepts early data. The default implementation returns
    /// `None`.
    fn take_early_secret(&mut self) -> Option<Secret> {
        None
    }

    /// Returns the encoded transport parameters that the server sent on the resumed connection.
    /// They apply to early data only (RFC 9000 §7.4.1). A server has none.
    fn remembered_parameters(&self) -> Option<&[u8]> {
        None
    }

    /// Returns true once it is known that the server accepts the early data of this connection. On
    /// a client the answer is final when the peer's transport parameters are available.
    fn is_early_data_accepted(&self) -> bool {
        false
    }

    /// Sets the version of QUIC that was negotiated, which may differ from the one in which the handshake
    /// started. Tickets belong to it (RFC 9369 §5). The default implementation ignores it.
    fn on_version(&mut self, version: u32) {
        let _ = version;
    }

    /// Returns true if no data that may still arrive needs the session: on a server with a complete
    /// handshake whose tickets have been written. A client keeps its session to receive tickets.
    ///
    /// After dropping the session, answer further CRYPTO data with the alert
    /// [`UNEXPECTED_MESSAGE`]: a client has nothing left to send (RFC 9001 §6).
    fn can_be_dropped(&self) -> bool;
}

/// New keys that [`TlsSession::write`] returns.
#[derive(Debug)]
pub enum KeyChange {
    /// Handshake keys. From now on bytes are read and written at the Handshake level.
    Handshake(SecretPair),
    /// 1-RTT keys. From now on bytes are written at the 1-RTT level. A server must not open packets
    /// with these keys before the handshake is complete (RFC 9001 §5.7).
    OneRtt(SecretPair),
}

/// The parameters that a handshake negotiated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandshakeData {
    /// The application protocol (ALPN).
    pub protocol: Option<Vec<u8>>,
    /// The server name that the client requested (SNI). On a client it is the name passed to
    /// [`ClientTls::start`], even if that is an IP address, which is not sent.
    pub server_name: Option<String>,
    /// The cipher suite. `None` until it is negotiated.
    pub suite: Option<CipherSuite>,
    /// The name of the key exchange group, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True if an earlier session was resumed.
    pub resumed: bool,
    /// True on a client whose ClientHello was encrypted, and accepted by the server (RFC 9849).
    pub encrypted_hello: bool,
    /// On a client, the algorithm with which the server has compressed its certificate (RFC 8879), such as
    /// `zlib`. `None` if it has not, after a resumption, and with a custom TLS configuration.
    pub certificate_compression: Option<&'static str>,
    /// On a client, the OCSP response that the server has stapled to its certificate (RFC 6066 §8), in DER
    /// and not verified. `None` with a custom TLS configuration, and if it is longer than 16 KiB.
    pub ocsp_response: Option<Vec<u8>>,
}

/// An error that ends the connection: the peer violated TLS or the rules of RFC 9001 about TLS, or
/// TLS failed locally.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsError {
    /// The alert that becomes CRYPTO_ERROR (RFC 9001 §4.8). `None` if RFC 9001 requires
    /// PROTOCOL_VIOLATION instead.
    pub alert: Option<u8>,
    /// The cause in English, for logs and the reason phrase.
    pub message: String,
}

impl TlsError {
    /// Creates an error with a TLS alert.
    pub fn alert(alert: u8, message: impl Into<String>) -> Self {
        Self {
            alert: Some(alert),
            message: message.into(),
        }
    }

    /// Creates an error that QUIC reports as PROTOCOL_VIOLATION.
    pub fn protocol_violation(message: impl Into<String>) -> Self {
        Self {
            alert: None,
            message: message.into(),
        }
    }

    /// Creates an error with the alert internal_error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::alert(INTERNAL_ERROR, message)
    }

    /// Returns the error code that closes the connection.
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
    /// Starts a handshake with the server named `server_name`, a DNS name or an IP address.
    /// `parameters` are the encoded transport parameters.
    ///
    /// # Errors
    /// Returns [`TlsStartError`] if the name is neither, or if the configuration is unusable.
    fn start(
        &self,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError>;

    /// Starts a handshake that offers tickets of the server at `origin` only. Tickets that arrive are
    /// stored for it.
    ///
    /// By default all servers of a name and all versions share tickets.
    ///
    /// # Errors
    /// As [`ClientTls::start`].
    fn start_with_tickets_of(
        &self,
        origin: TicketOrigin<'_>,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let _ = origin;
        self.start(server_name, parameters)
    }
}

/// The origin of the tickets that a session of a client may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TicketOrigin<'a> {
    /// The server, identified by name and port: different ports of one host are different servers, which
    /// cannot decrypt each other's tickets.
    pub server: &'a str,
    /// The version of QUIC in which the session starts. Its tickets are of no use in other versions
    /// (RFC 9369 §5). [`TlsSession::on_version`] sets the version of tickets that arrive. `None` if the
    /// client offers version 1 only.
    pub version: Option<u32>,
}

/// Chooses the version of a connection and the encoded transport parameters of its server. The
/// argument is the encoded transport parameters of the client, which are not authenticated yet, or
/// `None` if its first message has none.
pub type Answer = Box<dyn FnOnce(Option<&[u8]>) -> (u32, Vec<u8>) + Send>;

/// Starts sessions of a server.
pub trait ServerTls: Send + Sync {
    /// Starts a handshake with a new client. `parameters` are the encoded transport parameters.
    ///
    /// # Errors
    /// Returns [`TlsStartError`] if the configuration is unusable.
    fn start(&self, parameters: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError>;

    /// Starts a handshake in a version of QUIC. Tickets of other versions are not accepted
    /// (RFC 9369 §5). By default all versions share tickets.
    ///
    /// # Errors
    /// As [`ServerTls::start`].
    fn start_in_version(
        &self,
        version: u32,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let _ = version;
        self.start(parameters)
    }

    /// Starts a handshake whose version and transport parameters depend on the transport parameters
    /// of the client (RFC 9368 §2.3). `answer` is called once, when the ClientHello is complete.
    ///
    /// # Errors
    /// As [`ServerTls::start`], and by default, because not every implementation can wait.
    fn start_after_hello(&self, answer: Answer) -> Result<Box<dyn TlsSession>, TlsStartError> {
        drop(answer);
        let reason = "the version cannot be negotiated";
        Err(TlsStartError::Configuration(reason.to_owned()))
    }
}

/// The local reason why a handshake could not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsStartError {
    /// The server name is neither a DNS name nor an IP address.
    InvalidServerName(String),
    /// The configuration is unusable.
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
