//! Requests and responses of CONNECT-UDP in the three versions of HTTP (RFC 9298 §3).

use courser_http3::Protocol;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
};

use crate::proxy_error::ReportedError;
pub use crate::refusal::Refusal;
use crate::target::Target;
use crate::template::{Mismatch, Template};

/// The value of `:protocol` and `Upgrade` (RFC 9298 §6.1).
pub const UPGRADE_TOKEN: &str = "connect-udp";

/// The field that tells intermediaries that the stream carries capsules (RFC 9297 §3.4).
pub const CAPSULE_PROTOCOL: HeaderName = HeaderName::from_static("capsule-protocol");

/// The form of a request, by the version of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// GET with `Upgrade`, answered by 101. All datagrams are capsules.
    Http1,
    /// Extended CONNECT (RFC 8441). All datagrams are capsules.
    Http2,
    /// Extended CONNECT (RFC 9220). Datagrams are in QUIC DATAGRAM frames if both ends support them.
    Http3,
}

impl Carrier {
    /// Returns the carrier of a version of HTTP. `None` for HTTP/1.0 and older ones, which have no upgrades.
    pub fn of(version: Version) -> Option<Self> {
        match version {
            Version::HTTP_11 => Some(Self::Http1),
            Version::HTTP_2 => Some(Self::Http2),
            Version::HTTP_3 => Some(Self::Http3),
            _ => None,
        }
    }
}

/// The reason why a response opens no tunnel.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The proxy has refused the request. Redirects are not followed (RFC 9298 §3.5).
    #[error("the proxy has answered {status}{}", reported_text(.reported))]
    Status {
        /// The status of the response.
        status: StatusCode,
        /// The error in its field Proxy-Status.
        reported: Option<ReportedError>,
    },
    /// The response has a status of success, but not the fields that it needs.
    #[error("the response of the proxy is malformed: {0}")]
    Malformed(&'static str),
}

fn reported_text(reported: &Option<ReportedError>) -> String {
    match reported {
        Some(reported) => format!(": {reported}"),
        None => String::new(),
    }
}

/// Returns the request for a tunnel to a target. Over HTTP/3 it has the [`Protocol`] in its extensions; a caller
/// over HTTP/2 adds that of its library.
///
/// # Errors
/// Returns an error if the expanded template is no URI.
pub fn connect_udp(
    template: &Template,
    target: &Target,
    carrier: Carrier,
) -> Result<Request<()>, http::Error> {
    let uri: Uri = template.expand(target).parse()?;
    let mut request = Request::new(());
    let headers = request.headers_mut();
    headers.insert(CAPSULE_PROTOCOL, TRUE);
    if carrier == Carrier::Http1 {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        headers.insert(HOST, HeaderValue::try_from(authority)?);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(UPGRADE_TOKEN));
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse()?;
        return Ok(request);
    }
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    if carrier == Carrier::Http3 {
        *request.version_mut() = Version::HTTP_3;
        request.extensions_mut().extend(extension());
    }
    Ok(request)
}

fn extension() -> http::Extensions {
    let mut extensions = http::Extensions::new();
    if let Some(protocol) = Protocol::new(UPGRADE_TOKEN) {
        extensions.insert(protocol);
    }
    extensions
}

/// Returns the target of a request, if it is one for a tunnel. `protocol` is the value of `:protocol`.
///
/// # Errors
/// Returns the answer for another request: 400 if it is malformed, 404 for another path, 405 and 426 for another
/// method, 501 for another protocol.
pub fn check<B>(
    request: &Request<B>,
    protocol: Option<&str>,
    template: &Template,
) -> Result<Target, Refusal> {
    let path = request
        .uri()
        .path_and_query()
        .map_or("", |path| path.as_str());
    let target = match template.find(path) {
        Ok(target) => Ok(target),
        Err(Mismatch::NotThis) => {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "no path of the proxy"));
        }
        Err(Mismatch::Malformed(error)) => Err(error),
    };
    match Carrier::of(request.version()) {
        Some(Carrier::Http1) => check_upgrade(request)?,
        Some(_) => check_connect(request.method(), protocol)?,
        None => return Err(Refusal::malformed("HTTP/1.0 has no upgrades")),
    }
    if let Some(name) = content_field(request.headers()) {
        let reason = format!("a request with capsules has the field {name}");
        return Err(Refusal::malformed(&reason));
    }
    target.map_err(|error| Refusal::malformed(&error.to_string()))
}

