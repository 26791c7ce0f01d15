//! Versions of HTTP.

/// The versions of TLS that a client may use over TCP. QUIC always uses TLS 1.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TlsVersions {
    /// TLS 1.3, or TLS 1.2 with servers that do not support it.
    #[default]
    All,
    /// Only TLS 1.2, and therefore no HTTP/3.
    Only12,
    /// Only TLS 1.3.
    Only13,
}

/// The versions of HTTP that a client may use, or a request ([`RequestBuilder::version`]).
///
/// In the [extensions](http::Request::extensions) of a request it replaces that of the client for this request and
/// its redirects.
///
/// [`RequestBuilder::version`]: super::RequestBuilder::version
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/3 if an HTTPS record (RFC 9460) or an `alt-svc` field (RFC 7838) of the origin announces it, raced
    /// against HTTP/2 and HTTP/1.1.
    #[default]
    Auto,
    /// Like `Auto`, but HTTP/3 is tried with every `https` origin, even if it is not announced.
    Http3,
    /// HTTP/3 with every `https` origin, even if it is not announced, raced against HTTP/2. Never HTTP/1.1. Servers
    /// of `http` URLs must support HTTP/2 without a negotiation (RFC 9113 §3.3).
    Http3Or2,
    /// Only HTTP/3. Requests to `http` URLs, and through proxies of other schemes than `masque`, fail.
    Http3Only,
    /// HTTP/2, or HTTP/1.1 with servers that do not support it.
    Http2,
    /// HTTP/1.1 even with servers that support later versions.
    Http1,
    /// Only HTTP/2, also with `http` URLs, whose servers must support it without a negotiation (RFC 9113 §3.3).
    Http2PriorKnowledge,
    /// HTTP/1.0 requests, for servers that misunderstand later versions. Content must have a known length.
    Http10,
}

/// [`HTTP_3`](http::Version::HTTP_3) is `Http3Only`, [`HTTP_2`](http::Version::HTTP_2) `Http2`, which servers without
/// HTTP/2 answer with HTTP/1.1, and older versions are `Http1` and `Http10`.
impl From<http::Version> for HttpVersion {
    fn from(version: http::Version) -> Self {
        match version {
            http::Version::HTTP_3 => Self::Http3Only,
            http::Version::HTTP_2 => Self::Http2,
            http::Version::HTTP_11 => Self::Http1,
            // HTTP/0.9 has no responses with a status.
            _ => Self::Http10,
        }
    }
}

impl HttpVersion {
    pub(super) const fn may_use_quic(self) -> bool {
        matches!(
            self,
            Self::Auto | Self::Http3 | Self::Http3Or2 | Self::Http3Only
        )
    }

    pub(super) const fn may_use_tcp(self) -> bool {
        !matches!(self, Self::Http3Only)
    }

    /// Returns true if QUIC is tried even if HTTP/3 is not announced.
    pub(super) const fn assumes_http3(self) -> bool {
        matches!(self, Self::Http3 | Self::Http3Or2 | Self::Http3Only)
    }

    /// Returns true if a server over TCP supports HTTP/2 whatever was negotiated.
    pub(super) const fn assumes_http2(self) -> bool {
        matches!(self, Self::Http3Or2 | Self::Http2PriorKnowledge)
    }

    pub(super) const fn tcp_protocols(self) -> &'static [&'static str] {
        match self {
            Self::Http1 => &["http/1.1"],
            Self::Http10 => &["http/1.0", "http/1.1"],
            Self::Http3Or2 | Self::Http2PriorKnowledge => &["h2"],
            _ => &["h2", "http/1.1"],
        }
    }
}
