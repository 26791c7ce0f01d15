//! Errors of requests.

use courser_http3 as http3;
use courser_quic::{ConnectionError, ReadError, VarInt, WriteError};

use super::Code;
use super::body::Body;
use super::failure::{Failure, Origin};

/// An error of a request or of its connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The QUIC connection is closed or lost.
    #[error("connection lost: {0}")]
    Connection(#[from] ConnectionError),
    /// A rule of HTTP/3 was violated, or the request was cancelled.
    #[error("{origin}: {code}{}", reason_text(reason))]
    Http {
        /// The end that detected the error.
        origin: Origin,
        /// The error code that was sent.
        code: Code,
        /// A short description; empty for errors from the peer.
        reason: &'static str,
    },
    /// The request cannot be sent as it is. No part of it was sent.
    #[error("request: {0}")]
    Request(#[from] http3::RequestError),
    /// The server, or this end, is shutting down and does not serve this request. The request was not processed
    /// and can be sent on another connection.
    #[error("the connection accepts no more requests; this one was not processed")]
    GoingAway,
    /// The server rejected the early data in which the request was sent. The request was not processed and can
    /// be sent on another connection.
    #[error("the server has refused early data; the request was not processed")]
    EarlyDataRejected,
    /// The peer has not announced the [`Extension`](super::Extension).
    #[error("the peer does not support the extension")]
    Unsupported,
    /// The body to be sent returned an error.
    #[error("body: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// The server refused a CONNECT with this response.
    #[error("the server rejected the CONNECT request with {}", .0.status())]
    Refused(Box<http::Response<Body>>),
    /// The header or trailer section of the response exceeds the limit of this end.
    #[error("{0}")]
    Fields(http3::FieldsError),
}

fn reason_text(reason: &str) -> String {
    match reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    }
}

impl Error {
    /// Returns true if the idle timeout or handshake timeout of the connection expired.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Connection(error) if error.is_timeout())
    }

    /// Returns true if the request was certainly not processed, so that it can be repeated with any method (RFC
    /// 9114 §4.1.1, §5.2).
    pub fn is_unprocessed(&self) -> bool {
        match self {
            Self::GoingAway | Self::EarlyDataRejected | Self::Request(_) => true,
            Self::Http { origin, code, .. } => {
                *origin == Origin::Peer && *code == Code::REQUEST_REJECTED
            }
            _ => false,
        }
    }

    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::Connection(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the request can be repeated with any method, and may succeed then: it was not processed,
    /// because the server rejected it (H3_REQUEST_REJECTED), its stream is above the ID of a GOAWAY frame, or early
    /// data was refused.
    ///
    /// After a lost connection it is false, because the request may have been processed. An idempotent request
    /// (RFC 9110 §9.2.2) can be repeated if [`connection_error`](Self::connection_error) is
    /// [retryable](ConnectionError::is_retryable).
    pub fn is_retryable(&self) -> bool {
        self.is_unprocessed() && !matches!(self, Self::Request(_))
    }

    /// Returns true if the connection was closed without an error.
    pub fn is_clean_close(&self) -> bool {
        match self {
            Self::Connection(ConnectionError::ApplicationClosed { code, .. }) => {
                Code::from_value(VarInt::from(*code).into_inner()).is_no_error()
            }
            Self::Connection(ConnectionError::LocallyClosed) | Self::GoingAway => true,
            Self::Http { code, .. } => code.is_no_error(),
            _ => false,
        }
    }

    /// Returns the HTTP/3 error code, if there is one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Http { code, .. } => Some(*code),
            Self::Connection(ConnectionError::ApplicationClosed { code, .. }) => {
                Some(Code::from_value(VarInt::from(*code).into_inner()))
            }
            _ => None,
        }
    }

    pub(super) fn closed() -> Self {
        Self::Connection(ConnectionError::LocallyClosed)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Connection(error) => Self::Connection(error),
            Failure::Http {
                origin,
                code,
                reason,
            } => Self::Http {
                origin,
                code,
                reason,
            },
            Failure::EarlyDataRejected => Self::EarlyDataRejected,
            Failure::Request(error) => Self::Request(error),
            Failure::Body(error) => Self::Body(error),
        }
    }
}

impl From<http3::Error> for Error {
    fn from(error: http3::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Failure::from(error).into()
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Failure::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprocessed_requests_are_retryable_and_invalid_ones_are_not() {
        let http = |origin, code| Error::Http {
            origin,
            code,
            reason: "",
        };
        for (error, is_retryable) in [
            (Error::GoingAway, true),
            (Error::EarlyDataRejected, true),
            (http(Origin::Peer, Code::REQUEST_REJECTED), true),
            (http(Origin::Local, Code::REQUEST_REJECTED), false),
            (http(Origin::Peer, Code::REQUEST_CANCELLED), false),
            (Error::Connection(ConnectionError::TimedOut), false),
            (Error::Unsupported, false),
        ] {
            assert_eq!(error.is_retryable(), is_retryable, "{error}");
            let is_lost = matches!(error, Error::Connection(_));
            assert_eq!(error.connection_error().is_some(), is_lost, "{error}");
        }
    }
}