/// Checks the method and the fields of a request over HTTP/1.1 (RFC 9298 §3.2).
fn check_upgrade<B>(request: &Request<B>) -> Result<(), Refusal> {
    let headers = request.headers();
    if request.method() != Method::GET {
        return Err(Refusal::method("GET"));
    }
    let is_asked = has_token(headers, &UPGRADE, UPGRADE_TOKEN);
    if !(is_asked && has_token(headers, &CONNECTION, "upgrade")) {
        let text = "a UDP proxy needs Connection: Upgrade and Upgrade: connect-udp";
        let mut refusal = Refusal::new(StatusCode::UPGRADE_REQUIRED, text);
        let fields = &mut refusal.headers;
        fields.insert(UPGRADE, HeaderValue::from_static(UPGRADE_TOKEN));
        fields.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        return Err(refusal);
    }
    match headers.get_all(HOST).iter().count() {
        1 => Ok(()),
        _ => Err(Refusal::malformed("not exactly one field Host")),
    }
}

/// Checks the method and the protocol of a request over HTTP/2 and HTTP/3 (RFC 9298 §3.4).
fn check_connect(method: &Method, protocol: Option<&str>) -> Result<(), Refusal> {
    match (method, protocol) {
        (&Method::CONNECT, Some(UPGRADE_TOKEN)) => Ok(()),
        (&Method::CONNECT, _) => {
            let text = "the protocol of the CONNECT is not connect-udp";
            Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, text))
        }
        _ => Err(Refusal::method("CONNECT")),
    }
}

/// Returns the response that opens a tunnel: 101 over HTTP/1.1, otherwise 200.
pub fn accept(carrier: Carrier) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CAPSULE_PROTOCOL, TRUE);
    if carrier == Carrier::Http1 {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(UPGRADE_TOKEN));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    }
    response
}

/// Checks that a response opens a tunnel (RFC 9298 §3.3, §3.5).
///
/// # Errors
/// Returns the reason why it does not.
pub fn check_response<B>(carrier: Carrier, response: &Response<B>) -> Result<(), Refused> {
    let (status, headers) = (response.status(), response.headers());
    let is_accepted = match carrier {
        Carrier::Http1 => status == StatusCode::SWITCHING_PROTOCOLS,
        _ => status.is_success(),
    };
    if !is_accepted {
        return Err(Refused::Status {
            status,
            reported: ReportedError::of(headers),
        });
    }
    if carrier == Carrier::Http1 && !has_token(headers, &UPGRADE, UPGRADE_TOKEN) {
        return Err(Refused::Malformed(
            "status 101 without Upgrade: connect-udp",
        ));
    }
    match content_field(headers) {
        Some(_) => Err(Refused::Malformed(
            "it has a field of content beside capsules",
        )),
        None => Ok(()),
    }
}

/// Returns true if a message declares that its stream carries capsules. A value other than the boolean true counts
/// as no declaration (RFC 9297 §3.4).
pub fn has_capsule_protocol(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CAPSULE_PROTOCOL).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let value = value.as_bytes().trim_ascii();
    value
        .strip_prefix(b"?1")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b";"))
}

/// Returns a field that messages with capsules must not have (RFC 9297 §3.4).
fn content_field(headers: &HeaderMap) -> Option<&'static HeaderName> {
    const FIELDS: [HeaderName; 3] = [CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING];
    static ALL: [HeaderName; 3] = FIELDS;
    ALL.iter().find(|name| headers.contains_key(*name))
}

/// Returns true if a list of tokens has one of them, in any case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let mut items = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    items.any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// The boolean true of structured fields (RFC 9651 §3.3.6).
const TRUE: HeaderValue = HeaderValue::from_static("?1");

#[cfg(test)]
mod tests;
