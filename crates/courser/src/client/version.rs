//! Which HTTP is spoken.

/// Which versions of HTTP a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/3 where an origin is known to speak it, by an HTTPS record (RFC 9460) or an `alt-svc`
    /// field (RFC 7838), raced against HTTP/2 and HTTP/1.1.
    #[default]
    Auto,
    /// Like `Auto`, but HTTP/3 is tried with every `https` origin, announced or not.
    Http3,
    /// HTTP/3 and nothing else: requests to `http` URLs and through proxies fail.
    Http3Only,
    /// HTTP/2, or HTTP/1.1 with servers that do not speak it.
    Http2,
    /// HTTP/1.1 and nothing else.
    Http1,
}

impl HttpVersion {
    pub(super) const fn may_use_quic(self) -> bool {
        matches!(self, Self::Auto | Self::Http3 | Self::Http3Only)
    }

    pub(super) const fn may_use_tcp(self) -> bool {
        !matches!(self, Self::Http3Only)
    }

    /// True when QUIC is tried unasked.
    pub(super) const fn assumes_http3(self) -> bool {
        matches!(self, Self::Http3 | Self::Http3Only)
    }

    pub(super) const fn tcp_protocols(self) -> &'static [&'static str] {
        match self {
            Self::Http1 => &["http/1.1"],
            _ => &["h2", "http/1.1"],
        }
    }
}
