//! Why a request has no response.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use super::timing::Timing;
use crate::h3;
use crate::{ConnectionError, HandshakeFailure, HandshakeOffer};

/// Errors of bodies and of sources, whatever they are.
pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// A request failed, or the body of its response did.
///
/// The text says what was seen and what can be done. [`Error::kind`] sorts errors as finely as
/// command line tools tell them apart; most callers need the questions only.
pub struct Error(Box<Parts>);

struct Parts {
    kind: ErrorKind,
    text: String,
    source: Option<BoxError>,
    timing: Option<Timing>,
    handshake: Option<HandshakeFailure>,
    /// Nothing of the request was processed, so that it can be sent again whatever its method.
    is_unprocessed: bool,
    /// The connection was there before and is gone: it may just have been idle for too long.
    is_stale: bool,
}

/// What kind of failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL, or that of a redirect, is none, or not one for HTTP/3 where that alone is allowed.
    Url,
    /// The scheme of the URL or of its proxy is not spoken here.
    Unsupported,
    /// The client cannot be set up as it was told.
    Config,
    /// The host has no address, or nobody could be asked.
    Resolve,
    /// The proxy's host has no address.
    ResolveProxy,
    /// No connection over TCP, or none at all.
    Connect,
    /// No connection over QUIC, which alone was allowed.
    ConnectQuic,
    /// The proxy refuses.
    Proxy,
    /// The SOCKS proxy refuses, cannot connect, or speaks something else.
    Socks,
    /// TLS failed, but not for the certificate of the server.
    Tls,
    /// The server's certificate is not trusted.
    Certificate,
    /// Time ran out.
    Timeout,
    /// The server closed the connection without a word of response.
    Empty,
    /// The request could not be sent.
    Send,
    /// The body given with the request failed.
    RequestBody,
    /// The connection broke while a response was received.
    Receive,
    /// The body of the response ended before it was complete.
    Partial,
    /// The response is not HTTP, or breaks its rules.
    Protocol,
    /// A rule of HTTP/2 was broken, or the server gave the request up.
    Http2,
    /// A rule of HTTP/3 was broken, or the server gave the request up.
    Http3,
    /// Too many redirects, or one that cannot be followed.
    Redirect,
    /// The content coding is broken.
    Decode,
}

impl Error {
    /// An error with a text.
    pub(super) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind,
            text: text.into(),
            source: None,
            timing: None,
            handshake: None,
            is_unprocessed: false,
            is_stale: false,
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

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// True when time ran out: for the connection, the whole, or between two pieces of a body.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// True when there was no connection, and so nothing was sent.
    pub fn is_connect(&self) -> bool {
        use ErrorKind as Kind;
        matches!(
            self.kind(),
            Kind::Resolve
                | Kind::ResolveProxy
                | Kind::Connect
                | Kind::ConnectQuic
                | Kind::Proxy
                | Kind::Socks
                | Kind::Tls
                | Kind::Certificate
        ) || (self.is_timeout() && self.0.is_unprocessed)
    }

    /// True when a name has no address.
    pub fn is_dns(&self) -> bool {
        matches!(self.kind(), ErrorKind::Resolve | ErrorKind::ResolveProxy)
    }

    /// True when TLS failed, for the certificate or otherwise.
    pub fn is_tls(&self) -> bool {
        matches!(self.kind(), ErrorKind::Tls | ErrorKind::Certificate)
    }

    /// True when the server's certificate is not trusted.
    pub fn is_certificate(&self) -> bool {
        self.kind() == ErrorKind::Certificate
    }

    /// True when redirects went on for too long or led nowhere.
    pub fn is_redirect(&self) -> bool {
        self.kind() == ErrorKind::Redirect
    }

    /// True when the caller has to change something: the URL, the configuration, the body.
    pub fn is_user(&self) -> bool {
        use ErrorKind as Kind;
        matches!(
            self.kind(),
            Kind::Url | Kind::Unsupported | Kind::Config | Kind::RequestBody
        )
    }

    /// True when the request surely was not processed: it can be sent again whatever its method.
    pub fn is_unprocessed(&self) -> bool {
        self.0.is_unprocessed || self.is_connect()
    }

    /// How far it came, where something was begun.
    pub fn timing(&self) -> Option<&Timing> {
        self.0.timing.as_ref()
    }

    /// Returns why TLS failed, if that is the reason: sorted by what helps, for programs that name
    /// the remedy in words of their own.
    pub fn handshake_failure(&self) -> Option<&HandshakeFailure> {
        self.0.handshake.as_ref()
    }

    pub(super) fn is_stale(&self) -> bool {
        self.0.is_stale
    }

