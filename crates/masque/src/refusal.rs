//! Answers of a proxy that open no tunnel.

use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

/// The answer of a proxy to a request that opens no tunnel.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The status of the response.
    pub status: StatusCode,
    /// Fields of the response.
    pub headers: HeaderMap,
    /// The reason, for logs.
    pub reason: Box<str>,
}

impl Refusal {
    /// Creates a refusal without fields.
    pub fn new(status: StatusCode, reason: &str) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            reason: reason.into(),
        }
    }

    pub(crate) fn malformed(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(crate) fn method(allowed: &'static str) -> Self {
        let mut refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, "no request for a tunnel");
        refusal
            .headers
            .insert(ALLOW, HeaderValue::from_static(allowed));
        refusal
    }

    /// Returns the response, with the reason in its extensions.
    pub fn into_response<B: Default>(self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response.extensions_mut().insert(self);
        response
    }
}
