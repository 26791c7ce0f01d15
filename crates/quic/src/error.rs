//! Errors: one small enum per kind of call.
//!
//! [`ConnectionError`] is the reason why a connection is over. The enums here wrap it where a call
//! can also fail for other reasons. They answer common questions by methods: `connection_error`,
//! `is_retryable`, `is_timeout`, `is_reset`.

use std::io;
use std::net::SocketAddr;

use courser_transport::{ClosedStream, ConnectionError, ConnectionIdError};

use courser_wire::VarInt;

use crate::via::Via;

/// The reason why an endpoint could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The socket could not be bound, or there is no tokio runtime.
    #[error("cannot open the socket: {0}")]
    Io(#[from] io::Error),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// An error of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The TLS configuration cannot be used. The text names a remedy.
    #[error("TLS: {0}")]
    Tls(String),
    /// A transport setting is outside its range.
    #[error("transport: {0}")]
    Transport(#[from] courser_transport::ConfigError),
    /// A limit of a server is outside its range.
    #[error("limits: {0}")]
    Limits(courser_transport::ConfigError),
    /// A certificate or key could not be read or created.
    #[error("identity: {0}")]
    Identity(String),
}

/// The reason why a connection could not be started. Nothing was sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed, or its runtime is gone.
    #[error("the endpoint is closed")]
    EndpointStopping,
    /// There is no client configuration: pass one to `connect_with`, or set a default.
    #[error("no client configuration: use connect_with or set_default_client_config")]
    NoDefaultClientConfig,
    /// The peer is unreachable from this socket: port 0, unspecified address, or wrong family.
    #[error("cannot connect to {0} from this socket")]
    InvalidRemoteAddress(SocketAddr),
    /// The name is neither a DNS name nor an IP address.
    #[error("invalid server name '{0}'")]
    InvalidServerName(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No connection ID is free or, without connection IDs, there is a connection to that address.
    #[error("no free connection ID")]
    CidsExhausted,
    /// The generator of connection IDs is faulty.
    #[error(transparent)]
    ConnectionIds(#[from] ConnectionIdError),
}

impl ConnectError {
    /// Returns `None`: no connection was started, so none was lost. It exists because all errors of a connection
    /// have it.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        None
    }

    /// Returns false: nothing was sent, so no timeout has expired.
    pub fn is_timeout(&self) -> bool {
        false
    }

    /// Returns true if another attempt from this endpoint may succeed, because connection IDs become free. All
    /// other errors remain until the program changes an argument or opens another endpoint.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::CidsExhausted)
    }
}

/// The reason why a connection did not move to another local address. It stays on its path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The address is not one of this machine, not one of the socket, or of another family than that
    /// of the server.
    #[error("the socket cannot send from this address")]
    Address,
    /// The rules of RFC 9000 §9 do not allow it now.
    #[error(transparent)]
    Refused(#[from] courser_transport::MigrateError),
    /// The server did not answer on the new path within three probe timeouts.
    #[error("no answer on the new path")]
    NoAnswer,
    /// A later move has replaced this one.
    #[error("another move has begun")]
    Replaced,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl MigrateError {
    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the connection was lost because of a timeout. It is false if only the move was not
    /// answered in time.
    pub fn is_timeout(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_timeout)
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true.
    pub fn is_retryable(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_retryable)
    }
}

/// The reason why a connection did not open a further path. The paths that are open stay so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenPathError {
    /// The address is not one of this machine, not one of the socket, or of another family than that
    /// of the server.
    #[error("the socket cannot send from this address")]
    Address,
    /// There is no socket for the interface or the address, for this reason of the system.
    #[error("cannot send through it: {reason}")]
    Socket {
        /// The interface or the address.
        via: Via,
        /// What the system has reported.
        reason: String,
    },
    /// The rules of RFC 10069 §3.1 do not allow it now.
    #[error(transparent)]
    Refused(#[from] courser_transport::OpenPathError),
    /// The server did not answer on the path within three probe timeouts, or has given it up.
    #[error("no answer on the path")]
    NoAnswer,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl OpenPathError {
    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }
}

/// The reason why no candidate for a direct path could be offered, or no round could start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfferCandidateError {
    /// It is not possible now.
    #[error(transparent)]
    Refused(#[from] courser_transport::CandidateError),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The reason why bytes could not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer stopped reading, with this error code of its application.
    #[error("stopped by the peer with code {0}")]
    Stopped(VarInt),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was finished or reset before.
    #[error("the stream is closed")]
    ClosedStream,
    /// The server has refused the early data, and with it the stream. It has read nothing of it.
    #[error("the server has refused the early data")]
    EarlyDataRejected,
    /// The stream was reset because its deadline passed. See
    /// [`SendStream::set_deadline`](crate::SendStream::set_deadline).
    #[error("the deadline of the stream has passed")]
    DeadlinePassed,
}

/// The reason why bytes could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset the stream, with this error code of its application.
    #[error("reset by the peer with code {0}")]
    Reset(VarInt),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was stopped before.
    #[error("the stream is closed")]
    ClosedStream,
    /// The stream was read with [`RecvStream::read_unordered`](crate::RecvStream::read_unordered)
    /// before, and cannot be read in order.
    #[error("the stream is read without order")]
    Unordered,
    /// The server has refused the early data, and with it the stream. It has read nothing of it.
    #[error("the server has refused the early data")]
    EarlyDataRejected,
}

