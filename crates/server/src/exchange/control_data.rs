//! The control data of requests: method, target, scheme and authority (RFC 9110 §6.2).
//!
//! Clients send it in three forms. A request is admitted only if it has one valid host in each of them, so that
//! services, access control and upstream servers never see different ones.

use http::header::{CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};

/// Returns the host and port that a request is for: the authority of its URI, or else its `host` field.
///
/// The server admits a request only if both are valid, and equal if it has both. Services receive the authority
/// in the URI over HTTP/2 and HTTP/3, and in the `host` field over HTTP/1.1. `None` for HTTP/1.0 requests without
/// a host.
///
/// ```
/// # mod courser { pub use courser_server as server; }
/// use courser::server::authority;
///
/// # fn main() -> Result<(), http::Error> {
/// let over_http2 = http::Request::get("https://example.org/path").body(())?;
/// let over_http1 = http::Request::get("/path").header("host", "example.org").body(())?;
/// assert_eq!(authority(&over_http2), Some("example.org"));
/// assert_eq!(authority(&over_http1), Some("example.org"));
/// # Ok(()) }
/// ```
pub fn authority<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(HOST)?.to_str().ok(),
    }
}

/// Returns the port that a request is for, or `None` if it names no host.
pub(crate) fn port<B>(request: &Request<B>) -> Option<u16> {
    // The authority is valid, so that digits after a colon at its end are its port.
    let authority = authority(request)?.as_bytes();
    let digits = authority
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit());
    let (rest, port) = authority.split_at(authority.len() - digits.count());
    match rest.last() {
        Some(b':') if !port.is_empty() => port_number(port),
        _ => Some(HTTPS_PORT),
    }
}

/// The scheme of a target that a client has sent as to a proxy: in absolute form over HTTP/1.1 (RFC 9112 §3.2.2), or with
/// the scheme `http` over HTTP/2 and HTTP/3. It is in the extensions of such requests, so that a forward proxy can tell
/// them from requests to itself.
///
/// Other services need not look at it: an absolute target means the same as the origin form with its host in a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbsoluteTarget(Scheme);

impl AbsoluteTarget {
    /// Creates the extension, for servers other than this one.
    pub const fn new(scheme: Scheme) -> Self {
        Self(scheme)
    }

    /// Returns the scheme.
    pub const fn scheme(&self) -> &Scheme {
        &self.0
    }

    fn of<B>(request: &Request<B>) -> Option<Self> {
        let scheme = request.uri().scheme()?;
        let is_absolute = request.version() < Version::HTTP_2;
        (is_absolute || *scheme == Scheme::HTTP).then(|| Self(scheme.clone()))
    }
}

/// Checks the control data of a request and converts it to the form of its version. Joins or removes fields that
/// clients may split or repeat.
///
/// # Errors
/// Returns the status of the response for a request that must not be processed.
pub(crate) fn normalize<B>(request: &mut Request<B>) -> Result<(), StatusCode> {
    check_target(request)?;
    if let Some(target) = AbsoluteTarget::of(request) {
        request.extensions_mut().insert(target);
    }
    if request.uri().scheme() == Some(&Scheme::HTTP) {
        replace_scheme(request)?;
    }
    match placement(request)? {
        HostPlacement::InPlace => {}
        HostPlacement::ToUri => move_host_to_uri(request)?,
        HostPlacement::ToField => move_authority_to_host(request)?,
        HostPlacement::InBoth => drop(request.headers_mut().remove(HOST)),
    }
    if request.version() == Version::HTTP_11 {
        check_transfer_coding(request.headers())?;
    }
    join_cookies(request.headers_mut());
    keep_first(request.headers_mut(), &CONTENT_LENGTH);
    Ok(())
}

/// The place of a request's host, compared with the place that its version prescribes.
#[derive(Clone, Copy, Debug)]
enum HostPlacement {
    InPlace,
    /// In the `host` field of a request that needs it in its URI.
    ToUri,
    /// In the URI of a request that needs it in its `host` field.
    ToField,
    /// In both, although the `host` field is redundant.
    InBoth,
}

