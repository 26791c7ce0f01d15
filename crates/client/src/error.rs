//! Errors of requests.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use courser_http3_tokio as h3;
use courser_quic::{ConnectionError, HandshakeFailure, HandshakeOffer};
use http::{Method, StatusCode, Uri};

use super::header_limits::{MAX_HEADER_SIZE, MAX_HEADERS};
use super::pinned;
use super::timing::Timing;

/// The type of source errors and of body errors.
pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// An error of a request or of the body of its response.
///
/// Its text describes the failure and its remedy. [`Error::kind`] is as detailed as the exit codes of
/// command-line tools; most callers need only the `is_` methods.
pub struct Error(Box<Parts>);

struct Parts {
    kind: ErrorKind,
    text: String,
    source: Option<BoxError>,
    timing: Option<Timing>,
    handshake: Option<HandshakeFailure>,
    /// True if the request was not processed at all, so that it can be repeated.
    is_unprocessed: bool,
    /// True if a reused connection was closed, perhaps because it had been idle for too long.
    is_stale: bool,
    /// True if TLS failed after the handshake, when the connection was in use.
    is_late: bool,
    /// True if the method of the request is idempotent.
    is_idempotent: bool,
    /// True if the connection to the proxy failed.
    is_of_proxy: bool,
    /// The URL of the request without credentials.
    url: Option<Box<str>>,
    /// The status that the caller treats as an error.
    status: Option<StatusCode>,
}

/// The kind of a failed request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL of the request or of a redirect is invalid, or does not allow HTTP/3 although only HTTP/3 is
    /// allowed.
    Url,
    /// The scheme of the URL or of its proxy is not supported.
    Unsupported,
    /// The client cannot be built with these settings.
    Config,
    /// The host has no address, or the lookup failed.
    Resolve,
    /// The proxy's host has no address.
    ResolveProxy,
    /// No TCP connection could be opened, or no connection at all.
    Connect,
    /// No socket could be bound to the configured local address, port or interface.
    Bind,
    /// No QUIC connection could be opened, and only HTTP/3 was allowed.
    ConnectQuic,
    /// The proxy refused the request.
    Proxy,
    /// The SOCKS proxy refused the request, could not connect, or violated the protocol.
    Socks,
    /// TLS failed for a reason other than the server's certificate.
    Tls,
    /// The server's certificate is not trusted.
    Certificate,
    /// A timeout of [`ClientBuilder`](super::ClientBuilder) expired.
    Timeout,
    /// The server closed the connection without any response.
    Empty,
    /// The request could not be sent on its connection.
    Send,
    /// The body of the request returned an error.
    RequestBody,
    /// The connection was lost while the response was received.
    Receive,
    /// The response body ended before it was complete.
    Partial,
    /// The response is not HTTP.
    NotHttp,
    /// The response violates the rules of HTTP.
    Protocol,
    /// The server violated HTTP/2, or reset the request.
    Http2,
    /// The server violated HTTP/3, or reset the request.
    Http3,
    /// The limit of redirects was exceeded, or a redirect cannot be followed.
    Redirect,
    /// The content does not match its content coding, or is not the JSON that the caller expects.
    Decode,
    /// The status of the response is 400 to 599, and the caller treats it as an error
    /// ([`Response::error_for_status`](super::Response::error_for_status)).
    Status,
    /// The content is larger than the limit for reading it at once ([`Response::limit`](super::Response::limit)).
    TooLarge,
}

