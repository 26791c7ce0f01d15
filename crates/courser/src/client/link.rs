//! A connection that can carry requests, whatever it speaks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use hyper::client::conn::{http1, http2};

use super::request_body::RequestBody;
use super::timing::Timing;
use crate::h3;

/// A connection.
pub(super) enum Link {
    Http3(h3::Client),
    Http2(http2::SendRequest<RequestBody>),
    Http1(http1::SendRequest<RequestBody>),
}

/// What is known of a connection.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) version: http::Version,
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) tcp_connected: Option<Instant>,
    pub(super) tls_complete: Option<Instant>,
    pub(super) quic_complete: Option<Instant>,
    pub(super) is_resumed: bool,
    /// What proxies get with each request that they see, and that they see it.
    pub(super) proxy: Proxied,
    /// `host:port` of the alternative that it leads to (RFC 7838 §5).
    pub(super) alternative: Option<Box<str>>,
}

/// Whether a proxy stands between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Proxied {
    No,
    /// It passes bytes on.
    Tunnel,
    /// It reads requests, and wants to know who sends them.
    Visible(Option<http::HeaderValue>),
}

/// A connection with what is known of it.
pub(super) struct Established {
    pub(super) link: Link,
    pub(super) facts: Arc<Facts>,
}

impl Link {
    /// True when many requests share it.
    pub(super) const fn is_shared(&self) -> bool {
        !matches!(self, Self::Http1(_))
    }

    /// True when it takes further requests, as far as one can know.
    pub(super) fn is_usable(&self) -> bool {
        match self {
            Self::Http3(client) => client.quic().close_reason().is_none() && !client.goes_away(),
            Self::Http2(send) => !send.is_closed(),
            Self::Http1(send) => send.is_ready(),
        }
    }

    /// Another handle to a shared connection.
    pub(super) fn share(&self) -> Option<Self> {
        match self {
            Self::Http3(client) => Some(Self::Http3(client.clone())),
            Self::Http2(send) => Some(Self::Http2(send.clone())),
            Self::Http1(_) => None,
        }
    }
}

impl Facts {
    /// Writes into a timing what the connection knows; when it was made only if it was for that
    /// request.
    pub(super) fn tell(&self, timing: &mut Timing, is_reused: bool) {
        timing.protocol = Some(self.version);
        timing.remote = Some(self.remote);
        timing.local = self.local;
        timing.is_reused = is_reused;
        timing.is_resumed = self.is_resumed;
        timing.is_proxied = self.proxy != Proxied::No;
        if !is_reused {
            timing.tcp_connect = self.tcp_connected.map(|time| timing.at(time));
            timing.tls_handshake = self.tls_complete.map(|time| timing.at(time));
            timing.quic_handshake = self.quic_complete.map(|time| timing.at(time));
        }
    }
}