/// Returns where the host of a request is, if it has one valid host.
fn placement<B>(request: &Request<B>) -> Result<HostPlacement, StatusCode> {
    let version = request.version();
    let has_pseudo_fields = version >= Version::HTTP_2;
    let field = single_host(request.headers())?;
    let field = field.map(|host| check(host.as_bytes())).transpose()?;
    let Some(authority) = request.uri().authority() else {
        return match field {
            Some(_) if has_pseudo_fields => Ok(HostPlacement::ToUri),
            None if version > Version::HTTP_10 => Err(StatusCode::BAD_REQUEST),
            _ => Ok(HostPlacement::InPlace),
        };
    };
    let authority = check(authority.as_str().as_bytes())?;
    let is_tunnel = is_tunnel(request);
    let is_valid = match field {
        None => version != Version::HTTP_11,
        // Clients send the host of a tunnel with and without its port.
        Some(_) if is_tunnel => true,
        Some(field) => field == authority,
    };
    if !is_valid || (is_tunnel && authority.port.is_none()) {
        return Err(StatusCode::BAD_REQUEST);
    }
    Ok(match has_pseudo_fields {
        true if field.is_some() => HostPlacement::InBoth,
        false if !is_tunnel => HostPlacement::ToField,
        _ => HostPlacement::InPlace,
    })
}

/// Checks the method, path and scheme of a request.
fn check_target<B>(request: &Request<B>) -> Result<(), StatusCode> {
    let (method, uri) = (request.method(), request.uri());
    if is_tunnel(request) {
        // RFC 9110 §9.3.6: only a host and a port.
        let has_authority = uri.authority().is_some();
        return has_authority.then_some(()).ok_or(StatusCode::BAD_REQUEST);
    }
    // Every connection of this server is secured, so it serves https only (RFC 9110 §7.4, §15.5.20). Gateways that
    // receive plain HTTP keep its scheme over HTTP/2, Envoy by default, and mean this server all the same.
    let is_served = |scheme: &Scheme| [Scheme::HTTPS, Scheme::HTTP].contains(scheme);
    if !uri.scheme().is_none_or(is_served) {
        return Err(StatusCode::MISDIRECTED_REQUEST);
    }
    // The target of a tunnel with another method has no path. An absolute URI may have an empty one, which `http`
    // returns as a slash, and then a query.
    let is_valid = match uri.path_and_query().map_or("", PathAndQuery::as_str) {
        "*" => *method == Method::OPTIONS,
        target => target.starts_with('/') || (uri.scheme().is_some() && target.starts_with('?')),
    };
    is_valid.then_some(()).ok_or(StatusCode::BAD_REQUEST)
}

/// Returns true for a CONNECT other than extended CONNECT (RFC 8441, RFC 9220), which has a scheme.
pub(super) fn is_tunnel<B>(request: &Request<B>) -> bool {
    *request.method() == Method::CONNECT && request.uri().scheme().is_none()
}

/// Returns the `host` field, of which there must not be several (RFC 9112 §3.2, RFC 9113 §8.3.1).
fn single_host(headers: &HeaderMap) -> Result<Option<&HeaderValue>, StatusCode> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    match hosts.next() {
        None => Ok(host),
        Some(_) => Err(StatusCode::BAD_REQUEST),
    }
}

/// The parts of an authority. Hosts are compared without regard to case, and port 443 is the default.
#[derive(Clone, Copy, Debug)]
struct HostPort<'a> {
    host: &'a [u8],
    port: Option<u16>,
}

impl PartialEq for HostPort<'_> {
    fn eq(&self, other: &Self) -> bool {
        let port = |it: &Self| it.port.unwrap_or(HTTPS_PORT);
        self.host.eq_ignore_ascii_case(other.host) && port(self) == port(other)
    }
}

const HTTPS_PORT: u16 = 443;

/// Parses `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2) with a host that is not empty.
fn check(text: &[u8]) -> Result<HostPort<'_>, StatusCode> {
    parse(text).ok_or(StatusCode::BAD_REQUEST)
}

fn parse(text: &[u8]) -> Option<HostPort<'_>> {
    let end = match text.first()? {
        b'[' => 1 + text.iter().position(|&byte| byte == b']')?,
        _ => text
            .iter()
            .position(|&byte| byte == b':')
            .unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(end);
    let is_valid = match host {
        [b'[', address @ .., b']'] => {
            let address = std::str::from_utf8(address).ok()?;
            address.parse::<std::net::Ipv6Addr>().is_ok()
        }
        name => is_name(name),
    };
    let port = match port {
        [] | b":" => None,
        [b':', digits @ ..] => Some(port_number(digits)?),
        _ => return None,
    };
    is_valid.then_some(HostPort { host, port })
}

