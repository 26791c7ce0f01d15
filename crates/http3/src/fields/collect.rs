//! Takes the lines of a section one by one and checks what can be checked of each.

use bytes::{BufMut as _, Bytes, BytesMut};
use courser_qpack::{DecodedLine, Text, line_size};
use http::header::{CONTENT_LENGTH, COOKIE, TE};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{FieldLimits, FieldsError, LineCache};

/// What a section is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Request,
    Response,
    Trailers,
}

/// The lines so far. The first rule that is broken is remembered, and lines after it are not kept:
/// the section has to be decoded to its end all the same, for the table's sake.
#[derive(Debug)]
pub(crate) struct Collector<'c> {
    kind: Kind,
    limits: FieldLimits,
    pub(super) cache: &'c mut LineCache,
    pub(super) pseudo: Pseudo,
    pub(super) headers: HeaderMap,
    cookies: BytesMut,
    /// One of them must not be in tables, and so not what they are joined to (RFC 9204 §7.1.3).
    has_secret_cookie: bool,
    pub(super) content_length: Option<u64>,
    size: u64,
    lines: usize,
    is_past_pseudo: bool,
    /// One of them must not be in tables.
    has_secret: bool,
    failure: Option<FieldsError>,
}

/// Pseudo-header fields.
#[derive(Debug, Default)]
pub(super) struct Pseudo {
    pub(super) method: Option<Method>,
    pub(super) scheme: Option<Scheme>,
    pub(super) authority: Option<Bytes>,
    pub(super) path: Option<Bytes>,
    pub(super) protocol: Option<Bytes>,
    pub(super) status: Option<StatusCode>,
}

impl<'c> Collector<'c> {
    pub(crate) fn new(kind: Kind, limits: FieldLimits, cache: &'c mut LineCache) -> Self {
        Self {
            kind,
            limits,
            cache,
            pseudo: Pseudo::default(),
            headers: HeaderMap::new(),
            cookies: BytesMut::new(),
            has_secret_cookie: false,
            content_length: None,
            size: 0,
            lines: 0,
            is_past_pseudo: false,
            has_secret: false,
            failure: None,
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: &DecodedLine<'_>) {
        if self.failure.is_none() {
            self.failure = self.try_line(line).err();
        }
    }

    /// Bytes of names and values and 32 for each line; `None` with a line that must not be in tables.
    pub(crate) fn size_without_secrets(&self) -> Option<u64> {
        (!self.has_secret).then_some(self.size)
    }

    /// Ends the section; what was collected is taken from its fields.
    pub(super) fn finish(&mut self) -> Result<(), FieldsError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.cookies.is_empty() {
            // Cut from a value that was one, or joined from several that were.
            let mut value = HeaderValue::from_maybe_shared(self.cookies.split().freeze())
                .map_err(|_| FieldsError::Malformed("invalid field value"))?;
            value.set_sensitive(self.has_secret_cookie);
            self.headers.insert(COOKIE, value);
        }
        Ok(())
    }

    /// As trailers.
    pub(crate) fn finish_trailers(&mut self) -> Result<HeaderMap, FieldsError> {
        self.finish()?;
        Ok(std::mem::take(&mut self.headers))
    }

    fn try_line(&mut self, line: &DecodedLine<'_>) -> Result<(), FieldsError> {
        let (name, value) = (line.name.as_bytes(), line.value.as_bytes());
        self.size += line_size(name, value) as u64;
        self.lines += 1;
        self.has_secret |= line.is_sensitive;
        if self.size > self.limits.size {
            return Err(FieldsError::TooLarge("size of all lines"));
        }
        if self.lines > self.limits.lines {
            return Err(FieldsError::TooLarge("number of lines"));
        }
        if name.len() > self.limits.name || value.len() > self.limits.value {
            return Err(FieldsError::TooLarge("one name or value"));
        }
        if name.first() == Some(&b':') {
            return self.pseudo(name, &line.value);
        }
        self.is_past_pseudo = true;
        if let Some((name, value)) = self.cache.get(line.origin) {
            return self.header(name, value);
        }
        let line_parts = (to_name(name)?, to_value(&line.value, line.is_sensitive)?);
        self.cache.insert(line.origin, &line_parts);
        self.header(line_parts.0, line_parts.1)
    }

