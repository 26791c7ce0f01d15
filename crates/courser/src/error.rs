//! What can go wrong, one small enum per kind of call.
//!
//! Why a connection is over is told by [`ConnectionError`]; the enums here wrap it where a call
//! can also fail for reasons of its own. Each answers the questions that callers ask:
//! `is_timeout`, `is_reset`, `connection_error`.

use std::io;
use std::net::SocketAddr;

use courser_transport::ConnectionError;

use crate::VarInt;
use crate::incoming::Incoming;

/// An endpoint could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The socket could not be bound, or there is no tokio runtime.
    #[error("cannot open the socket: {0}")]
    Io(#[from] io::Error),
    /// The configuration does not work.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A configuration does not work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The TLS part is unusable; the text says what to change.
    #[error("TLS: {0}")]
    Tls(String),
    /// A transport setting is out of its range.
    #[error("transport: {0}")]
    Transport(#[from] courser_transport::ConfigError),
    /// A limit of a server is out of its range.
    #[error("limits: {0}")]
    Limits(courser_transport::ConfigError),
    /// A certificate or key could not be read or made.
    #[error("identity: {0}")]
    Identity(String),
}

/// A connection could not be begun; nothing was sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed, or its runtime is gone.
    #[error("the endpoint is closed")]
    EndpointStopping,
    /// No client configuration: pass one to `connect_with`, or set a default.
    #[error("no client configuration: use connect_with or set_default_client_config")]
    NoDefaultClientConfig,
    /// The peer cannot be reached from this socket: port 0, no address, or the wrong family.
    #[error("cannot connect to {0} from this socket")]
    InvalidRemoteAddress(SocketAddr),
    /// The name is neither a DNS name nor an IP address.
    #[error("invalid server name '{0}'")]
    InvalidServerName(String),
    /// The configuration does not work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No connection ID is free. Without connection IDs: there is a connection to that address.
    #[error("no free connection ID")]
    CidsExhausted,
}

/// The stream was finished, reset or stopped already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, thiserror::Error)]
#[error("the stream is closed")]
pub struct ClosedStream;

/// Why bytes could not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer does not want the rest, for this reason of its application.
    #[error("stopped by the peer with code {0}")]
    Stopped(VarInt),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was finished or reset before.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why bytes could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer gave the stream up, for this reason of its application.
    #[error("reset by the peer with code {0}")]
    Reset(VarInt),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was stopped before.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why an exact number of bytes could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended after this many bytes.
    #[error("the stream ended after {0} bytes")]
    FinishedEarly(usize),
    /// Reading failed.
    #[error(transparent)]
    ReadError(#[from] ReadError),
}

/// Why a stream could not be read to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    #[error("the stream is longer than {limit} bytes")]
    TooLong {
        /// What the caller allowed.
        limit: usize,
    },
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why nothing more will be known about the end of a stream.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoppedError {
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// Keying material could not be exported: the connection is over, or the request is too long.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot export keying material: {0}")]
pub struct ExportKeyingMaterialError(pub(crate) String);

/// Why a datagram was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer takes no datagrams.
    #[error("the peer does not accept datagrams")]
    UnsupportedByPeer,
    /// Our own configuration leaves no room for datagrams.
    #[error("sending datagrams is disabled: datagram_send_buffer_size is 0")]
    Disabled,
    /// It would never fit.
    #[error("datagram of {size} bytes exceeds the limit of {max}: see max_datagram_size")]
    TooLarge {
        /// Bytes of the datagram.
        size: usize,
        /// Bytes that fit at present.
        max: usize,
    },
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// A client cannot be asked to prove its address twice.
#[derive(Debug, thiserror::Error)]
#[error("the client's address is already validated")]
pub struct RetryError(pub(crate) Box<Incoming>);

impl RetryError {
    /// Gives the incoming connection back, to be accepted or refused.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}

impl SendDatagramError {
    /// Why the connection is over, if that is the reason.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
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
    /// True when the connection was lost because time ran out.
    pub fn is_timeout(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_timeout)
    }

    /// True when the peer does not want what we send.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }

    /// Why the connection is over, if that is the reason.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }
}

impl ReadError {
    /// True when the connection was lost because time ran out.
    pub fn is_timeout(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_timeout)
    }

    /// True when the peer gave up the stream.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::Reset(_))
    }

    /// Why the connection is over, if that is the reason.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }
}

impl ReadExactError {
    /// True when the connection was lost because time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::ReadError(error) if error.is_timeout())
    }

    /// True when the peer gave up the stream.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::ReadError(error) if error.is_reset())
    }
}

impl ReadToEndError {
    /// True when the connection was lost because time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_timeout())
    }

    /// True when the peer gave up the stream.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_reset())
    }
}

impl StoppedError {
    /// True when the connection was lost because time ran out.
    pub fn is_timeout(&self) -> bool {
        let Self::ConnectionLost(error) = self;
        error.is_timeout()
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
        let StoppedError::ConnectionLost(error) = error;
        Self::ConnectionLost(error)
    }
}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) => io::ErrorKind::ConnectionReset,
            WriteError::ClosedStream => io::ErrorKind::NotConnected,
            WriteError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<StoppedError> for io::Error {
    fn from(error: StoppedError) -> Self {
        let StoppedError::ConnectionLost(lost) = &error;
        Self::new(kind_of(lost), error)
    }
}

fn kind_of(lost: &ConnectionError) -> io::ErrorKind {
    match lost {
        error if error.is_timeout() => io::ErrorKind::TimedOut,
        ConnectionError::Reset => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::NotConnected,
    }
}