impl Error {
    /// Creates an error with a text for the user.
    pub(super) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind,
            text: text.into(),
            source: None,
            timing: None,
            handshake: None,
            is_unprocessed: false,
            is_stale: false,
            is_late: false,
            is_idempotent: false,
            is_of_proxy: false,
            url: None,
            status: None,
        }))
    }

    pub(super) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(super) fn with_timing(mut self, timing: Timing) -> Self {
        self.0.timing = Some(timing);
        self
    }

    fn with_handshake(mut self, failure: HandshakeFailure) -> Self {
        self.0.handshake = Some(failure);
        self
    }

    pub(super) fn unprocessed(mut self, is_unprocessed: bool) -> Self {
        self.0.is_unprocessed = is_unprocessed;
        self
    }

    pub(super) fn stale(mut self, is_stale: bool) -> Self {
        self.0.is_stale = is_stale;
        self
    }

    /// Adds the proxy on the way to which the connection failed.
    pub(super) fn through(mut self, proxy: &dyn fmt::Display) -> Self {
        self.0.is_of_proxy = true;
        self.0.text = format!("the proxy {proxy} is not reachable: {}", self.0.text);
        self
    }

    /// Adds the failure of another way that was tried before.
    #[cfg(feature = "masque")]
    pub(super) fn after(mut self, before: &Self) -> Self {
        self.0.text = format!("{} (before: {})", self.0.text, before.0.text);
        self
    }

    /// Adds the request that failed.
    pub(super) fn of_request(mut self, method: &Method, url: &Uri) -> Self {
        self.0.is_idempotent = method.is_idempotent();
        if self.0.url.is_none() {
            self.0.url = Some(without_credentials(url).into());
        }
        self
    }

    /// Adds the URL of a response whose content cannot be received or used.
    pub(super) fn of_response(mut self, url: &Uri) -> Self {
        if self.0.url.is_none() && url.host().is_some() {
            self.0.url = Some(without_credentials(url).into());
        }
        self
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Adds the number of times that a policy has repeated the request.
    pub(super) fn repeated(mut self, repeats: u32) -> Self {
        match repeats {
            0 => {}
            1 => self.0.text.push_str(" (repeated once)"),
            _ => self
                .0
                .text
                .push_str(&format!(" (repeated {repeats} times)")),
        }
        self
    }

    /// Adds that no retries are left for the origin.
    pub(super) fn without_budget(mut self) -> Self {
        self.0.text.push_str(
            " (not repeated again: the retry budget of the origin is spent, see RetryPolicy::budget)",
        );
        self
    }

    /// Removes the URL, for logs that must not contain its query. A query can be a credential, for example in URLs
    /// that are signed. Texts of refused redirects and of invalid URLs still quote them.
    #[must_use]
    pub fn without_url(mut self) -> Self {
        self.0.url = None;
        self
    }

    /// Returns the status of the response if it is the error
    /// ([`Response::error_for_status`](super::Response::error_for_status)).
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns true if a timeout expired: that of the connection, the request, or the response body.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Returns true if no connection was opened, so that nothing was sent.
    pub fn is_connect(&self) -> bool {
        use ErrorKind as Kind;
        match self.kind() {
            Kind::Resolve
            | Kind::ResolveProxy
            | Kind::Connect
            | Kind::Bind
            | Kind::ConnectQuic
            | Kind::Proxy
            | Kind::Socks
            | Kind::Certificate => true,
            // A server with TLS 1.3 reports some failures after the handshake.
            Kind::Tls => !self.0.is_late,
            Kind::Timeout => self.0.is_unprocessed,
            _ => false,
        }
    }

    /// Returns true if the host or the proxy has no address.
    pub fn is_dns(&self) -> bool {
        matches!(self.kind(), ErrorKind::Resolve | ErrorKind::ResolveProxy)
    }

    /// Returns true if no connection to the proxy could be made: another certificate, or other trust, would have to be
    /// the proxy's.
    pub fn is_of_proxy(&self) -> bool {
        self.0.is_of_proxy
    }

    /// Returns true if TLS failed, including because of the certificate. That is also true if the server refused
    /// the client after the handshake, as servers with TLS 1.3 do that require a client certificate.
    pub fn is_tls(&self) -> bool {
        matches!(self.kind(), ErrorKind::Tls | ErrorKind::Certificate)
    }

    /// Returns true if the server's certificate is not trusted.
    pub fn is_certificate(&self) -> bool {
        self.kind() == ErrorKind::Certificate
    }

    /// Returns true if the limit of redirects was exceeded, or a redirect cannot be followed.
    pub fn is_redirect(&self) -> bool {
        self.kind() == ErrorKind::Redirect
    }

    /// Returns true if the caller must change the URL, the settings, or the body.
    pub fn is_user(&self) -> bool {
        use ErrorKind as Kind;
        matches!(
            self.kind(),
            Kind::Url | Kind::Unsupported | Kind::Config | Kind::RequestBody
        )
    }

    /// Returns true if the request was certainly not processed, so that it can be repeated.
    pub fn is_unprocessed(&self) -> bool {
        self.0.is_unprocessed || self.is_connect()
    }

    /// Returns true if the request can be sent again without the risk that it is processed twice, and may succeed
    /// then:
    ///
    /// - if it was not processed, whatever its method: the name was not resolved, nothing listens, the connection
    ///   timed out, the server refused the stream (REFUSED_STREAM, H3_REQUEST_REJECTED) or was going away (GOAWAY),
    /// - if its method is idempotent (RFC 9110 §9.2.2: GET, HEAD, OPTIONS, TRACE, PUT, DELETE), and the connection
    ///   was lost or a timeout expired while it was sent or the response was received.
    ///
    /// It is false if the failure will remain: for an invalid URL or setting, for TLS and certificates, and for a
    /// violation of HTTP. Errors of response bodies are never retryable, because the caller has received a part.
    /// The client has repeated the request already if that promised success at once; wait before you do it, or set
    /// a [`RetryPolicy`](super::RetryPolicy).
    pub fn is_retryable(&self) -> bool {
        use ErrorKind as Kind;
        let is_lasting = self.is_user() || self.is_tls() || self.is_redirect();
        match self.kind() {
            _ if is_lasting => false,
            Kind::Resolve | Kind::ResolveProxy | Kind::Connect | Kind::ConnectQuic => true,
            Kind::Bind | Kind::Proxy | Kind::Socks | Kind::NotHttp | Kind::Protocol => false,
            _ if self.0.is_unprocessed => true,
            Kind::Timeout | Kind::Empty | Kind::Receive => self.0.is_idempotent,
            _ => self.0.is_idempotent && self.0.is_stale && !self.is_violation(),
        }
    }

    /// Returns the reason why the QUIC connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        let source = self.source()?;
        sources(source).find_map(|cause| {
            let of_h3 = cause.downcast_ref().and_then(h3::Error::connection_error);
            of_h3.or_else(|| cause.downcast_ref())
        })
    }

    /// Returns the URL of the request, or of the redirect that was followed last, without user name, password and
    /// fragment. `None` for errors of response bodies and of building a client.
    pub fn url(&self) -> Option<&str> {
        self.0.url.as_deref()
    }

    /// Returns true if the public key of the server is none of the pinned ones
    /// ([`ClientBuilder::public_key_pins`](super::ClientBuilder::public_key_pins)).
    pub fn is_pin_mismatch(&self) -> bool {
        let mut cause = self.source();
        while let Some(error) = cause {
            if pinned::is_mismatch(error) {
                return true;
            }
            cause = error.source();
        }
        pinned::is_text_of_mismatch(&self.0.text)
    }

    /// Returns the timing up to the failure, if the request was started.
    pub fn timing(&self) -> Option<&Timing> {
        self.0.timing.as_ref()
    }

    /// Returns the reason for a failed TLS handshake, if that is the cause. Its kinds correspond to remedies,
    /// for programs that describe them themselves.
    pub fn handshake_failure(&self) -> Option<&HandshakeFailure> {
        self.0.handshake.as_ref()
    }

    pub(super) fn is_stale(&self) -> bool {
        self.0.is_stale
    }

    /// Creates the error of a failed QUIC connection attempt.
    pub(super) fn of_quic_handshake(
        error: &ConnectionError,
        place: &str,
        host: &str,
        offer: &HandshakeOffer,
    ) -> Self {
        let failed = if error.is_timeout() {
            let text = format!(
                "no answer from udp {place}: there is no HTTP/3 server, or a firewall drops UDP"
            );
            Self::new(ErrorKind::ConnectQuic, text)
        } else if error.is_protocol_mismatch() {
            let text = format!("udp {place} does not speak HTTP/3 (ALPN h3)");
            Self::new(ErrorKind::ConnectQuic, text)
        } else if let Some(failure) = HandshakeFailure::of_quic(error, place, host, offer) {
            Self::of_handshake(failure)
        } else {
            let text = format!("no QUIC connection to {place}: {error}");
            Self::new(ErrorKind::ConnectQuic, text)
        };
        failed.with_source(error.clone())
    }

    /// Creates the error of a failed TLS handshake over TCP.
    pub(super) fn of_tls(error: io::Error, host: &str, offer: &HandshakeOffer) -> Self {
        let error_of_handshake = match HandshakeFailure::of_io(&error, host, host, offer) {
            Some(failure) => Self::of_handshake(failure),
            None => Self::new(ErrorKind::Tls, format!("TLS with {host} failed: {error}")),
        };
        error_of_handshake.with_source(error)
    }

    fn of_handshake(failure: HandshakeFailure) -> Self {
        let kind = match failure.is_certificate() {
            true => ErrorKind::Certificate,
            false => ErrorKind::Tls,
        };
        Self::new(kind, failure.to_string()).with_handshake(failure)
    }

    /// Creates an error from an alert that the server sent after the handshake, if there was one.
    fn of_late_alert(error: &(dyn StdError + 'static)) -> Option<Self> {
        let failure = HandshakeFailure::after_handshake(error, "the connection broke")?;
        let mut late = Self::new(ErrorKind::Tls, failure.to_string()).with_handshake(failure);
        late.0.is_late = true;
        Some(late)
    }

    /// Creates the error of a failed request over HTTP/3.
    pub(super) fn of_h3(error: h3::Error) -> Self {
        let is_unprocessed = error.is_unprocessed();
        let is_stale = matches!(error, h3::Error::Connection(_));
        let kind = match &error {
            h3::Error::Body(_) => ErrorKind::RequestBody,
            h3::Error::Request(_) => ErrorKind::Send,
            h3::Error::Connection(lost) if lost.is_timeout() => ErrorKind::Receive,
            _ => ErrorKind::Http3,
        };
        Self::of_late_alert(&error)
            .unwrap_or_else(|| {
                let limit = match &error {
                    h3::Error::Fields(_) => header_limit(),
                    _ => String::new(),
                };
                Self::new(kind, format!("HTTP/3: {error}{limit}"))
            })
            .with_source(error)
            .unprocessed(is_unprocessed)
            .stale(is_stale)
    }

    /// Returns true if the client found a violation of QUIC or HTTP/3 by the server.
    pub(super) fn is_violation(&self) -> bool {
        let cause = self.source().and_then(|cause| cause.downcast_ref());
        cause.is_some_and(|error| match error {
            h3::Error::Http { origin, .. } => *origin == h3::Origin::Local,
            h3::Error::Connection(error) => matches!(error, ConnectionError::TransportError(_)),
            _ => false,
        })
    }

    /// Creates the error of an HTTP/2 or HTTP/1.1 request that failed before its response.
    pub(super) fn of_hyper(error: hyper::Error, is_http2: bool) -> Self {
        let reset = h2_reason(&error);
        let is_refused = is_unprocessed_h2(&error);
        let is_stale = error.is_closed() || error.is_incomplete_message() || is_io(&error);
        let (kind, text) = if error.is_user() {
            match error.source().and_then(StdError::source).or(error.source()) {
                Some(cause) => (ErrorKind::RequestBody, format!("request body: {cause}")),
                None => (ErrorKind::Send, format!("cannot send the request: {error}")),
            }
        } else if is_http2 && !is_io(&error) {
            let reason = reset.unwrap_or_else(|| chain(&error));
            let limit = if is_local_reset(&error) {
                header_limit()
            } else {
                String::new()
            };
            (ErrorKind::Http2, format!("HTTP/2: {reason}{limit}"))
        } else if error.is_parse_too_large() {
            let text = format!(
                "the header section of the response has more than {} KiB or more than {MAX_HEADERS} fields",
                MAX_HEADER_SIZE / 1024
            );
            (ErrorKind::Protocol, text)
        } else if error.is_incomplete_message() {
            let text = "the server closed the connection without a response";
            (ErrorKind::Empty, text.to_owned())
        } else if error.is_parse() {
            let (kind, what) = match is_status_line(&error) {
                true => (ErrorKind::NotHttp, "the response is not HTTP/1"),
                false => (ErrorKind::Protocol, "the response is malformed"),
            };
            (kind, format!("{what}: {}", chain(&error)))
        } else {
            (
                ErrorKind::Receive,
                format!("the connection failed: {}", chain(&error)),
            )
        };
        Self::of_late_alert(&error)
            .unwrap_or_else(|| Self::new(kind, text))
            .with_source(error)
            .unprocessed(is_refused)
            .stale(is_stale)
    }

    /// Creates the error of an HTTP/2 or HTTP/1.1 response body.
    pub(super) fn of_hyper_body(error: hyper::Error, is_http2: bool) -> Self {
        let text = chain(&error);
        let kind = if is_http2 && !is_io(&error) {
            ErrorKind::Http2
        } else if is_early_end(&error) {
            ErrorKind::Partial
        } else {
            ErrorKind::Receive
        };
        let text = match kind {
            ErrorKind::Partial => format!("the response ended before it was complete ({text})"),
            _ => format!("the response was interrupted: {text}"),
        };
        Self::of_late_alert(&error)
            .unwrap_or_else(|| Self::new(kind, text))
            .with_source(error)
    }

    /// Creates the error of an HTTP/3 response body.
    pub(super) fn of_h3_body(error: h3::Error) -> Self {
        let kind = match &error {
            h3::Error::Connection(_) => ErrorKind::Receive,
            _ => ErrorKind::Http3,
        };
        Self::of_late_alert(&error)
            .unwrap_or_else(|| Self::new(kind, format!("the response was interrupted: {error}")))
            .with_source(error)
    }
}