    /// §4.3.
    fn pseudo(&mut self, name: &[u8], value: &Text<'_>) -> Result<(), FieldsError> {
        if self.kind == Kind::Trailers {
            return Err(FieldsError::Malformed("pseudo-header field in trailers"));
        }
        if self.is_past_pseudo {
            return Err(FieldsError::Malformed(
                "pseudo-header field after another field",
            ));
        }
        let is_request = self.kind == Kind::Request;
        let pseudo = &mut self.pseudo;
        match name {
            b":method" if is_request => {
                let method = Method::from_bytes(value.as_bytes());
                once(&mut pseudo.method, method.map_err(|_| BAD_PSEUDO)?)
            }
            b":scheme" if is_request => {
                let scheme = scheme(value.as_bytes()).ok_or(BAD_PSEUDO)?;
                once(&mut pseudo.scheme, scheme)
            }
            b":authority" if is_request => once(&mut pseudo.authority, value.to_bytes()),
            b":path" if is_request => once(&mut pseudo.path, value.to_bytes()),
            b":protocol" if is_request => once(&mut pseudo.protocol, value.to_bytes()),
            b":status" if self.kind == Kind::Response => {
                let status = status(value.as_bytes()).ok_or(BAD_PSEUDO)?;
                once(&mut pseudo.status, status)
            }
            b":method" | b":scheme" | b":authority" | b":path" | b":protocol" | b":status" => Err(
                FieldsError::Malformed("pseudo-header field of the other kind of message"),
            ),
            _ => Err(FieldsError::Malformed("unknown pseudo-header field")),
        }
    }

    fn header(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), FieldsError> {
        if is_connection_specific(&name) {
            return Err(FieldsError::Malformed("field of a connection of HTTP/1"));
        }
        if name == TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers") {
            return Err(FieldsError::Malformed("te other than trailers"));
        }
        if name == COOKIE && self.kind == Kind::Request {
            // §4.2.1: split for the sake of compression, joined for everybody after us.
            if !self.cookies.is_empty() {
                self.cookies.put_slice(b"; ");
            }
            self.cookies.put_slice(value.as_bytes());
            self.has_secret_cookie |= value.is_sensitive();
            return Ok(());
        }
        if name == CONTENT_LENGTH {
            let length = content_length(value.as_bytes())?;
            match self.content_length {
                // The same once more says nothing new.
                Some(before) if before == length => return Ok(()),
                Some(_) => {
                    return Err(FieldsError::Malformed("content-length values that differ"));
                }
                None => self.content_length = Some(length),
            }
        }
        self.headers
            .try_append(name, value)
            .map_err(|_| FieldsError::TooLarge("number of lines"))?;
        Ok(())
    }
}

const BAD_PSEUDO: FieldsError = FieldsError::Malformed("invalid value of a pseudo-header field");

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), FieldsError> {
    if place.replace(value).is_some() {
        return Err(FieldsError::Malformed("pseudo-header field twice"));
    }
    Ok(())
}

/// RFC 3986 §3.1: a letter, then letters, digits and three signs.
fn scheme(value: &[u8]) -> Option<Scheme> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_scheme = value.first()?.is_ascii_alphabetic() && value.iter().all(is_part);
    Scheme::try_from(value).ok().filter(|_| is_scheme)
}

/// Three digits, of a class that exists (RFC 9110 §15).
fn status(value: &[u8]) -> Option<StatusCode> {
    StatusCode::from_bytes(value)
        .ok()
        .filter(|status| status.as_u16() < 600)
}

/// §10.3: a token in lower case.
fn to_name(name: &[u8]) -> Result<HeaderName, FieldsError> {
    HeaderName::from_lowercase(name).map_err(|_| FieldsError::Malformed("invalid field name"))
}

/// §10.3.
fn to_value(value: &Text<'_>, is_sensitive: bool) -> Result<HeaderValue, FieldsError> {
    let bytes = value.as_bytes();
    let is_edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_edge(bytes.first()) || is_edge(bytes.last()) {
        return Err(FieldsError::Malformed(
            "field value with whitespace around it",
        ));
    }
    let value = match value {
        Text::Literal(text) => HeaderValue::from_bytes(text),
        text => HeaderValue::from_maybe_shared(text.to_bytes()),
    };
    let mut value = value.map_err(|_| FieldsError::Malformed("invalid field value"))?;
    value.set_sensitive(is_sensitive);
    Ok(value)
}

/// RFC 9110 §8.6: digits.
fn content_length(value: &[u8]) -> Result<u64, FieldsError> {
    let digits = std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or(FieldsError::Malformed("content-length that is no length"))
}

/// §4.2.
pub(super) fn is_connection_specific(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    )
}
