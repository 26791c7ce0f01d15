//! Statistics of a running server.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use courser_quic::{ConnectionStats, Counters, EndpointStats};

use crate::cause::Cause;
use crate::limits::refusals::{Refusal, Refusals};
use crate::peer::{Peer, Protocol};
use crate::tally::{QuicTotals, Record, Tally};

/// The counters and the phase of a server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// True while load balancers should send new clients to this server.
    pub ready: bool,
    /// True while new clients are refused because of [`ServerHandle::set_busy`](super::ServerHandle).
    pub busy: bool,
    /// True once no more connections are accepted.
    pub draining: bool,
    /// True once the server has ended: its connections are over, and its sockets are closed or about to be.
    pub ended: bool,
    /// The progress of the drain, once it has started.
    pub drain: Option<DrainProgress>,
    /// The names of the background tasks that have ended and were not restarted yet.
    pub stopped_tasks: Vec<String>,
    /// The number of times that a background task has ended ([`Event::TaskEnded`](super::Event)).
    pub task_ends: u64,
    /// Connections and requests over HTTP/1.1 and HTTP/1.0.
    pub http1: ProtocolStats,
    /// Connections and requests over HTTP/2.
    pub http2: ProtocolStats,
    /// Connections and requests over HTTP/3.
    pub http3: ProtocolStats,
    /// Counters of TCP connections over all their protocols.
    pub tcp: TcpStats,
    /// Number of QUIC handshakes that failed.
    pub quic_handshakes_failed: u64,
    /// Connections refused because too many were open.
    pub refused: u64,
    /// Connections refused because their address or network held its share of a limited resource.
    pub refused_for_share: u64,
    /// Refused clients, by reason.
    pub refusals: Refusals,
    /// Estimated memory of requests in progress in bytes, which counts towards the memory budget.
    pub requests_memory: u64,
    /// Number of bytes that TCP connections and requests in progress may hold, a part of the memory budget (limit
    /// K115).
    pub requests_memory_limit: u64,
    /// Requests refused with 503 (Service Unavailable) because the memory limit was reached.
    pub requests_refused_for_memory: u64,
    /// Connections closed at the memory limit because they held the most memory, or because very many consecutive
    /// requests of them were refused.
    pub connections_closed_for_memory: u64,
    /// Requests in early data that the service received, including those marked by intermediaries.
    pub early_requests: u64,
    /// Requests in early data that were refused with 425 (Too Early) by the policy of
    /// [`Server::early_requests`](super::Server::early_requests).
    pub requests_too_early: u64,
    /// Connections whose early data was accepted but saved no round trip: their clients had no token of an
    /// earlier connection (NEW_TOKEN) that validates their address, so the requests waited for the handshake.
    /// They count as neither early nor too early.
    pub early_data_without_token: u64,
    /// Requests for other hosts that were refused with 421 (Misdirected Request); see
    /// [`Server::only_names`](super::Server::only_names).
    pub requests_misdirected: u64,
    /// Requests that the server answered itself, before its service could, with their number by cause. Malformed requests
    /// over HTTP/2 and HTTP/3, whose streams are reset, are not among them.
    pub requests_by_cause: Vec<(Cause, u64)>,
    /// Panics of the service, and of the content of its responses ([`Event::HandlerPanicked`](super::Event)).
    pub handler_panics: u64,
    /// Totals of all QUIC connections so far.
    pub quic: QuicTotals,
    /// The progress of an ACME client; `None` if the certificates come from elsewhere.
    pub acme: Option<AcmeStats>,
    /// Statistics of each address of the server.
    pub listeners: Vec<ListenerStats>,
}

/// The progress of an ACME client (`Certificates::acme`, feature `acme`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct AcmeStats {
    /// Attempts to obtain a certificate.
    pub attempts: u64,
    /// Attempts that have failed.
    pub failures: u64,
    /// Certificates that were issued.
    pub issued: u64,
    /// The time of the next attempt: a renewal, or another try.
    pub next_attempt: Option<SystemTime>,
    /// The reason of the last failure, if no certificate was issued since.
    pub last_failure: Option<String>,
}

impl ServerStats {
    /// Returns the counters of one protocol.
    pub const fn of(&self, protocol: Protocol) -> &ProtocolStats {
        match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
            Protocol::Http3 => &self.http3,
        }
    }
}

/// The progress of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DrainProgress {
    /// Time since the server stopped accepting connections.
    pub elapsed: Duration,
    /// Time after the start of the drain at which the remaining requests are aborted; see
    /// [`Server::deadline`](super::Server::deadline).
    pub deadline: Duration,
    /// Connections that were open at the start of the drain.
    pub connections: u64,
    /// Connections that are still open.
    pub connections_open: u64,
    /// Requests whose response is not complete.
    pub requests_in_flight: u64,
}

/// Counters of one protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProtocolStats {
    /// Connections accepted since the server started.
    pub connections: u64,
    /// Connections that are open now.
    pub connections_open: u64,
    /// Requests received since the server started.
    pub requests: u64,
    /// Requests whose response is not complete.
    pub requests_in_flight: u64,
}

