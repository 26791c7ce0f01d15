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

/// Removes the content of a response to HEAD, and keeps its length (RFC 9110 §9.3.2). hyper would send it over HTTP/2.
pub(crate) fn without_content(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = http_body::Body::size_hint(&body).exact() {
        parts.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Response::from_parts(parts, Body::empty())
}
