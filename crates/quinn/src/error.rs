//! Errors of endpoints and connections.

use std::io;
use std::net::SocketAddr;
use std::num::TryFromIntError;

use courser_quic as quic;

use crate::close::{ApplicationClose, ConnectionClose, FrameType, TransportError};
use crate::{VarInt, VarIntBoundsExceeded};

/// The reason why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The server supports no version of QUIC that the client does.
    #[error("the peer has no version of QUIC in common with this end")]
    VersionMismatch,
    /// The peer violated the protocol, or TLS failed on this end.
    #[error(transparent)]
    TransportError(#[from] TransportError),
    /// The transport of the peer closed the connection.
    #[error("aborted by peer: {0}")]
    ConnectionClosed(ConnectionClose),
    /// The application of the peer closed the connection.
    #[error("closed by peer: {0}")]
    ApplicationClosed(ApplicationClose),
    /// The peer has lost the state of the connection.
    #[error("reset by peer")]
    Reset,
    /// No packet arrived for the idle timeout, or the handshake took too long.
    #[error("timed out")]
    TimedOut,
    /// This end closed the connection.
    #[error("closed")]
    LocallyClosed,
    /// No connection ID was free.
    #[error("no free connection ID")]
    CidsExhausted,
}

impl From<quic::ConnectionError> for ConnectionError {
    fn from(error: quic::ConnectionError) -> Self {
        use quic::ConnectionError as From;
        match error {
            From::VersionMismatch { .. } => Self::VersionMismatch,
            From::TransportError(error) => Self::TransportError(error.into()),
            From::ConnectionClosed(close) => Self::ConnectionClosed(ConnectionClose {
                error_code: close.code.into(),
                frame_type: FrameType::of(close.frame_type),
                reason: close.reason,
            }),
            From::ApplicationClosed { code, reason } => Self::ApplicationClosed(ApplicationClose {
                error_code: VarInt::from_u64_unchecked(code.value()),
                reason,
            }),
            From::Reset => Self::Reset,
            From::TimedOut | From::HandshakeTimedOut | From::PathSilent => Self::TimedOut,
            From::LocallyClosed => Self::LocallyClosed,
        }
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match &error {
            ConnectionError::TimedOut => io::ErrorKind::TimedOut,
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => {
                io::ErrorKind::ConnectionAborted
            }
            ConnectionError::VersionMismatch
            | ConnectionError::TransportError(_)
            | ConnectionError::LocallyClosed
            | ConnectionError::CidsExhausted => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The reason why a connection could not be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint was closed, or its runtime is gone.
    #[error("the endpoint is stopping")]
    EndpointStopping,
    /// No connection ID was free.
    #[error("no free connection ID")]
    CidsExhausted,
    /// The name is neither a DNS name nor an IP address.
    #[error("invalid server name: {0}")]
    InvalidServerName(String),
    /// The address cannot be reached from this socket.
    #[error("invalid remote address: {0}")]
    InvalidRemoteAddress(SocketAddr),
    /// There is no default configuration of clients.
    #[error("no default client configuration")]
    NoDefaultClientConfig,
    /// The configured version of QUIC is not supported.
    #[error("unsupported version of QUIC")]
    UnsupportedVersion,
}

impl From<quic::ConnectError> for ConnectError {
    fn from(error: quic::ConnectError) -> Self {
        use quic::ConnectError as From;
        match error {
            From::CidsExhausted | From::ConnectionIds(_) => Self::CidsExhausted,
            From::InvalidServerName(name) => Self::InvalidServerName(name),
            From::InvalidRemoteAddress(address) => Self::InvalidRemoteAddress(address),
            From::NoDefaultClientConfig => Self::NoDefaultClientConfig,
            // Settings were checked when they were made.
            _ => Self::EndpointStopping,
        }
    }
}

/// An error for a setting outside its range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The value is outside its range.
    #[error("value out of bounds")]
    OutOfBounds,
}

impl From<TryFromIntError> for ConfigError {
    fn from(_: TryFromIntError) -> Self {
        Self::OutOfBounds
    }
}

impl From<VarIntBoundsExceeded> for ConfigError {
    fn from(_: VarIntBoundsExceeded) -> Self {
        Self::OutOfBounds
    }
}

/// The reason why a datagram was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer does not accept datagrams.
    #[error("the peer does not accept datagrams")]
    UnsupportedByPeer,
    /// The configuration of this end disables datagrams.
    #[error("datagrams are disabled")]
    Disabled,
    /// The datagram exceeds [`Connection::max_datagram_size`](crate::Connection::max_datagram_size).
    #[error("datagram too large")]
    TooLarge,
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
}

impl From<quic::SendDatagramError> for SendDatagramError {
    fn from(error: quic::SendDatagramError) -> Self {
        use quic::SendDatagramError as From;
        match error {
            From::UnsupportedByPeer => Self::UnsupportedByPeer,
            From::TooLarge { .. } => Self::TooLarge,
            From::ConnectionLost(error) => Self::ConnectionLost(error.into()),
            // Also what later versions may add.
            _ => Self::Disabled,
        }
    }
}
