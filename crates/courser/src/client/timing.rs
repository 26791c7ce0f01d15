//! How a request went, step by step.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::race::Transport;
use crate::ConnectionStats;

/// How a request went: among the [extensions](http::Response::extensions) of each response, and in
/// errors.
///
/// All times count from [`began`](Timing::began). Steps that were not taken, such as the handshakes
/// of a connection that existed already, are `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timing {
    /// When the request was given to the client; after a redirect, when it was followed.
    pub began: Instant,
    /// When the first address was known.
    pub name_lookup: Option<Duration>,
    /// When TCP was connected.
    pub tcp_connect: Option<Duration>,
    /// When the TLS handshake over TCP was complete.
    pub tls_handshake: Option<Duration>,
    /// When the QUIC handshake, with TLS in it, was complete.
    pub quic_handshake: Option<Duration>,
    /// When a connection was there and the request was handed to it.
    pub request_started: Option<Duration>,
    /// When the head of the response had come.
    pub first_byte: Option<Duration>,
    /// When the body of the response was complete: in [`Body::timing`](super::Body::timing) only.
    pub total: Option<Duration>,
    /// What was spoken.
    pub protocol: Option<http::Version>,
    /// Who answered: the server, or the proxy that was asked.
    pub remote: Option<SocketAddr>,
    /// From where. The port of a QUIC connection is that of the client's socket.
    pub local: Option<SocketAddr>,
    /// True when the connection was there before.
    pub is_reused: bool,
    /// True when TLS took an earlier session up.
    pub is_resumed: bool,
    /// True when a proxy stands between.
    pub is_proxied: bool,
    /// Connections that were begun for this request, in their order. One of them has won, if
    /// there is a response.
    pub attempts: Vec<Attempt>,
    /// Requests that were sent again because nothing had been processed.
    pub retries: u32,
    /// The QUIC connection's counters, of this moment.
    pub quic: Option<ConnectionStats>,
}

/// A connection that was begun.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// Over what.
    pub transport: Transport,
    /// To where.
    pub address: SocketAddr,
    /// When, counted from [`Timing::began`].
    pub began: Duration,
    /// When it was decided.
    pub ended: Option<Duration>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Another one was faster, or it still goes on.
    Overtaken,
    /// It carried the request.
    Won,
    /// It failed, for this reason.
    Failed(String),
}

impl Timing {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            name_lookup: None,
            tcp_connect: None,
            tls_handshake: None,
            quic_handshake: None,
            request_started: None,
            first_byte: None,
            total: None,
            protocol: None,
            remote: None,
            local: None,
            is_reused: false,
            is_resumed: false,
            is_proxied: false,
            attempts: Vec::new(),
            retries: 0,
            quic: None,
        }
    }

    /// The time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A time as this counts it.
    pub(super) fn at(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.began)
    }

    /// Connections that were made for this request: 0 when one was reused.
    pub fn connects(&self) -> usize {
        usize::from(!self.is_reused && self.first_byte.is_some())
    }
}
