//! The parsed parts of a request for a file.

use http::{Extensions, HeaderMap, Method, Request, Uri};

use crate::coding::{Accepted, Coding, Ranking};
use crate::{conditions, range};

/// A GET or HEAD request for a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRequest<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) extensions: &'a Extensions,
    pub(crate) is_head: bool,
    pub(crate) has_conditions: bool,
    /// True if the request asks for a part of the content. Parts are never compressed here, because they
    /// refer to the content on disk.
    pub(crate) wants_part: bool,
    accepted: Accepted,
}

impl<'a> FileRequest<'a> {
    /// Parses a request. Returns `None` for methods other than GET and HEAD.
    pub(crate) fn from_request<B>(request: &'a Request<B>) -> Option<Self> {
        let is_head = *request.method() == Method::HEAD;
        if !is_head && *request.method() != Method::GET {
            return None;
        }
        let headers = request.headers();
        let has_conditions = conditions::has_any(headers);
        Some(Self {
            uri: request.uri(),
            headers,
            extensions: request.extensions(),
            is_head,
            has_conditions,
            wants_part: has_conditions && !is_head && range::is_usable(headers),
            accepted: Accepted::from_headers(headers),
        })
    }

    pub(crate) fn path(&self) -> &'a str {
        self.uri.path()
    }

    /// Returns the codings among `available` that the client accepts, best first.
    pub(crate) fn codings(&self, available: &[Coding]) -> impl Iterator<Item = Coding> {
        self.accepted.ranked(available)
    }

    /// Returns true for clients that send no `Accept-Encoding`. They receive content without
    /// coding.
    pub(crate) fn accepts_anything(&self) -> bool {
        self.accepted == Accepted::ANYTHING
    }

    /// Returns true for clients that accept none of these codings and no content without coding.
    pub(crate) fn accepts_none(&self, available: &[Coding]) -> bool {
        !self.accepts_anything() && self.codings(available).next().is_none()
    }

    /// Returns the result of [`codings`](Self::codings) as a key for caching.
    pub(crate) fn ranking(&self, available: &[Coding]) -> Ranking {
        Ranking::of(self.codings(available))
    }
}