    /// An attempt over QUIC came to nothing.
    pub(super) fn of_quic_handshake(
        error: &ConnectionError,
        place: &str,
        host: &str,
        offer: &HandshakeOffer,
    ) -> Self {
        if error.is_timeout() {
            let text = format!(
                "no answer from udp {place}: there is no HTTP/3 server, or a firewall drops UDP"
            );
            return Self::new(ErrorKind::ConnectQuic, text);
        }
        if error.is_protocol_mismatch() {
            let text = format!("udp {place} does not speak HTTP/3 (ALPN h3)");
            return Self::new(ErrorKind::ConnectQuic, text);
        }
        match HandshakeFailure::of_quic(error, place, host, offer) {
            Some(failure) => Self::of_handshake(failure),
            None => {
                let text = format!("no QUIC connection to {place}: {error}");
                Self::new(ErrorKind::ConnectQuic, text)
            }
        }
    }

    /// TLS over TCP failed.
    pub(super) fn of_tls(error: io::Error, host: &str, offer: &HandshakeOffer) -> Self {
        let made = match HandshakeFailure::of_io(&error, host, host, offer) {
            Some(failure) => Self::of_handshake(failure),
            None => Self::new(ErrorKind::Tls, format!("TLS with {host} failed: {error}")),
        };
        made.with_source(error)
    }

    fn of_handshake(failure: HandshakeFailure) -> Self {
        let kind = match failure.is_certificate() {
            true => ErrorKind::Certificate,
            false => ErrorKind::Tls,
        };
        Self::new(kind, failure.to_string()).with_handshake(failure)
    }

    /// An alert of the server that came after the handshake, when there was one.
    fn of_late_alert(kind: ErrorKind, error: &(dyn StdError + 'static)) -> Option<Self> {
        let failure = HandshakeFailure::after_handshake(error, "the connection broke")?;
        Some(Self::new(kind, failure.to_string()).with_handshake(failure))
    }

    /// A request over HTTP/3 failed.
    pub(super) fn of_h3(error: h3::Error) -> Self {
        let is_unprocessed = error.is_unprocessed();
        let is_stale = matches!(error, h3::Error::Connection(_));
        let kind = match &error {
            h3::Error::Body(_) => ErrorKind::RequestBody,
            h3::Error::Request(_) => ErrorKind::Send,
            h3::Error::Connection(lost) if lost.is_timeout() => ErrorKind::Receive,
            _ => ErrorKind::Http3,
        };
        Self::of_late_alert(kind, &error)
            .unwrap_or_else(|| Self::new(kind, format!("HTTP/3: {error}")))
            .with_source(error)
            .unprocessed(is_unprocessed)
            .stale(is_stale)
    }

    /// A request over HTTP/2 or HTTP/1.1 failed before its response.
    pub(super) fn of_hyper(error: hyper::Error, is_http2: bool) -> Self {
        let reset = h2_reason(&error);
        // RFC 9113 §8.7: REFUSED_STREAM says that nothing was done.
        let is_refused = reset
            .as_deref()
            .is_some_and(|reason| reason.contains("refused"));
        let is_stale = error.is_closed() || error.is_incomplete_message() || is_io(&error);
        let (kind, text) = if error.is_user() {
            match error.source().and_then(StdError::source).or(error.source()) {
                Some(cause) => (ErrorKind::RequestBody, format!("request body: {cause}")),
                None => (ErrorKind::Send, format!("cannot send the request: {error}")),
            }
        } else if is_http2 && !is_io(&error) {
            let reason = reset.unwrap_or_else(|| chain(&error));
            (ErrorKind::Http2, format!("HTTP/2: {reason}"))
        } else if error.is_incomplete_message() {
            let text = "the server closed the connection without a response";
            (ErrorKind::Empty, text.to_owned())
        } else if error.is_parse() {
            (
                ErrorKind::Protocol,
                format!("the response is not HTTP/1: {}", chain(&error)),
            )
        } else {
            (
                ErrorKind::Receive,
                format!("the connection failed: {}", chain(&error)),
            )
        };
        Self::of_late_alert(kind, &error)
            .unwrap_or_else(|| Self::new(kind, text))
            .with_source(error)
            .unprocessed(is_refused)
            .stale(is_stale)
    }

    /// The body of a response over HTTP/2 or HTTP/1.1 failed.
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
        Self::new(kind, text).with_source(error)
    }

    /// The body of a response over HTTP/3 failed.
    pub(super) fn of_h3_body(error: h3::Error) -> Self {
        let kind = match &error {
            h3::Error::Connection(_) => ErrorKind::Receive,
            _ => ErrorKind::Http3,
        };
        Self::new(kind, format!("the response was interrupted: {error}")).with_source(error)
    }
}

/// Errors with all that caused them: those of hyper keep the cause for themselves.
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

/// What the HTTP/2 part says. Its type is not ours to name; its text is stable enough for one word.
fn h2_reason(error: &hyper::Error) -> Option<String> {
    let cause = error.source()?;
    (cause.downcast_ref::<io::Error>().is_none()).then(|| cause.to_string())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.0.text)
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
