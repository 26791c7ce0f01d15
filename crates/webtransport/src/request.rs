//! Requests for sessions and their answers (draft-ietf-webtrans-http3-16 §3.2, §3.3).

use std::fmt;

use courser_http3::{Code, Protocol};
use http::header::{CONTENT_LENGTH, ORIGIN, RETRY_AFTER};
use http::uri::{Scheme, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use thiserror::Error;

use crate::dialect::{Dialect, TOKEN, TOKEN_H3};
use crate::origins::Origins;
use crate::protocols::{AVAILABLE, CHOSEN, Protocols, chosen_field};
use crate::session_id::SessionId;

/// Returns true for an extended CONNECT with a token of WebTransport, old or new.
pub fn is_session_request<B>(request: &Request<B>) -> bool {
    token(request).is_some()
}

/// Returns the token of WebTransport in a request.
pub(crate) fn token<B>(request: &Request<B>) -> Option<&'static str> {
    if request.method() != Method::CONNECT {
        return None;
    }
    let protocol: &Protocol = request.extensions().get()?;
    [TOKEN, TOKEN_H3]
        .into_iter()
        .find(|token| *token == protocol.as_str())
}

/// A request that the application of a server may accept or refuse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The number of the session.
    pub session: SessionId,
    /// The dialect of the connection.
    pub dialect: Dialect,
    /// The `Origin` field, which the policy allows.
    pub origin: Option<HeaderValue>,
    /// The application protocols that the client offers, empty if it offers none.
    pub protocols: Protocols,
    /// True if the client asks for the confirmation of draft 02.
    confirms_draft02: bool,
    /// True if the connection has one session at a time.
    is_alone: bool,
}

/// The protocol that the application has chosen is not among those that the client has offered.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("protocol {chosen:?} is none of those that the client offers: {offered}")]
pub struct NotOffered {
    chosen: String,
    offered: String,
}

impl Opening {
    /// Checks a request whose token fits `dialect`.
    pub(crate) fn check<B>(
        session: SessionId,
        dialect: Dialect,
        is_alone: bool,
        request: &Request<B>,
        origins: &Origins,
    ) -> Result<Self, Refusal> {
        let uri = request.uri();
        let Some(authority) = uri.authority() else {
            return Err(Refusal::malformed("a session request without :authority"));
        };
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(Refusal::malformed(
                "a session request whose :scheme is not https",
            ));
        }
        if uri
            .path_and_query()
            .is_none_or(|path| !path.as_str().starts_with('/'))
        {
            return Err(Refusal::malformed("a session request without :path"));
        }
        let headers = request.headers();
        let origin = origins
            .check(headers, authority)
            .map_err(|error| Refusal::status(StatusCode::FORBIDDEN, error.to_string()))?;
        Ok(Self {
            session,
            dialect,
            origin,
            protocols: Protocols::offered(headers),
            confirms_draft02: headers.contains_key(DRAFT02_REQUEST),
            is_alone,
        })
    }

    /// Returns the fields that a 2xx response must have, with the application protocol that was chosen.
    ///
    /// Choose with [`Protocols::select`]. A server that requires a protocol answers 400 if that finds none.
    ///
    /// # Errors
    ///
    /// Returns an error for a protocol that the client has not offered.
    pub fn response_headers(&self, protocol: Option<&str>) -> Result<HeaderMap, NotOffered> {
        let mut headers = HeaderMap::new();
        if let Some(name) = protocol {
            let value = chosen_field(name).filter(|_| self.protocols.contains(name));
            let Some(value) = value else {
                let offered: Vec<&str> = self.protocols.iter().collect();
                return Err(NotOffered {
                    chosen: name.to_owned(),
                    offered: format!("{offered:?}"),
                });
            };
            headers.insert(CHOSEN, value);
        }
        if self.confirms_draft02 {
            headers.insert(DRAFT02_RESPONSE, HeaderValue::from_static("draft02"));
        }
        if self.is_alone && self.dialect == Dialect::NEWEST {
            // A hint to clients that would share the connection (§4.1).
            let quota = HeaderValue::from_static("\"sessions\";q=1");
            headers.insert(HeaderName::from_static("ratelimit-policy"), quota);
        }
        Ok(headers)
    }
}

/// The answer to a request for which there is no session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A response with this status and these fields.
    Status {
        /// The status.
        status: StatusCode,
        /// The fields of the response.
        headers: HeaderMap,
        /// The reason, for logs.
        reason: String,
    },
    /// A reset of the CONNECT stream with this code.
    Reset {
        /// The code.
        code: Code,
        /// The reason, for logs.
        reason: String,
    },
}

impl Refusal {
    pub(crate) fn status(status: StatusCode, reason: impl Into<String>) -> Self {
        Self::Status {
            status,
            headers: HeaderMap::new(),
            reason: reason.into(),
        }
    }

