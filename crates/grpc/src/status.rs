//! The status of a call that failed without one.

use std::error::Error as StdError;
use std::io;
#[cfg(feature = "client")]
use std::sync::Arc;

use courser_http3_tokio::{Code as H3Code, Error as H3Error};
use courser_quic::{ConnectionError, VarInt};
#[cfg(feature = "client")]
use http::StatusCode;
use tonic::{Code, Status};

/// Returns the code of gRPC for an error of a call, of its connection or of its body, or `None` if nothing in the error
/// has one.
///
/// Looks for a [`Status`], then for errors of HTTP/3, of HTTP/2 and of the system, in the error and in its
/// [sources](StdError::source):
///
/// | error | HTTP/3 | HTTP/2 | code |
/// |---|---|---|---|
/// | refused before it was processed | H3_REQUEST_REJECTED, GOAWAY | REFUSED_STREAM, GOAWAY | `Unavailable` |
/// | cancelled by the peer | H3_REQUEST_CANCELLED | CANCEL | `Cancelled` |
/// | too much load | H3_EXCESSIVE_LOAD | ENHANCE_YOUR_CALM | `ResourceExhausted` |
/// | security | | INADEQUATE_SECURITY | `PermissionDenied` |
/// | connection lost, closed, not established | | | `Unavailable` |
/// | header section above the limit | | | `ResourceExhausted` |
/// | any other code | all others | all others | `Internal` |
///
/// Sources: PROTOCOL-HTTP2, Errors; gRFC G2, Errors.
pub fn code_of(error: &(dyn StdError + 'static)) -> Option<Code> {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.find_map(code_of_one)
}

fn code_of_one(error: &(dyn StdError + 'static)) -> Option<Code> {
    if let Some(status) = error.downcast_ref::<Status>() {
        Some(status.code())
    } else if let Some(error) = error.downcast_ref::<H3Error>() {
        code_of_h3(error)
    } else if let Some(error) = error.downcast_ref::<ConnectionError>() {
        Some(code_of_connection(error))
    } else if let Some(error) = error.downcast_ref::<h2::Error>() {
        Some(code_of_h2(error))
    } else {
        error.is::<io::Error>().then_some(Code::Unavailable)
    }
}

/// Returns `None` if the cause is the body of a user.
fn code_of_h3(error: &H3Error) -> Option<Code> {
    Some(match error {
        H3Error::Connection(error) => code_of_connection(error),
        H3Error::Http { code, .. } => code_of_reset(*code),
        H3Error::GoingAway | H3Error::EarlyDataRejected => Code::Unavailable,
        H3Error::Fields(_) => Code::ResourceExhausted,
        H3Error::Body(error) => return code_of(&**error),
        _ => Code::Internal,
    })
}

fn code_of_reset(code: H3Code) -> Code {
    match code {
        H3Code::REQUEST_REJECTED => Code::Unavailable,
        H3Code::REQUEST_CANCELLED => Code::Cancelled,
        H3Code::EXCESSIVE_LOAD => Code::ResourceExhausted,
        _ => Code::Internal,
    }
}

fn code_of_connection(error: &ConnectionError) -> Code {
    match error {
        ConnectionError::ApplicationClosed { code, .. } => {
            let code = H3Code::from_value(VarInt::from(*code).into_inner());
            match code {
                // A server that stops closes without an error, and programs that end close with codes of their own.
                _ if code.is_no_error() => Code::Unavailable,
                H3Code::EXCESSIVE_LOAD => Code::ResourceExhausted,
                _ => Code::Internal,
            }
        }
        ConnectionError::TransportError(_) => Code::Internal,
        _ => Code::Unavailable,
    }
}

fn code_of_h2(error: &h2::Error) -> Code {
    match error.reason() {
        Some(h2::Reason::NO_ERROR) if error.is_go_away() => Code::Unavailable,
        Some(h2::Reason::REFUSED_STREAM) => Code::Unavailable,
        Some(h2::Reason::CANCEL) => Code::Cancelled,
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
        Some(h2::Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
        Some(_) => Code::Internal,
        None => Code::Unavailable,
    }
}

/// Returns the code for a response without a status, by the table of gRPC's document on HTTP statuses.
#[cfg(feature = "client")]
pub(crate) fn code_of_http(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// Returns the status in an error or its sources, which a body of tonic may have returned.
#[cfg(feature = "client")]
pub(crate) fn status_in(error: &(dyn StdError + 'static)) -> Option<Status> {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.find_map(|error| match error.downcast_ref::<H3Error>() {
        Some(H3Error::Body(error)) => status_in(&**error),
        _ => error.downcast_ref::<Status>().cloned(),
    })
}

/// Converts an error to a status, which keeps it as its source.
#[cfg(feature = "client")]
pub(crate) fn status_of<E>(error: E, otherwise: Code) -> Status
where
    E: StdError + Send + Sync + 'static,
{
    if let Some(status) = status_in(&error) {
        return status;
    }
    let code = code_of(&error).unwrap_or(otherwise);
    let mut status = Status::new(code, error.to_string());
    status.set_source(Arc::new(error));
    status
}

#[cfg(all(test, feature = "client"))]
mod tests;
