//! Bodies of responses, whatever makes them.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

pub(super) use courser::files::{Body, BoxError};

/// Puts any body into the type that all responses have.
pub(super) fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body::boxed(body)
}

/// A response of this type.
pub(super) fn typed(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response that says its own status, for humans.
pub(super) fn plain(status: StatusCode) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", format!("{status}\n"))
}

/// A response with its status and the reason for it, for humans.
pub(super) fn explained(status: StatusCode, reason: &str) -> Response<Body> {
    let text = format!("{status}: {reason}\n");
    typed(status, "text/plain; charset=utf-8", text)
}
