//! Connections that carry requests over any version of HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use courser_http3_tokio as h3;
use courser_quic::Connection;
use hyper::client::conn::{http1, http2};

use super::early_data::is_unfinished;
use super::origin::Origin;
use super::request_body::RequestBody;
use super::serves::{Serves, is_claim_of};
use super::timing::{Timing, TlsSummary};

/// A handle for sending requests on a connection.
pub(super) enum Link {
    Http3(h3::Client),
    Http2(http2::SendRequest<RequestBody>),
    Http1(http1::SendRequest<RequestBody>),
}

/// The properties of a connection.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) version: http::Version,
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) tcp_connected: Option<Instant>,
    pub(super) tls_complete: Option<Instant>,
    pub(super) quic_complete: Option<Instant>,
    pub(super) is_resumed: bool,
    pub(super) tls: Option<Arc<TlsSummary>>,
    /// The role of the proxy, with credentials if it reads requests.
    pub(super) proxy: Proxied,
    /// The `host:port` of the alternative that it connects to (RFC 7838 §5).
    pub(super) alternative: Option<Box<str>>,
    /// The origins that it serves.
    pub(super) serves: Serves,
    /// True if its path was silent and no response has arrived since.
    pub(super) was_silent: AtomicBool,
    /// True for a QUIC connection that was opened only because the origin announced it (RFC 7838).
    pub(super) is_announced: bool,
    /// True for a QUIC connection that was opened while TCP served the origin.
    pub(super) is_moved: bool,
}

/// The role of a proxy in a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Proxied {
    No,
    /// The proxy only forwards the bytes of a tunnel.
    Tunnel,
    /// The proxy reads requests and receives these fields, such as credentials.
    Visible(Option<Box<http::HeaderMap>>),
}

/// A connection with its known properties.
pub(super) struct Established {
    pub(super) link: Link,
    pub(super) facts: Arc<Facts>,
}

impl Link {
    /// Returns true if it can carry several requests at a time.
    pub(super) const fn is_shared(&self) -> bool {
        !matches!(self, Self::Http1(_))
    }

    /// Returns true for HTTP/3.
    pub(super) const fn is_http3(&self) -> bool {
        matches!(self, Self::Http3(_))
    }

    /// Returns true if it accepts further requests, as far as the client can tell.
    pub(super) fn is_usable(&self) -> bool {
        match self {
            Self::Http3(client) => client.quic().close_reason().is_none() && !client.goes_away(),
            Self::Http2(send) => !send.is_closed(),
            Self::Http1(send) => send.is_ready(),
        }
    }

    /// Returns true for a QUIC connection that has probed its path several times without an acknowledgement. It
    /// may recover, but new requests should not wait for that.
    pub(super) fn is_silent(&self) -> bool {
        match self {
            Self::Http3(client) => client.quic().is_path_silent(),
            _ => false,
        }
    }

    /// Returns the QUIC connection, if it is one.
    pub(super) fn quic(&self) -> Option<Connection> {
        match self {
            Self::Http3(client) => Some(client.quic().clone()),
            _ => None,
        }
    }

    /// Returns the QUIC connection if it sends requests before its handshake completes.
    pub(super) fn early(&self) -> Option<Connection> {
        self.quic().filter(is_unfinished)
    }

    /// Returns true if the server claims the origin, and nothing prevents its use.
    pub(super) fn is_claimed_for(&self, facts: &Facts, origin: &Origin) -> bool {
        let Self::Http3(client) = self else {
            return false;
        };
        let is_plain = facts.alternative.is_none() && self.early().is_none();
        let claims = || client.origins().unwrap_or_default();
        is_plain
            && self.is_usable()
            && !self.is_silent()
            && !facts.serves.is_misdirected(origin)
            && claims().iter().any(|claim| is_claim_of(claim, origin))
    }

    /// Returns another handle to a shared connection.
    pub(super) fn share(&self) -> Option<Self> {
        match self {
            Self::Http3(client) => Some(Self::Http3(client.clone())),
            Self::Http2(send) => Some(Self::Http2(send.clone())),
            Self::Http1(_) => None,
        }
    }
}

impl Established {
    /// Marks a new QUIC connection that depends on an announcement.
    pub(super) fn announced(mut self, is_announced: bool) -> Self {
        if let Some(facts) = self.facts_mut() {
            facts.is_announced = is_announced;
        }
        self
    }

    /// Marks a new connection that passes a proxy.
    #[cfg(feature = "masque")]
    pub(super) fn proxied(mut self, proxied: Proxied) -> Self {
        if let Some(facts) = self.facts_mut() {
            facts.proxy = proxied;
        }
        self
    }

    /// Marks a new QUIC connection that was opened while TCP served the origin.
    pub(super) fn moved(mut self) -> Self {
        if let Some(facts) = self.facts_mut() {
            facts.is_moved = true;
        }
        self
    }

    /// Returns the properties of a new connection, of which nothing else has a copy yet.
    fn facts_mut(&mut self) -> Option<&mut Facts> {
        Arc::get_mut(&mut self.facts)
    }
}

impl Facts {
    /// Returns true for a QUIC connection that was used before its handshake completed.
    pub(super) fn is_early(&self) -> bool {
        self.version == http::Version::HTTP_3 && self.quic_complete.is_none()
    }

    /// Adds the properties of the connection to a timing. The times of its handshakes are included only if it
    /// was opened for that request.
    pub(super) fn add_to(&self, timing: &mut Timing, is_reused: bool) {
        timing.protocol = Some(self.version);
        timing.remote = Some(self.remote);
        timing.local = self.local;
        timing.is_reused = is_reused;
        timing.is_resumed = self.is_resumed;
        timing.tls.clone_from(&self.tls);
        timing.is_proxied = self.proxy != Proxied::No;
        if !is_reused {
            timing.tcp_connect = self.tcp_connected.map(|time| timing.at(time));
            timing.tls_handshake = self.tls_complete.map(|time| timing.at(time));
            timing.quic_handshake = self.quic_complete.map(|time| timing.at(time));
        }
    }
}