/// The reason why an exact number of bytes could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended after this many bytes.
    #[error("the stream ended after {0} bytes")]
    FinishedEarly(usize),
    /// The stream was reset or stopped, or the connection was lost.
    #[error(transparent)]
    ReadError(#[from] ReadError),
}

/// The reason why a stream could not be read to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    #[error("the stream is longer than {limit} bytes")]
    TooLong {
        /// The limit of the caller.
        limit: usize,
    },
    /// The stream was reset or stopped, or the connection was lost.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The reason why the outcome of a stream is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoppedError {
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The server has refused the early data, and with it the stream. It has read nothing of it.
    #[error("the server has refused the early data")]
    EarlyDataRejected,
}

/// An error of exporting keying material: the connection is over, or the request is too long.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot export keying material: {0}")]
pub struct ExportKeyingMaterialError(pub(crate) String);

/// The reason why a datagram was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer does not accept datagrams.
    #[error("the peer does not accept datagrams")]
    UnsupportedByPeer,
    /// The configuration of this end disables datagrams.
    #[error("sending datagrams is disabled: datagram_send_buffer_size is 0")]
    Disabled,
    /// The datagram exceeds the largest size that can be sent.
    #[error("datagram of {size} bytes exceeds the limit of {max}: see max_datagram_size")]
    TooLarge {
        /// Size of the datagram in bytes.
        size: usize,
        /// Largest size that fits at present, in bytes.
        max: usize,
    },
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl SendDatagramError {
    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_timeout)
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true.
    pub fn is_retryable(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_retryable)
    }
}

impl From<std::convert::Infallible> for ConfigError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<courser_transport::SendDatagramError> for SendDatagramError {
    fn from(error: courser_transport::SendDatagramError) -> Self {
        match error {
            courser_transport::SendDatagramError::UnsupportedByPeer => Self::UnsupportedByPeer,
            courser_transport::SendDatagramError::Disabled => Self::Disabled,
            courser_transport::SendDatagramError::TooLarge { size, max } => {
                Self::TooLarge { size, max }
            }
        }
    }
}

impl WriteError {
    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::ConnectionLost(error) if error.is_timeout())
    }

    /// Returns true if the peer stopped reading the stream.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }

    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true, or if the server refused the early
    /// data, of which it has read nothing.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::EarlyDataRejected)
            || self
                .connection_error()
                .is_some_and(ConnectionError::is_retryable)
    }
}

impl ReadError {
    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::ConnectionLost(error) if error.is_timeout())
    }

    /// Returns true if the peer reset the stream.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::Reset(_))
    }

    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true, or if the server refused the early
    /// data, of which it has read nothing.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::EarlyDataRejected)
            || self
                .connection_error()
                .is_some_and(ConnectionError::is_retryable)
    }
}

impl ReadExactError {
    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::ReadError(error) if error.is_timeout())
    }

    /// Returns true if the peer reset the stream.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::ReadError(error) if error.is_reset())
    }

    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ReadError(error) => error.connection_error(),
            _ => None,
        }
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true, or if the server refused the early
    /// data, of which it has read nothing.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::ReadError(error) if error.is_retryable())
    }
}

impl ReadToEndError {
    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_timeout())
    }

    /// Returns true if the peer reset the stream.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_reset())
    }

    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::Read(error) => error.connection_error(),
            _ => None,
        }
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true, or if the server refused the early
    /// data, of which it has read nothing.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_retryable())
    }
}

impl StoppedError {
    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::ConnectionLost(error) if error.is_timeout())
    }

    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if another connection may succeed: if this one was lost for a reason for which
    /// [`ConnectionError::is_retryable`] returns true, or if the server refused the early
    /// data, of which it has read nothing.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::EarlyDataRejected)
            || self
                .connection_error()
                .is_some_and(ConnectionError::is_retryable)
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<ClosedStream> for ReadError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<StoppedError> for WriteError {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(error) => Self::ConnectionLost(error),
            StoppedError::EarlyDataRejected => Self::EarlyDataRejected,
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) | WriteError::EarlyDataRejected => {
                io::ErrorKind::ConnectionReset
            }
            WriteError::ClosedStream => io::ErrorKind::NotConnected,
            WriteError::DeadlinePassed => io::ErrorKind::TimedOut,
            WriteError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) | ReadError::EarlyDataRejected => io::ErrorKind::ConnectionReset,
            ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::Unordered => io::ErrorKind::InvalidInput,
            ReadError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<StoppedError> for io::Error {
    fn from(error: StoppedError) -> Self {
        let kind = match &error {
            StoppedError::ConnectionLost(lost) => kind_of(lost),
            StoppedError::EarlyDataRejected => io::ErrorKind::ConnectionReset,
        };
        Self::new(kind, error)
    }
}

fn kind_of(lost: &ConnectionError) -> io::ErrorKind {
    match lost {
        error if error.is_timeout() => io::ErrorKind::TimedOut,
        ConnectionError::Reset => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::NotConnected,
    }
}

#[cfg(test)]
mod tests;