    pub(crate) fn reset(code: Code, reason: impl Into<String>) -> Self {
        Self::Reset {
            code,
            reason: reason.into(),
        }
    }

    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self::reset(Code::MESSAGE_ERROR, reason)
    }

    /// Refuses a request that comes too soon after others.
    pub(crate) fn too_many() -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        Self::Status {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers,
            reason: "more session requests than allowed in a second".to_owned(),
        }
    }

    /// Refuses a session at a resource that has none: with 405, as a path that does not exist has 404.
    pub fn no_sessions_here() -> Self {
        let reason = "the resource has no WebTransport";
        Self::status(StatusCode::METHOD_NOT_ALLOWED, reason)
    }

    /// Refuses a request without an application protocol that the server requires.
    pub fn no_protocol() -> Self {
        let reason = "the request offers no application protocol of this server";
        Self::status(StatusCode::BAD_REQUEST, reason)
    }

    /// Returns the reason, for logs.
    pub fn reason(&self) -> &str {
        match self {
            Self::Status { reason, .. } | Self::Reset { reason, .. } => reason,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, reason, .. } => write!(f, "{}: {reason}", status.as_u16()),
            Self::Reset { code, reason } => write!(f, "{code}: {reason}"),
        }
    }
}

/// The wish of a client for a session.
///
/// ```
/// use courser_webtransport::{Protocols, SessionRequest};
/// let request = SessionRequest::new("https://example.org/chat".parse()?)
///     .protocols(Protocols::new(["chat.2", "chat.1"])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SessionRequest {
    uri: Uri,
    headers: HeaderMap,
    protocols: Protocols,
    requires_protocol: bool,
}

/// The reason why a request for a session cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The URI has another scheme than https.
    #[error("the URI {0} has not the scheme https, which sessions need")]
    Scheme(Uri),
    /// The URI has no host.
    #[error("the URI {0} has no host; use one such as https://example.org/path")]
    NoAuthority(Uri),
}

impl SessionRequest {
    /// Creates a request for a session at this URI.
    pub fn new(uri: Uri) -> Self {
        Self {
            uri,
            headers: HeaderMap::new(),
            protocols: Protocols::default(),
            requires_protocol: false,
        }
    }

    /// Adds fields to the request.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// Adds an `Origin` field, which a browser always sends and other programs need not.
    #[must_use]
    pub fn origin(mut self, origin: HeaderValue) -> Self {
        self.headers.insert(ORIGIN, origin);
        self
    }

    /// Offers application protocols.
    #[must_use]
    pub fn protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }

    /// Ends the session if the server chooses no protocol.
    #[must_use]
    pub const fn require_protocol(mut self) -> Self {
        self.requires_protocol = true;
        self
    }

    /// Returns the URI.
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the `Origin` field, if the request has one.
    pub fn page(&self) -> Option<&HeaderValue> {
        self.headers.get(ORIGIN)
    }

    /// Returns the request to send. It must not be sent as early data.
    ///
    /// # Errors
    ///
    /// Returns an error for a URI without a host or with another scheme than https.
    pub fn to_request(&self, dialect: Dialect) -> Result<Request<()>, InvalidRequest> {
        if self.uri.authority().is_none() {
            return Err(InvalidRequest::NoAuthority(self.uri.clone()));
        }
        if self.uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(InvalidRequest::Scheme(self.uri.clone()));
        }
        let mut request = Request::new(());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let headers = request.headers_mut();
        headers.remove(CONTENT_LENGTH);
        if let Some(value) = self.protocols.to_field() {
            headers.insert(AVAILABLE, value);
        }
        if dialect == Dialect::Draft02 {
            headers.insert(DRAFT02_REQUEST, HeaderValue::from_static("1"));
        }
        if let Some(protocol) = Protocol::new(dialect.token()) {
            request.extensions_mut().insert(protocol);
        }
        Ok(request)
    }

    /// Reads a response to the request.
    pub fn answer<B>(&self, response: &Response<B>) -> Answer {
        let status = response.status();
        if status.is_informational() {
            return Answer::Interim;
        }
        if !status.is_success() {
            return Answer::Refused(status);
        }
        let chosen = Protocols::chosen(response.headers());
        match chosen {
            Some(chosen) if self.protocols.contains(&chosen) => Answer::Established(Some(chosen)),
            Some(_) if !self.protocols.is_empty() => Answer::WrongProtocol,
            _ if self.requires_protocol => Answer::WrongProtocol,
            _ => Answer::Established(None),
        }
    }
}

/// The meaning of a response for the session that was requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// An interim response, which changes nothing.
    Interim,
    /// The session is established, with the application protocol that the server has chosen.
    Established(Option<String>),
    /// The server has not chosen a protocol of the client. Reset the session with
    /// [`ALPN_ERROR`](crate::code::ALPN_ERROR).
    WrongProtocol,
    /// There is no session. A redirect is left to the application.
    Refused(StatusCode),
}

const DRAFT02_REQUEST: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft02");
const DRAFT02_RESPONSE: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft");

#[cfg(test)]
mod tests;
