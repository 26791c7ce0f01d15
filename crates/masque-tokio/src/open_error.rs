//! Errors of clients.

use courser_http3_tokio as h3;
use courser_masque::request::{self, Carrier, Refused};
use courser_masque::{InvalidTarget, InvalidTemplate, ReportedError};
use courser_quic::ConnectionError;

/// The reason why a tunnel was not opened, or a proxy not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The template of the proxy is invalid.
    #[error("the template of the proxy is invalid: {0}")]
    Template(#[from] InvalidTemplate),
    /// The target is no host and port.
    #[error("the target is invalid: {0}")]
    Target(#[from] InvalidTarget),
    /// The template makes no URI, or a field is invalid.
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
    /// The configuration of TLS cannot be used.
    #[error("{0}")]
    Config(String),
    /// The name of the proxy is not resolved, or its address not reached.
    #[error("cannot reach the proxy {proxy}: {reason}")]
    Unreachable {
        /// Host and port of the proxy.
        proxy: String,
        /// The reason of the last address.
        reason: String,
    },
    /// The handshake with the proxy has failed.
    #[error("the QUIC connection to the proxy has failed: {0}")]
    Connection(#[from] ConnectionError),
    /// The proxy has not announced extended CONNECT over HTTP/2 (RFC 8441 §3).
    #[error("the proxy does not support extended CONNECT over HTTP/2; HTTP/1.1 may work")]
    Unsupported,
    /// The proxy has refused the tunnel, or does not speak its protocol.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The request over HTTP/3 has failed.
    #[error("{0}")]
    Http3(h3::Error),
    /// The request over HTTP/2 or HTTP/1.1 has failed.
    #[error("the request to the proxy has failed: {0}")]
    Http(#[from] hyper::Error),
}

impl OpenError {
    /// Returns the error that the proxy has reported in the field Proxy-Status, such as `dns_error`.
    pub fn reported(&self) -> Option<&ReportedError> {
        match self {
            Self::Refused(Refused::Status { reported, .. }) => reported.as_ref(),
            _ => None,
        }
    }

    /// Returns the status with which the proxy has refused the tunnel.
    pub const fn status(&self) -> Option<http::StatusCode> {
        match self {
            Self::Refused(Refused::Status { status, .. }) => Some(*status),
            _ => None,
        }
    }
}

impl From<h3::Error> for OpenError {
    fn from(error: h3::Error) -> Self {
        match error {
            h3::Error::Refused(response) => {
                match request::check_response(Carrier::Http3, &response) {
                    Err(refused) => Self::Refused(refused),
                    Ok(()) => Self::Http3(h3::Error::Refused(response)),
                }
            }
            error => Self::Http3(error),
        }
    }
}
