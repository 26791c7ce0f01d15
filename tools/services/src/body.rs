//! Constructors of responses and bodies.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

pub use courser::files::{Body, BoxError};

/// Wraps any body in the body type that all responses share.
pub(crate) fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body::boxed(body)
}

/// Creates a response with content of this media type.
pub(crate) fn typed(
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

/// Creates a response with its status as text for humans.
pub(crate) fn plain(status: StatusCode) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", format!("{status}\n"))
}

/// Creates a response with its status and a reason as text for humans.
pub(crate) fn explained(status: StatusCode, reason: &str) -> Response<Body> {
    let text = format!("{status}: {reason}\n");
    typed(status, "text/plain; charset=utf-8", text)
}
