//! The causes of sessions that are not opened.

use courser::server::Cause;
use courser::webtransport::{ConnectError, Unavailable};
use courser::{ConnectionError, h3};

use crate::proxy::failure::Failure;

/// Returns the failure of a connection that was not established.
pub(super) fn of_connection(error: ConnectionError) -> Failure {
    let alert = match &error {
        ConnectionError::TransportError(own) => own.code.alert(),
        ConnectionError::ConnectionClosed(close) => close.code.alert(),
        _ => None,
    };
    let cause = match alert {
        _ if error.is_timeout() => Cause::UpstreamConnectTimeout,
        Some(NO_APPLICATION_PROTOCOL) => Cause::UpstreamWithoutSessions,
        Some(_) => Cause::UpstreamUntrusted,
        None => Cause::UpstreamUnreachable,
    };
    Failure::new(cause, error)
}

/// Returns the failure of a session on a connection that is established.
pub(super) fn of_session(error: ConnectError) -> Failure {
    let cause = match &error {
        ConnectError::Unavailable(Unavailable::TooMany(_)) => Cause::UpstreamBusy,
        ConnectError::Unavailable(Unavailable::GoingAway) => Cause::UpstreamRefusedStream,
        ConnectError::Unavailable(_) => Cause::UpstreamWithoutSessions,
        ConnectError::Request(_) => Cause::InvalidTarget,
        ConnectError::Http(h3::Error::GoingAway) => Cause::UpstreamRefusedStream,
        ConnectError::Http(error) if error.is_unprocessed() => Cause::UpstreamRefusedStream,
        ConnectError::Http(error) if error.is_timeout() => Cause::UpstreamTimeout,
        ConnectError::Http(h3::Error::Connection(_)) => Cause::UpstreamClosed,
        ConnectError::Http(_) => Cause::UpstreamReset,
        _ => Cause::UpstreamInvalidResponse,
    };
    Failure::new(cause, error)
}

/// The alert of a server without HTTP/3 (RFC 7301 §3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;
