//! A file in the form in which it is sent.

use std::path::PathBuf;
use std::time::SystemTime;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue};

use crate::coding::Coding;
use crate::find::FoundFile;
use crate::version::Version;

/// A file, and the form in which it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Representation {
    /// Path of the file below the root.
    pub(crate) file: PathBuf,
    pub(crate) version: Version,
    /// The value of `Last-Modified`.
    pub(crate) modified: Option<SystemTime>,
    pub(crate) kind: HeaderValue,
    /// The coding of the file on disk.
    pub(crate) coding: Coding,
    /// The coding that is applied to the content as it is sent.
    pub(crate) compressed: Coding,
    /// True if other clients may receive the file in another coding.
    pub(crate) varies: bool,
}

impl Representation {
    /// Returns true if this is a representation of the file in its present state.
    pub(crate) fn is_of(&self, found: &FoundFile) -> bool {
        self.file == found.file
            && self.version == found.opened.version
            && self.coding == found.coding
    }

    /// Returns the header fields of a response with the whole content, which has `len` bytes if
    /// that is known.
    pub(crate) fn headers(&self, len: Option<u64>) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, self.kind.clone());
        if let Some(len) = len {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
        }
        self.add_validators(&mut headers);
        if self.compressed == Coding::Identity {
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        for coding in [self.coding, self.compressed] {
            if coding != Coding::Identity {
                headers.insert(CONTENT_ENCODING, coding.header_value());
            }
        }
        headers
    }

    /// Adds the header fields that a response without content has as well.
    pub(crate) fn add_validators(&self, headers: &mut HeaderMap) {
        if let Some(tag) = self.tag() {
            headers.insert(ETAG, tag);
        }
        if let Some(modified) = self.modified_text() {
            headers.insert(LAST_MODIFIED, modified);
        }
        if self.varies {
            headers.insert(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
        }
        // The name determines the content type, so clients must not guess another.
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    }

    /// Returns the entity tag. It is weak for content that is compressed as it is sent, which does
    /// not have the bytes that a strong tag stands for (RFC 9110 §8.8.1).
    pub(crate) fn tag(&self) -> Option<HeaderValue> {
        let tag = self.version.entity_tag(self.coding.suffix())?;
        if self.compressed == Coding::Identity {
            return Some(tag);
        }
        HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok()
    }

    pub(crate) fn modified_text(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(httpdate::fmt_http_date(self.modified?)).ok()
    }
}