/// Returns a URL without user name and password.
fn without_credentials(url: &Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    match authority.rsplit_once('@') {
        None => url.to_string(),
        Some((_, place)) => {
            let scheme = url.scheme_str().unwrap_or_default();
            let path = url.path_and_query().map_or("/", |path| path.as_str());
            format!("{scheme}://{place}{path}")
        }
    }
}

/// Returns the text of an error with all its causes, which hyper's errors do not include.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn sources<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

fn is_io(error: &hyper::Error) -> bool {
    sources(error).any(|cause| cause.downcast_ref::<io::Error>().is_some())
}

fn is_early_end(error: &hyper::Error) -> bool {
    error.is_incomplete_message()
        || sources(error).any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
        })
}

/// Returns true if the first line of an HTTP/1 response is none. hyper names the part of a malformed response only
/// in its text.
fn is_status_line(error: &hyper::Error) -> bool {
    let text = error.to_string();
    error.is_parse_status() || text.contains("version")
}

/// Returns true if the server reported that it did not process the request: with REFUSED_STREAM (RFC 9113 §8.7),
/// or with a GOAWAY without an error, whose last stream precedes that of the request (§6.8).
fn is_unprocessed_h2(error: &hyper::Error) -> bool {
    let error = error.source().and_then(|it| it.downcast_ref::<h2::Error>());
    error.is_some_and(|error| {
        let reason = error.reason();
        error.is_remote()
            && (error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM)
                || error.is_go_away() && reason == Some(h2::Reason::NO_ERROR))
    })
}

/// Returns true if the client reset a stream because of its response. The library reports a header section that
/// is too large in the same way as other violations.
fn is_local_reset(error: &hyper::Error) -> bool {
    let error = error.source().and_then(|it| it.downcast_ref::<h2::Error>());
    error.is_some_and(|error| {
        error.is_library() && error.is_reset() && error.reason() == Some(h2::Reason::PROTOCOL_ERROR)
    })
}

fn header_limit() -> String {
    format!(
        " (the response is malformed, or its header section exceeds the limit of {} KiB)",
        MAX_HEADER_SIZE / 1024
    )
}

/// Returns the reason of the HTTP/2 implementation as text, because its type is private.
fn h2_reason(error: &hyper::Error) -> Option<String> {
    let cause = error.source()?;
    (cause.downcast_ref::<io::Error>().is_none()).then(|| cause.to_string())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)?;
        match (self.0.status, &self.0.url) {
            (Some(_), Some(url)) => write!(f, " for {url}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.0.text)
            .field("url", &self.0.url)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source: &(dyn StdError + 'static) = self.0.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests;
