//! Errors of sessions and their streams.

use std::io;

use courser_http3_tokio::Code;
use courser_quic as quic;
use courser_webtransport::{ApplicationCode, Closed, ExporterError};

/// The session has ended, for this reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SessionEnded(pub Closed);

/// The reason why keying material cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The label or the context is too long.
    #[error(transparent)]
    TooLong(#[from] ExporterError),
    /// The connection is over, or the output is too long.
    #[error(transparent)]
    Connection(quic::ExportKeyingMaterialError),
}

/// The reason why a stream cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer has reset the stream, with this code of its application. `None` if the code is none of an
    /// application, as when the session ends.
    #[error("reset by the peer{}", with_code(.0))]
    Reset(Option<ApplicationCode>),
    /// The session has ended.
    #[error("{0}")]
    SessionEnded(Closed),
    /// The stream was stopped before.
    #[error("the stream is closed")]
    ClosedStream,
}

/// The reason why a stream cannot be read to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stream has more bytes than this limit.
    #[error("the stream has more than {0} bytes")]
    TooLong(usize),
}

/// The reason why a stream cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer has stopped reading, with this code of its application. `None` if the code is none of an application,
    /// as when the session ends.
    #[error("stopped by the peer{}", with_code(.0))]
    Stopped(Option<ApplicationCode>),
    /// The session has ended.
    #[error("{0}")]
    SessionEnded(Closed),
    /// The stream was finished or reset before.
    #[error("the stream is closed")]
    ClosedStream,
    /// The deadline of the stream has passed.
    #[error("the deadline of the stream has passed")]
    DeadlinePassed,
    /// The group belongs to another session than the stream.
    #[error(
        "the group belongs to another session: use Session::send_group of the stream's session"
    )]
    OtherSession,
}

fn with_code(code: &Option<ApplicationCode>) -> String {
    code.map_or_else(String::new, |code| format!(" with code {code}"))
}

impl ReadError {
    /// Converts an error of the stream, which may be due to the end of the session.
    pub(crate) fn of(error: &quic::ReadError, closed: Option<Closed>) -> Self {
        match (closed, error) {
            (Some(closed), _) => Self::SessionEnded(closed),
            (None, quic::ReadError::Reset(code)) => Self::Reset(application(*code)),
            (None, quic::ReadError::ConnectionLost(_)) => {
                Self::SessionEnded(Closed::ConnectionLost)
            }
            (None, _) => Self::ClosedStream,
        }
    }
}

impl WriteError {
    /// Converts an error of the stream, which may be due to the end of the session.
    pub(crate) fn of(error: &quic::WriteError, closed: Option<Closed>) -> Self {
        match (closed, error) {
            (Some(closed), _) => Self::SessionEnded(closed),
            (None, quic::WriteError::Stopped(code)) => Self::Stopped(application(*code)),
            (None, quic::WriteError::ConnectionLost(_)) => {
                Self::SessionEnded(Closed::ConnectionLost)
            }
            (None, quic::WriteError::DeadlinePassed) => Self::DeadlinePassed,
            (None, _) => Self::ClosedStream,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            _ => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// Returns the code of the application in the code of a frame.
pub(crate) fn application(code: quic::VarInt) -> Option<ApplicationCode> {
    ApplicationCode::from_http3(Code::from_value(code.into_inner()))
}

/// Converts a code to the integer type of the transport.
pub(crate) fn var_int(code: Code) -> quic::VarInt {
    quic::VarInt::from_u64(code.value()).unwrap_or(quic::VarInt::MAX)
}
