//! Errors of streams.

use std::io;

use courser_quic as quic;

use crate::{ConnectionError, VarInt};

/// An error for a stream that was finished, reset or stopped before.
#[derive(Clone, PartialEq, Eq, Debug, Default, thiserror::Error)]
#[error("closed stream")]
pub struct ClosedStream {
    _private: (),
}

impl From<quic::ClosedStream> for ClosedStream {
    fn from(_: quic::ClosedStream) -> Self {
        Self::default()
    }
}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

/// The reason why bytes could not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The peer stopped reading, with this code.
    #[error("stopped by peer: code {0}")]
    Stopped(VarInt),
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was finished or reset before.
    #[error("closed stream")]
    ClosedStream,
    /// The server has refused the early data (0-RTT), and with it the stream.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<quic::WriteError> for WriteError {
    fn from(error: quic::WriteError) -> Self {
        use quic::WriteError as From;
        match error {
            From::Stopped(code) => Self::Stopped(code.into()),
            From::ConnectionLost(error) => Self::ConnectionLost(error.into()),
            From::EarlyDataRejected => Self::ZeroRttRejected,
            _ => Self::ClosedStream,
        }
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<StoppedError> for WriteError {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(error) => Self::ConnectionLost(error),
            StoppedError::ZeroRttRejected => Self::ZeroRttRejected,
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) | WriteError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            WriteError::ConnectionLost(_) | WriteError::ClosedStream => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// The reason why the outcome of a stream is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoppedError {
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The server has refused the early data (0-RTT), and with it the stream.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<quic::StoppedError> for StoppedError {
    fn from(error: quic::StoppedError) -> Self {
        match error {
            quic::StoppedError::ConnectionLost(error) => Self::ConnectionLost(error.into()),
            _ => Self::ZeroRttRejected,
        }
    }
}

impl From<StoppedError> for io::Error {
    fn from(error: StoppedError) -> Self {
        let kind = match &error {
            StoppedError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            StoppedError::ConnectionLost(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// The reason why bytes could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer reset the stream, with this code.
    #[error("reset by peer: code {0}")]
    Reset(VarInt),
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was stopped before.
    #[error("closed stream")]
    ClosedStream,
    /// The stream was read without order before, and cannot be read in order.
    #[error("ordered read after an unordered one")]
    IllegalOrderedRead,
    /// The server has refused the early data (0-RTT), and with it the stream.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<quic::ReadError> for ReadError {
    fn from(error: quic::ReadError) -> Self {
        use quic::ReadError as From;
        match error {
            From::Reset(code) => Self::Reset(code.into()),
            From::ConnectionLost(error) => Self::ConnectionLost(error.into()),
            From::Unordered => Self::IllegalOrderedRead,
            From::EarlyDataRejected => Self::ZeroRttRejected,
            _ => Self::ClosedStream,
        }
    }
}

impl From<ResetError> for ReadError {
    fn from(error: ResetError) -> Self {
        match error {
            ResetError::ConnectionLost(error) => Self::ConnectionLost(error),
            ResetError::ZeroRttRejected => Self::ZeroRttRejected,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::ConnectionLost(_) | ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::IllegalOrderedRead => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// The reason why an exact number of bytes could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
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
pub enum ReadToEndError {
    /// The stream was reset or stopped, or the connection was lost.
    #[error("read error: {0}")]
    Read(#[from] ReadError),
    /// The stream is longer than the limit.
    #[error("stream too long")]
    TooLong,
}

/// The reason why it is unknown whether the peer resets a stream.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResetError {
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The server has refused the early data (0-RTT), and with it the stream.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<ResetError> for io::Error {
    fn from(error: ResetError) -> Self {
        let kind = match &error {
            ResetError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ResetError::ConnectionLost(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}
