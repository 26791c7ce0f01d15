//! The request for a file.

use http::header::RANGE;
use http::{HeaderMap, Method, Request, Uri};

use crate::coding::{Accepted, Coding};
use crate::conditions;
use crate::memory::Ranking;

/// A request for a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) is_head: bool,
    pub(crate) has_conditions: bool,
    /// Parts are of content as it is.
    pub(crate) wants_part: bool,
    accepted: Accepted,
}

impl<'a> Asked<'a> {
    /// `None` for methods other than GET and HEAD.
    pub(crate) fn by<B>(request: &'a Request<B>) -> Option<Self> {
        let is_head = *request.method() == Method::HEAD;
        if !is_head && *request.method() != Method::GET {
            return None;
        }
        let headers = request.headers();
        let has_conditions = conditions::has_any(headers);
        Some(Self {
            uri: request.uri(),
            headers,
            is_head,
            has_conditions,
            wants_part: has_conditions && headers.contains_key(RANGE),
            accepted: Accepted::by(headers),
        })
    }

    pub(crate) fn path(&self) -> &'a str {
        self.uri.path()
    }

    /// The codings that the client accepts among these, best first.
    pub(crate) fn codings(&self, available: &[Coding]) -> impl Iterator<Item = Coding> {
        self.accepted.ranked(available)
    }

    /// True for clients that say nothing of codings, which get content as it is.
    pub(crate) fn accepts_anything(&self) -> bool {
        self.accepted == Accepted::ANYTHING
    }

    /// True for clients that accept none of these codings, nor content as it is.
    pub(crate) fn accepts_none(&self, available: &[Coding]) -> bool {
        !self.accepts_anything() && self.codings(available).next().is_none()
    }

    /// As [`codings`](Self::codings), as a number.
    pub(crate) fn ranking(&self, available: &[Coding]) -> Ranking {
        Ranking::of(self.codings(available))
    }
}
