//! The redirects that led to a response.

use std::fmt;

use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, Uri, Version};

/// The URLs of a response, in the [extensions](http::Response::extensions) of each response.
///
/// [`Response::url`](super::Response::url) and [`Response::history`](super::Response::history) return its parts.
#[derive(Clone, Debug)]
pub struct History {
    url: Uri,
    hops: Vec<Hop>,
}

impl History {
    pub(super) fn new(url: Uri, hops: Vec<Hop>) -> Self {
        Self { url, hops }
    }

    /// Returns the URL that the response is from, without credentials: that of the request, or of the last redirect.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// Returns the responses that were followed, oldest first.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }
}

/// A response that the client followed because it was a redirect. Its content was discarded.
#[derive(Clone)]
#[non_exhaustive]
pub struct Hop {
    /// The URL of the request, without credentials.
    pub url: Uri,
    /// The method of the request.
    pub method: Method,
    /// The status code of the redirect.
    pub status: StatusCode,
    /// The version of HTTP of the response.
    pub version: Version,
    /// The header section of the response, with its `location` and `set-cookie` fields.
    pub headers: HeaderMap,
}

impl Hop {
    /// Takes the header section of a redirect.
    pub(super) fn of<B>(parts: &Parts, response: &mut Response<B>) -> Self {
        Self {
            url: parts.uri.clone(),
            method: parts.method.clone(),
            status: response.status(),
            version: response.version(),
            headers: std::mem::take(response.headers_mut()),
        }
    }
}

impl fmt::Debug for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the header section, which may have cookies and credentials.
        f.debug_struct("Hop")
            .field("url", &self.url)
            .field("method", &self.method)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
