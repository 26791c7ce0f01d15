//! Conversion of messages to field lines.

use std::borrow::Cow;

use courser_qpack::{FieldLine, line_size};
use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, DATE, HOST, TE};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, StatusCode, request};

use super::collect::is_connection_specific;
use super::request::{Protocol, RequestError};

/// The field lines of a section in order, validated and ready to be encoded.
///
/// Omits connection-specific fields and those listed in `connection` (RFC 9114 §4.2), so that messages received
/// over HTTP/1.1 can be forwarded unchanged.
#[derive(Clone, Debug)]
pub struct FieldsToSend<'a> {
    pseudo: [Option<(&'static str, Cow<'a, str>)>; 5],
    headers: &'a HeaderMap,
    /// The `connection` field, which lists fields to omit.
    named: Option<&'a HeaderValue>,
    /// True if the `host` field is equal to `:authority` and omitted.
    is_host_dropped: bool,
    content_length: Option<Digits>,
    date: Option<HttpDate>,
}

/// A time in the format of the `date` field (RFC 9110 §5.6.7).
pub type HttpDate = [u8; 29];

/// A number in decimal digits.
#[derive(Clone, Copy, Debug)]
struct Digits {
    text: [u8; 20],
    begin: u8,
}

impl Digits {
    fn new(mut number: u64) -> Self {
        let mut text = [b'0'; 20];
        let mut begin = text.len();
        loop {
            begin -= 1;
            text[begin] += (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        Self {
            text,
            begin: begin as u8,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[usize::from(self.begin)..]
    }
}

impl<'a> FieldsToSend<'a> {
    /// Creates the field lines of a request.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError`] if the URI is incomplete.
    pub fn request(parts: &'a request::Parts) -> Result<Self, RequestError> {
        let uri = &parts.uri;
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let authority = uri
            .authority()
            .map(|authority| without_user(authority.as_str()));
        let authority = authority.or(host).ok_or(RequestError::NoAuthority)?;
        let protocol = parts.extensions.get::<Protocol>();
        let authority = Cow::Borrowed(authority);
        let method = Some((":method", Cow::Borrowed(parts.method.as_str())));
        let pseudo = if parts.method == Method::CONNECT && protocol.is_none() {
            if uri.port_u16().is_none() {
                return Err(RequestError::NoPort);
            }
            [method, Some((":authority", authority)), None, None, None]
        } else {
            let scheme = uri.scheme().ok_or(RequestError::NoScheme)?;
            let path = uri.path_and_query().map_or("", |path| path.as_str());
            let is_web = *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
            let path = match path.as_bytes().first() {
                None if is_web => Cow::Borrowed("/"),
                Some(b'?') if is_web => Cow::Owned(format!("/{path}")),
                _ => Cow::Borrowed(path),
            };
            [
                method,
                Some((":scheme", Cow::Borrowed(scheme.as_str()))),
                Some((":authority", authority)),
                Some((":path", path)),
                protocol.map(|protocol| (":protocol", Cow::Borrowed(protocol.as_str()))),
            ]
        };
        Ok(Self {
            pseudo,
            headers: &parts.headers,
            named: parts.headers.get(CONNECTION),
            is_host_dropped: true,
            content_length: None,
            date: None,
        })
    }

    /// Creates the field lines of a response.
    pub fn response(status: &'a StatusCode, headers: &'a HeaderMap) -> Self {
        Self {
            pseudo: [
                Some((":status", Cow::Borrowed(status.as_str()))),
                None,
                None,
                None,
                None,
            ],
            headers,
            named: headers.get(CONNECTION),
            is_host_dropped: false,
            content_length: None,
            date: None,
        }
    }

    /// Creates the field lines of trailers.
    pub fn trailers(headers: &'a HeaderMap) -> Self {
        Self {
            pseudo: [const { None }; 5],
            headers,
            named: headers.get(CONNECTION),
            is_host_dropped: false,
            content_length: None,
            date: None,
        }
    }

    /// Returns true for the fields of a request.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self.pseudo[0], Some((":method", _)))
    }

    /// Returns true for the fields of a final response.
    pub(crate) fn is_final_response(&self) -> bool {
        matches!(&self.pseudo[0], Some((":status", status)) if !status.starts_with('1'))
    }

    /// Adds a `content-length` unless the headers contain one. This is cheaper than inserting it into them.
    pub fn set_content_length(&mut self, length: u64) {
        if !self.headers.contains_key(CONTENT_LENGTH) {
            self.content_length = Some(Digits::new(length));
        }
    }

    /// Adds a `date` unless the headers contain one. This is cheaper than inserting it into them.
    pub fn set_date(&mut self, date: HttpDate) {
        if !self.headers.contains_key(DATE) {
            self.date = Some(date);
        }
    }

    /// Returns the size of all names and values plus 32 bytes per field line.
    pub fn size(&self) -> u64 {
        let size = |line: FieldLine<'_>| line_size(line.name, line.value) as u64;
        self.lines().map(size).sum()
    }

    /// Returns the field lines.
    pub fn lines(&self) -> impl Iterator<Item = FieldLine<'_>> {
        let pseudo = self
            .pseudo
            .iter()
            .flatten()
            .map(|(name, value)| FieldLine::new(name.as_bytes(), value.as_bytes()));
        let (named, is_host_dropped) = (self.named, self.is_host_dropped);
        let fields = self.headers.iter().filter_map(move |(name, value)| {
            let name = name.as_str();
            let is_dropped = may_be_dropped(name)
                && (is_connection_specific(name)
                    || (is_host_dropped && name == HOST)
                    || (name == TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers")));
            if is_dropped || named.is_some_and(|named| names(named, name)) {
                return None;
            }
            Some(FieldLine {
                is_sensitive: value.is_sensitive(),
                ..FieldLine::new(name.as_bytes(), value.as_bytes())
            })
        });
        let length = self.content_length.as_ref().map(|length| {
            let name = CONTENT_LENGTH.as_str().as_bytes();
            FieldLine::new(name, length.as_bytes())
        });
        let date = self.date.as_ref();
        let date = date.map(|date| FieldLine::new(DATE.as_str().as_bytes(), date));
        pseudo.chain(length).chain(date).chain(fields)
    }
}

/// Returns false for most field names by their first letter, so that they are not examined further. Each section
/// is iterated several times.
fn may_be_dropped(name: &str) -> bool {
    matches!(
        name.as_bytes().first(),
        Some(b'c' | b'h' | b'k' | b'p' | b't' | b'u')
    )
}

/// Returns the authority without user information (§4.3.1).
fn without_user(authority: &str) -> &str {
    // Authorities are too short for an optimised search.
    let at = authority.bytes().rposition(|byte| byte == b'@');
    at.map_or(authority, |at| &authority[at + 1..])
}

/// Returns true if a `connection` field lists `name` (RFC 9110 §7.6.1). It cannot remove `te` and cookies.
fn names(connection: &HeaderValue, name: &str) -> bool {
    let Ok(options) = connection.to_str() else {
        return false;
    };
    name != COOKIE.as_str()
        && options
            .split(',')
            .any(|option| option.trim().eq_ignore_ascii_case(name) && name != TE.as_str())
}
