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

/// Which file is sent, and in which form.
#[derive(Clone, Debug)]
pub(crate) struct Representation {
    /// Below the root.
    pub(crate) file: PathBuf,
    pub(crate) version: Version,
    pub(crate) kind: HeaderValue,
    /// The coding of the file on disk.
    pub(crate) coding: Coding,
    /// In which the content of the file is sent.
    pub(crate) compressed: Coding,
    /// Other clients may get the file in another coding.
    pub(crate) varies: bool,
}

impl Representation {
    /// True if it is made from this file in this state.
    pub(crate) fn is_of(&self, found: &FoundFile) -> bool {
        self.file == found.file
            && self.version == found.opened.version
            && self.coding == found.coding
    }

    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.version.last_modified()
    }

    /// The fields of a response with all of its content, of which there are `len` bytes if that is
    /// known.
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

    /// The fields that a response without content has as well.
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
        // What is there is what its name says it is.
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    }

    /// The entity tag. Content that is compressed as it is sent does not have the bytes that a strong
    /// tag stands for (RFC 9110 §8.8.1).
    pub(crate) fn tag(&self) -> Option<HeaderValue> {
        let tag = self.version.entity_tag()?;
        if self.compressed == Coding::Identity {
            return Some(tag);
        }
        HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok()
    }

    pub(crate) fn modified_text(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(httpdate::fmt_http_date(self.modified()?)).ok()
    }
}
