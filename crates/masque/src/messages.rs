//! Requests and responses that open tunnels, of all protocols that use capsules (RFC 9297 §3, RFC 9298 §3, RFC 9484 §4).

use courser_http3::Protocol;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
};

use crate::proxy_error::ReportedError;
use crate::refusal::Refusal;

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

/// Returns the request for a tunnel of a protocol.
pub(crate) fn open(
    uri: &str,
    token: &'static str,
    carrier: Carrier,
) -> Result<Request<()>, http::Error> {
    let uri: Uri = uri.parse()?;
    let mut request = Request::new(());
    let headers = request.headers_mut();
    headers.insert(CAPSULE_PROTOCOL, TRUE);
    if carrier == Carrier::Http1 {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        headers.insert(HOST, HeaderValue::try_from(authority)?);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(token));
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse()?;
        return Ok(request);
    }
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    if carrier == Carrier::Http3 {
        *request.version_mut() = Version::HTTP_3;
        request.extensions_mut().extend(extension(token));
    }
    Ok(request)
}

fn extension(token: &str) -> http::Extensions {
    let mut extensions = http::Extensions::new();
    if let Some(protocol) = Protocol::new(token) {
        extensions.insert(protocol);
    }
    extensions
}

/// Returns the path and query of a request.
pub(crate) fn path<B>(request: &Request<B>) -> &str {
    let path = request.uri().path_and_query();
    path.map_or("", |path| path.as_str())
}

/// Checks that a request is one for a tunnel of a protocol. `asked` is the value of `:protocol`.
pub(crate) fn check<B>(
    request: &Request<B>,
    asked: Option<&str>,
    token: &'static str,
) -> Result<(), Refusal> {
    match Carrier::of(request.version()) {
        Some(Carrier::Http1) => check_upgrade(request, token)?,
        Some(_) => check_connect(request.method(), asked, token)?,
        None => return Err(Refusal::malformed("HTTP/1.0 has no upgrades")),
    }
    match content_field(request.headers()) {
        Some(name) => {
            let reason = format!("a request with capsules has the field {name}");
            Err(Refusal::malformed(&reason))
        }
        None => Ok(()),
    }
}

/// Checks the method and the fields of a request over HTTP/1.1 (RFC 9298 §3.2, RFC 9484 §4.2).
fn check_upgrade<B>(request: &Request<B>, token: &'static str) -> Result<(), Refusal> {
    let headers = request.headers();
    if request.method() != Method::GET {
        return Err(Refusal::method("GET"));
    }
    let is_asked = has_token(headers, &UPGRADE, token);
    if !(is_asked && has_token(headers, &CONNECTION, "upgrade")) {
        let text = format!("the proxy needs Connection: Upgrade and Upgrade: {token}");
        let mut refusal = Refusal::new(StatusCode::UPGRADE_REQUIRED, &text);
        let fields = &mut refusal.headers;
        fields.insert(UPGRADE, HeaderValue::from_static(token));
        fields.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        return Err(refusal);
    }
    match headers.get_all(HOST).iter().count() {
        1 => Ok(()),
        _ => Err(Refusal::malformed("not exactly one field Host")),
    }
}

/// Checks the method and the protocol of a request over HTTP/2 and HTTP/3 (RFC 9298 §3.4, RFC 9484 §4.4).
fn check_connect(method: &Method, asked: Option<&str>, token: &'static str) -> Result<(), Refusal> {
    match (method, asked) {
        (&Method::CONNECT, Some(asked)) if asked == token => Ok(()),
        (&Method::CONNECT, _) => {
            let text = format!("the protocol of the CONNECT is not {token}");
            Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, &text))
        }
        _ => Err(Refusal::method("CONNECT")),
    }
}

/// Returns the response that opens a tunnel: 101 over HTTP/1.1, otherwise 200.
pub(crate) fn accept(carrier: Carrier, token: &'static str) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CAPSULE_PROTOCOL, TRUE);
    if carrier == Carrier::Http1 {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(token));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    }
    response
}

/// Checks that a response opens a tunnel (RFC 9298 §3.3, §3.5, RFC 9484 §4.3, §4.5).
pub(crate) fn check_response<B>(
    carrier: Carrier,
    response: &Response<B>,
    token: &'static str,
) -> Result<(), Refused> {
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
    if carrier == Carrier::Http1 && !has_token(headers, &UPGRADE, token) {
        return Err(Refused::Malformed(
            "status 101 without the protocol in Upgrade",
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