/// Counters of TCP connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TcpStats {
    /// Bytes received, including TLS.
    pub bytes_received: u64,
    /// Bytes sent, including TLS.
    pub bytes_sent: u64,
    /// TLS handshakes that failed or timed out.
    pub handshakes_failed: u64,
    /// Estimated memory of open connections in bytes, without their requests. It counts towards the memory budget
    /// (limit K370).
    pub memory: u64,
}

/// Statistics of one address of the server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListenerStats {
    /// The local address with the actual port.
    pub address: SocketAddr,
    /// Statistics of the QUIC endpoint; `None` without QUIC.
    pub quic: Option<EndpointStats>,
    /// Counters of its UDP socket.
    pub udp: Option<Counters>,
    /// Received datagrams that the kernel dropped because the buffer of the UDP socket was full, if the system
    /// reports it.
    pub udp_overflow: Option<u64>,
}

/// Statistics of one shard that serves QUIC at an address.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShardStats {
    /// The local address with the actual port.
    pub address: SocketAddr,
    /// The index of the shard, from 0.
    pub shard: usize,
    /// The counters of the shard. Limits and budgets apply to all shards together.
    pub quic: EndpointStats,
}

/// The state of an open connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionSummary {
    /// The client, the protocol and the number of the connection.
    pub peer: Peer,
    /// Time since the connection was accepted.
    pub age: Duration,
    /// Requests received on the connection.
    pub requests: u64,
    /// Requests whose response is not complete.
    pub requests_in_flight: u64,
    /// Bytes received in UDP payloads or over TCP.
    pub bytes_received: u64,
    /// Bytes sent in UDP payloads or over TCP.
    pub bytes_sent: u64,
    /// Round-trip time, congestion window, loss and more; `None` over TCP.
    pub quic: Option<ConnectionStats>,
}

impl ConnectionSummary {
    pub(super) fn of(record: &Record) -> Self {
        let quic = record.quic_stats();
        let (received, sent) = match &quic {
            Some(quic) => (quic.udp_received.bytes, quic.udp_sent.bytes),
            None => (
                record.traffic.received.load(Relaxed),
                record.traffic.sent.load(Relaxed),
            ),
        };
        Self {
            peer: record.peer.clone(),
            age: record.since.elapsed(),
            requests: record.requests(),
            requests_in_flight: record.in_flight(),
            bytes_received: received,
            bytes_sent: sent,
            quic,
        }
    }
}

impl Tally {
    pub(super) fn stats(&self) -> ServerStats {
        ServerStats {
            http1: self.protocol_stats(Protocol::Http1),
            http2: self.protocol_stats(Protocol::Http2),
            http3: self.protocol_stats(Protocol::Http3),
            tcp: TcpStats {
                bytes_received: self.tcp_received.load(Relaxed),
                bytes_sent: self.tcp_sent.load(Relaxed),
                handshakes_failed: self.tcp_handshakes_failed.load(Relaxed),
                memory: self.holders.of_connections(),
            },
            quic_handshakes_failed: self.quic_handshakes_failed.load(Relaxed),
            refused: [
                Refusal::Full,
                Refusal::Unvalidated,
                Refusal::Share,
                Refusal::Address,
            ]
            .map(|refusal| self.refusals.of(refusal))
            .iter()
            .sum(),
            refused_for_share: self.refusals.of(Refusal::Share)
                + self.refusals.of(Refusal::Unvalidated),
            refusals: Refusals::of_listeners(&self.refusals),
            requests_memory: (self.holders.memory().used().load(Relaxed))
                .saturating_sub(self.holders.of_connections()),
            requests_memory_limit: self.holders.memory().limit(),
            requests_refused_for_memory: self.requests_refused.load(Relaxed),
            connections_closed_for_memory: self.holders.closed(),
            early_requests: self.early_requests.load(Relaxed),
            requests_too_early: self.requests_too_early.load(Relaxed),
            early_data_without_token: self.early_data_without_token.load(Relaxed),
            requests_misdirected: self.requests_misdirected.load(Relaxed),
            requests_by_cause: self.own.by_cause(),
            handler_panics: self.handlers.panics.load(Relaxed),
            quic: self.quic_totals(),
            ..ServerStats::default()
        }
    }

    /// Returns the progress of the drain, once it has started.
    pub(super) fn drain_progress(&self) -> Option<DrainProgress> {
        let begin = self.drain.get()?;
        Some(DrainProgress {
            elapsed: begin.at.elapsed(),
            deadline: begin.deadline,
            connections: begin.connections,
            connections_open: self.connections_open(),
            requests_in_flight: self.in_flight(),
        })
    }

    fn protocol_stats(&self, protocol: Protocol) -> ProtocolStats {
        let tally = self.of(protocol);
        ProtocolStats {
            connections: tally.connections.load(Relaxed),
            connections_open: tally.connections_open.load(Relaxed),
            requests: tally.requests(),
            requests_in_flight: tally.in_flight(),
        }
    }
}
