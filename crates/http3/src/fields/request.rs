//! Header sections of requests (§4.3.1, §4.4, RFC 9220).

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Uri, Version};
use thiserror::Error;

use super::collect::Pseudo;
use super::{Collector, FieldsError, LineCache, Target};

/// The protocol of an extended CONNECT (RFC 8441 §4, RFC 9220), stored in the extensions of the request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocol(Bytes);

impl Protocol {
    /// The WebSocket protocol (RFC 8441 §5).
    pub const WEBSOCKET: Self = Self(Bytes::from_static(b"websocket"));

    /// Creates a protocol from its upgrade token. Returns `None` if `name` is not a token.
    pub fn new(name: &str) -> Option<Self> {
        let is_token = !name.is_empty() && name.bytes().all(is_token_byte);
        is_token.then(|| Self(Bytes::copy_from_slice(name.as_bytes())))
    }

    /// Returns the upgrade token.
    pub fn as_str(&self) -> &str {
        // Tokens are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(super) fn from_bytes(name: Bytes) -> Option<Self> {
        let is_token = !name.is_empty() && name.iter().copied().all(is_token_byte);
        is_token.then_some(Self(name))
    }
}

/// Returns true for characters of a token (RFC 9110 §5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(&byte)
}

/// The reason why a request cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RequestError {
    /// The URI has no authority and there is no `host` field.
    #[error("the URI has no authority; use an absolute URI such as https://example.org/path")]
    NoAuthority,
    /// The URI has no scheme.
    #[error("the URI has no scheme; use an absolute URI such as https://example.org/path")]
    NoScheme,
    /// The URI of a CONNECT has no port.
    #[error("CONNECT needs host and port, like example.org:443")]
    NoPort,
    /// The server has not enabled extended CONNECT, or its settings have not arrived.
    #[error("the server has not enabled extended CONNECT (SETTINGS_ENABLE_CONNECT_PROTOCOL)")]
    ExtendedConnect,
    /// The field section exceeds the limit of the peer.
    #[error("the fields take {size} bytes, the peer allows {allowed}")]
    TooLarge {
        /// The size of all names and values plus 32 bytes per field line.
        size: u64,
        /// The `SETTINGS_MAX_FIELD_SECTION_SIZE` of the peer.
        allowed: u64,
    },
}

impl Collector<'_> {
    /// Returns the section as a request, and the length that its content must have. `extended_connect` is true
    /// if this end has enabled it.
    pub(crate) fn finish_request(
        &mut self,
        extended_connect: bool,
    ) -> Result<(Request<()>, Option<u64>), FieldsError> {
        self.finish()?;
        let pseudo = &mut self.pseudo;
        let method = pseudo.method.clone().ok_or(missing(":method"))?;
        let protocol = match &pseudo.protocol {
            None => None,
            Some(_) if !extended_connect || method != Method::CONNECT => {
                return Err(FieldsError::Malformed(":protocol without extended CONNECT"));
            }
            Some(name) => Some(
                Protocol::from_bytes(name.clone())
                    .ok_or(FieldsError::Malformed(":protocol is not a token"))?,
            ),
        };
        let uri = if method == Method::CONNECT && protocol.is_none() {
            connect_uri(pseudo, self.cache)?
        } else {
            uri(pseudo, &self.headers, self.cache)?
        };
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_3;
        *request.headers_mut() = std::mem::take(&mut self.headers);
        if let Some(protocol) = protocol {
            request.extensions_mut().insert(protocol);
        }
        Ok((request, self.content_length))
    }
}

/// Returns the URI of an ordinary CONNECT (§4.4).
fn connect_uri(pseudo: &Pseudo, cache: &mut LineCache) -> Result<Uri, FieldsError> {
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        return Err(FieldsError::Malformed("CONNECT with :scheme or :path"));
    }
    let text = pseudo.authority.clone().ok_or(missing(":authority"))?;
    let authority = authority(text, cache)?;
    if authority.port_u16().is_none() {
        return Err(FieldsError::Malformed("CONNECT without a port"));
    }
    let mut parts = http::uri::Parts::default();
    parts.authority = Some(authority);
    Uri::from_parts(parts).map_err(|_| BAD_URI)
}

/// Returns the URI of any other request (§4.3.1).
fn uri(
    pseudo: &mut Pseudo,
    headers: &HeaderMap,
    cache: &mut LineCache,
) -> Result<Uri, FieldsError> {
    let scheme = pseudo.scheme.take().ok_or(missing(":scheme"))?;
    let path = pseudo.path.take().ok_or(missing(":path"))?;
    let is_web = scheme == Scheme::HTTP || scheme == Scheme::HTTPS;
    if is_web && path.is_empty() {
        return Err(FieldsError::Malformed("empty :path"));
    }
    if is_web && path[..] == b"*"[..] && pseudo.method != Some(Method::OPTIONS) {
        return Err(FieldsError::Malformed(
            ":path that does not begin with a slash",
        ));
    }
    let path = match Target::of(&path) {
        Target::Valid => path,
        Target::Escaped(path) => Bytes::from(path),
        Target::Invalid(reason) => return Err(FieldsError::Malformed(reason)),
    };
    let authority = authority_of(pseudo.authority.take(), headers, cache)?;
    if authority.is_none() && is_web {
        return Err(FieldsError::Malformed("neither :authority nor host"));
    }
    let mut parts = http::uri::Parts::default();
    // Without an authority, `Uri` contains only the path.
    parts.scheme = authority.is_some().then_some(scheme);
    parts.authority = authority;
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(path).map_err(|_| BAD_URI)?);
    Uri::from_parts(parts).map_err(|_| BAD_URI)
}

fn authority_of(
    pseudo: Option<Bytes>,
    headers: &HeaderMap,
    cache: &mut LineCache,
) -> Result<Option<Authority>, FieldsError> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(FieldsError::Malformed("more than one host field"));
    }
    let host = match host {
        Some(host) => Some(authority(Bytes::copy_from_slice(host.as_bytes()), cache)?),
        None => None,
    };
    let Some(pseudo) = pseudo else {
        return Ok(host);
    };
    let pseudo = authority(pseudo, cache)?;
    // `Authority` compares hosts case-insensitively.
    if host.is_some_and(|host| host != pseudo) {
        return Err(FieldsError::Malformed(":authority and host differ"));
    }
    Ok(Some(pseudo))
}

fn authority(text: Bytes, cache: &mut LineCache) -> Result<Authority, FieldsError> {
    if let Some(known) = cache.authority(&text) {
        return Ok(known);
    }
    if text.is_empty() {
        return Err(FieldsError::Malformed("empty :authority or host"));
    }
    if text.contains(&b'@') {
        return Err(FieldsError::Malformed(
            ":authority or host with user information",
        ));
    }
    let authority = Authority::from_maybe_shared(text).map_err(|_| BAD_URI)?;
    cache.set_authority(&authority);
    Ok(authority)
}

const BAD_URI: FieldsError = FieldsError::Malformed("invalid :authority, host or :path");

fn missing(name: &'static str) -> FieldsError {
    FieldsError::Malformed(match name {
        ":method" => "no :method",
        ":scheme" => "no :scheme",
        ":path" => "no :path",
        _ => "no :authority",
    })
}
