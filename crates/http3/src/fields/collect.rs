//! Collection and validation of the field lines of a section.

use bytes::{BufMut as _, Bytes, BytesMut};
use courser_qpack::{DecodedLine, Text, line_size};
use http::header::{CONTENT_LENGTH, COOKIE, TE};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{FieldLimits, FieldsError, LineCache};

/// The kind of message to which a field section belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Request,
    Response,
    Trailers,
}

/// Collects the field lines of a section. After the first violation it ignores further field lines, but the
/// section must still be decoded to its end to keep the dynamic table consistent.
#[derive(Debug)]
pub(crate) struct Collector<'c> {
    kind: Kind,
    limits: FieldLimits,
    pub(super) cache: &'c mut LineCache,
    pub(super) pseudo: Pseudo,
    pub(super) headers: HeaderMap,
    cookies: BytesMut,
    /// True if a `cookie` field line must not be inserted into tables, so that the joined value must not be
    /// either (RFC 9204 §7.1.3).
    has_secret_cookie: bool,
    pub(super) content_length: Option<u64>,
    size: u64,
    lines: usize,
    is_past_pseudo: bool,
    /// True if a field line must not be inserted into tables.
    has_secret: bool,
    failure: Option<FieldsError>,
}

/// The pseudo-header fields of a section.
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

    /// Adds the next field line.
    pub(crate) fn line(&mut self, line: &DecodedLine<'_>) {
        if self.failure.is_none() {
            self.failure = self.try_line(line).err();
        }
    }

    /// Returns the size of all names and values plus 32 bytes per field line, or `None` if a field line must not
    /// be inserted into tables.
    pub(crate) fn size_without_secrets(&self) -> Option<u64> {
        (!self.has_secret).then_some(self.size)
    }

    /// Ends the section. The caller then takes the collected values from the fields.
    pub(super) fn finish(&mut self) -> Result<(), FieldsError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.cookies.is_empty() {
            // It is one valid value, or joined from several.
            let mut value = HeaderValue::from_maybe_shared(self.cookies.split().freeze())
                .map_err(|_| FieldsError::Malformed("invalid field value"))?;
            value.set_sensitive(self.has_secret_cookie);
            self.headers.insert(COOKIE, value);
        }
        Ok(())
    }

    /// Returns the section as trailers.
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

    /// Adds a pseudo-header field (§4.3).
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
                FieldsError::Malformed("pseudo-header field of another kind of message"),
            ),
            _ => Err(FieldsError::Malformed("unknown pseudo-header field")),
        }
    }

    fn header(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), FieldsError> {
        if is_connection_specific(name.as_str()) {
            return Err(FieldsError::Malformed("connection-specific field"));
        }
        if name == TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers") {
            return Err(FieldsError::Malformed(
                "te with a value other than trailers",
            ));
        }
        if name == COOKIE && self.kind == Kind::Request {
            // §4.2.1: cookies are split for compression, and joined before the message is passed on.
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
                // A repeated equal value is redundant.
                Some(before) if before == length => return Ok(()),
                Some(_) => {
                    return Err(FieldsError::Malformed("different content-length values"));
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

fn once<T>(field: &mut Option<T>, value: T) -> Result<(), FieldsError> {
    if field.replace(value).is_some() {
        return Err(FieldsError::Malformed("repeated pseudo-header field"));
    }
    Ok(())
}

/// Parses a scheme (RFC 3986 §3.1): a letter, then letters, digits, `+`, `-` and `.`.
fn scheme(value: &[u8]) -> Option<Scheme> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_scheme = value.first()?.is_ascii_alphabetic() && value.iter().all(is_part);
    Scheme::try_from(value).ok().filter(|_| is_scheme)
}

/// Parses a status code: three digits of an existing class (RFC 9110 §15).
fn status(value: &[u8]) -> Option<StatusCode> {
    StatusCode::from_bytes(value)
        .ok()
        .filter(|status| status.as_u16() < 600)
}

/// Converts a field name, which must be a lower-case token (§10.3).
fn to_name(name: &[u8]) -> Result<HeaderName, FieldsError> {
    // `from_lowercase` accepts quotation marks, which a token must not contain (RFC 9110 §5.6.2).
    let name = HeaderName::from_lowercase(name).ok();
    name.filter(|name| !name.as_str().contains('"'))
        .ok_or(FieldsError::Malformed("invalid field name"))
}

/// Converts a field value (§10.3).
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

/// Parses a `content-length`, which consists of digits (RFC 9110 §8.6).
fn content_length(value: &[u8]) -> Result<u64, FieldsError> {
    let digits = std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or(FieldsError::Malformed("content-length is not a number"))
}

/// Returns true for connection-specific fields of HTTP/1.1 (§4.2).
pub fn is_connection_specific(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    )
}
