//! Failed requests to the upstream server, and the cause of each.

use std::{fmt, io};

use courser::server::{self, Cause};
use http::StatusCode;

use crate::body::BoxError;

/// A request for which there is no response of the upstream server.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) error: Option<BoxError>,
}

impl Failure {
    pub(super) fn new(cause: Cause, error: impl Into<BoxError>) -> Self {
        Self {
            cause,
            error: Some(error.into()),
        }
    }

    /// Returns the failure for another request that it concerns too.
    pub(super) fn shared(self: std::sync::Arc<Self>) -> Self {
        let cause = self.cause;
        Self::new(cause, Shared(self))
    }

    /// Returns the failure of a connection that was not established.
    pub(super) fn connecting(error: BoxError) -> Self {
        let cause = match io_error(&*error) {
            _ if find::<NameNotFound>(&*error).is_some() => Cause::UpstreamNameNotFound,
            Some(error) if is_out_of_descriptors(error) => Cause::OutOfDescriptors,
            Some(error) => match error.kind() {
                io::ErrorKind::TimedOut => Cause::UpstreamConnectTimeout,
                io::ErrorKind::ConnectionRefused => Cause::UpstreamRefused,
                io::ErrorKind::ConnectionReset => Cause::UpstreamReset,
                _ => Cause::UpstreamUnreachable,
            },
            None => Cause::UpstreamUnreachable,
        };
        Self::new(cause, error)
    }

    /// Returns the cause in the content of the request, if that is why it failed.
    pub(super) fn of_content(error: &(dyn std::error::Error + 'static)) -> Option<Cause> {
        find::<server::BodyError>(error).map(cause_of_content)
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { cause, error: None }
    }
}

/// The failure of a connection that several requests waited for.
#[derive(Debug)]
struct Shared(std::sync::Arc<Failure>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.error {
            Some(error) => error.fmt(f),
            None => self.0.cause.fmt(f),
        }
    }
}

impl std::error::Error for Shared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.as_ref()?.source()
    }
}

/// The name of the upstream server could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("the name was not found: {0}")]
pub(super) struct NameNotFound(pub(super) io::Error);

/// Returns the cause of an error of the request content. The upstream server is not the cause: the client was
/// slow (RFC 9110 §15.5.9), disconnected, or violated its protocol (RFC 9114 §4.1.2).
pub(super) const fn cause_of_content(error: &server::BodyError) -> Cause {
    match error {
        server::BodyError::TooSlow(_) => Cause::ContentTimeout,
        _ => Cause::ContentAborted,
    }
}

/// Returns the status of a response that the proxy makes for this cause.
pub(super) const fn status_of(cause: Cause) -> StatusCode {
    match cause {
        Cause::ContentTimeout => StatusCode::REQUEST_TIMEOUT,
        Cause::ContentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Cause::UpstreamConnectTimeout | Cause::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
        Cause::UpstreamBusy
        | Cause::UpstreamQueueTimeout
        | Cause::UpstreamRefusedStream
        | Cause::OutOfDescriptors => StatusCode::SERVICE_UNAVAILABLE,
        Cause::Loop => StatusCode::LOOP_DETECTED,
        Cause::UnsupportedUpgrade | Cause::NoSessionUpstream => StatusCode::NOT_IMPLEMENTED,
        Cause::InvalidRequest
        | Cause::InvalidTarget
        | Cause::InvalidHost
        | Cause::InvalidField
        | Cause::InvalidFraming
        | Cause::ConnectRefused
        | Cause::ContentAborted => StatusCode::BAD_REQUEST,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Returns the first error of type `T` in a chain of sources.
pub(super) fn find<'a, T: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a T> {
    chain(error).find_map(<dyn std::error::Error>::downcast_ref)
}

/// Returns the last I/O error of a chain of sources, which is that of the system.
fn io_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    chain(error)
        .filter_map(<dyn std::error::Error>::downcast_ref)
        .last()
}

fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        // `io::Error::source` skips the wrapped error.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn std::error::Error + 'static));
        wrapped.or_else(|| error.source())
    })
}

/// Returns true if the process or the system has no file descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    #[cfg(windows)]
    const ERRORS: [i32; 1] = [10_024]; // WSAEMFILE
    #[cfg(not(windows))]
    const ERRORS: [i32; 2] = [23, 24]; // ENFILE, EMFILE
    error
        .raw_os_error()
        .is_some_and(|code| ERRORS.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_connecting_have_causes() {
        for (error, cause) in [
            (io::Error::from_raw_os_error(24), Cause::OutOfDescriptors),
            (
                io::ErrorKind::ConnectionRefused.into(),
                Cause::UpstreamRefused,
            ),
            (
                io::ErrorKind::HostUnreachable.into(),
                Cause::UpstreamUnreachable,
            ),
            (
                io::ErrorKind::TimedOut.into(),
                Cause::UpstreamConnectTimeout,
            ),
            (
                io::Error::other(NameNotFound(io::ErrorKind::NotFound.into())),
                Cause::UpstreamNameNotFound,
            ),
        ] {
            let text = error.to_string();
            let failure = Failure::connecting(Box::new(io::Error::other(error)));
            assert_eq!(failure.cause, cause, "{text}");
        }
    }
}