/// Returns true for a registered name or an IPv4 address.
fn is_name(name: &[u8]) -> bool {
    let mut index = 0;
    while let Some(&byte) = name.get(index) {
        if IS_IN_NAME[usize::from(byte)] {
            index += 1;
        } else if let [b'%', high, low, ..] = name[index..]
            && high.is_ascii_hexdigit()
            && low.is_ascii_hexdigit()
        {
            index += 3;
        } else {
            return false;
        }
    }
    !name.is_empty()
}

/// The characters of registered names, except that of percent-encoding. A table, because each request is checked.
const IS_IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"-._~!$&'()*+,;=";
    let mut index = 0;
    while index < marks.len() {
        table[marks[index] as usize] = true;
        index += 1;
    }
    table
};

fn port_number(digits: &[u8]) -> Option<u16> {
    let mut number: u16 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number
            .checked_mul(10)?
            .checked_add(u16::from(digit - b'0'))?;
    }
    Some(number)
}

/// Gives a request the scheme of its connection.
fn replace_scheme<B>(request: &mut Request<B>) -> Result<(), StatusCode> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    if parts.authority.is_none() {
        // The host is in a field, and is moved to the URI with the scheme.
        parts.scheme = None;
    } else {
        parts.scheme = Some(Scheme::HTTPS);
    }
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(())
}

/// Moves the host of a request over HTTP/2 or HTTP/3, whose URI is absolute there, from its `host` field.
fn move_host_to_uri<B>(request: &mut Request<B>) -> Result<(), StatusCode> {
    let Some(host) = request.headers_mut().remove(HOST) else {
        return Ok(());
    };
    let authority = Authority::try_from(host.as_bytes());
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = Some(authority.map_err(|_| StatusCode::BAD_REQUEST)?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(())
}

/// Converts the absolute form of a target over HTTP/1.1 (RFC 9112 §3.2.2) to the origin form, whose host is in
/// the `host` field.
fn move_authority_to_host<B>(request: &mut Request<B>) -> Result<(), StatusCode> {
    let parts = std::mem::take(request.uri_mut()).into_parts();
    let authority = parts.authority.ok_or(StatusCode::BAD_REQUEST)?;
    let host = HeaderValue::from_str(authority.as_str());
    let host = host.map_err(|_| StatusCode::BAD_REQUEST)?;
    request.headers_mut().insert(HOST, host);
    let path = parts.path_and_query;
    let path = match path {
        Some(query) if query.as_str().starts_with('?') => {
            PathAndQuery::try_from(format!("/{}", query.as_str()))
                .map_err(|_| StatusCode::BAD_REQUEST)?
        }
        Some(path) => path,
        None => PathAndQuery::from_static("/"),
    };
    *request.uri_mut() = Uri::from(path);
    Ok(())
}

/// Refuses transfer codings other than chunked, which hyper would pass on undecoded (RFC 9112 §6.1).
fn check_transfer_coding(headers: &HeaderMap) -> Result<(), StatusCode> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match codings.all(is_chunked) {
        true => Ok(()),
        false => Err(StatusCode::NOT_IMPLEMENTED),
    }
}

/// Joins cookies, which clients split for compression (RFC 9113 §8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(COOKIE).iter();
    if cookies.next().is_none() || cookies.next().is_none() {
        return;
    }
    let mut joined = Vec::new();
    let mut is_sensitive = false;
    for cookie in headers.get_all(COOKIE) {
        if !joined.is_empty() {
            joined.extend_from_slice(b"; ");
        }
        joined.extend_from_slice(cookie.as_bytes());
        is_sensitive |= cookie.is_sensitive();
    }
    // The parts of a valid value are valid.
    if let Ok(mut value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(joined)) {
        value.set_sensitive(is_sensitive);
        headers.insert(COOKIE, value);
    }
}

/// Removes repetitions of a field whose values are equal.
fn keep_first(headers: &mut HeaderMap, name: &HeaderName) {
    let mut values = headers.get_all(name).iter();
    let first = values.next().cloned();
    if let (Some(first), true) = (first, values.next().is_some()) {
        headers.insert(name, first);
    }
}

#[cfg(test)]
mod tests;
