//! Errors of the two directions of a stream.

use std::fmt;

use courser_http3::{self as http3, Code};
use courser_quic::{ConnectionError, ReadError, VarInt, WriteError};

/// The errors that one direction of a stream can cause. Unlike [`Error`](super::Error) it contains no response,
/// so that a body can consist of such a direction.
#[derive(Debug)]
pub(super) enum Failure {
    /// The QUIC connection is closed or lost.
    Connection(ConnectionError),
    /// A rule of HTTP/3 was violated, or the request was cancelled.
    Http {
        origin: Origin,
        code: Code,
        /// A short description; empty for errors from the peer.
        reason: &'static str,
    },
    /// The server rejected the early data.
    EarlyDataRejected,
    /// The message cannot be sent as it is.
    Request(http3::RequestError),
    /// The body to be sent returned an error.
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// The end that detected an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This end detected a violation by the peer.
    Local,
    /// The peer detected the error or cancelled the request.
    Peer,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "protocol violation by the peer",
            Self::Peer => "error from the peer",
        })
    }
}

impl Failure {
    pub(super) fn of_peer(code: VarInt) -> Self {
        Self::Http {
            origin: Origin::Peer,
            code: Code::from_value(code.into_inner()),
            reason: "",
        }
    }

    pub(super) fn closed() -> Self {
        Self::Connection(ConnectionError::LocallyClosed)
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl From<http3::RequestError> for Failure {
    fn from(error: http3::RequestError) -> Self {
        Self::Request(error)
    }
}

impl From<http3::Error> for Failure {
    fn from(error: http3::Error) -> Self {
        Self::Http {
            origin: Origin::Local,
            code: error.code,
            reason: error.reason,
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::of_peer(code),
            ReadError::ConnectionLost(error) => Self::Connection(error),
            ReadError::EarlyDataRejected => Self::EarlyDataRejected,
            _ => Self::closed(),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::of_peer(code),
            WriteError::ConnectionLost(error) => Self::Connection(error),
            WriteError::EarlyDataRejected => Self::EarlyDataRejected,
            _ => Self::closed(),
        }
    }
}

/// Converts a code to the integer type of the transport.
pub(super) fn var_int(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
