//! Statistics of a running server.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use courser_quic::{ConnectionStats, Counters, EndpointStats};

use crate::limits::refusals::{Refusal, Refusals};
use crate::peer::{Peer, Protocol};
use crate::tally::{QuicTotals, Record, Tally};

/// Counters of a server, and its phase.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// True while new clients should be sent to this server. For load balancers.
    pub ready: bool,
    /// True while new clients are refused, by [`ServerHandle::set_busy`](super::ServerHandle).
    pub busy: bool,
    /// True once no more connections are accepted.
    pub draining: bool,
    /// The progress of the drain, once it has begun.
    pub drain: Option<DrainProgress>,
    /// The background tasks that have ended and do not run yet again, by name.
    pub stopped_tasks: Vec<String>,
    /// The number of times that a background task has ended ([`Event::TaskEnded`](super::Event)).
    pub task_ends: u64,
    /// Counters of HTTP/1.1.
    pub http1: ProtocolStats,
    /// Counters of HTTP/2.
    pub http2: ProtocolStats,
    /// Counters of HTTP/3.
    pub http3: ProtocolStats,
    /// Counters of connections over TCP, over all their protocols.
    pub tcp: TcpStats,
    /// QUIC handshakes that failed.
    pub quic_handshakes_failed: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Refused connections whose address or network held its share of a scarce resource.
    pub refused_for_share: u64,
    /// Refused clients, by reason.
    pub refusals: Refusals,
    /// Estimated memory of requests in progress, which counts towards the memory budget.
    pub requests_memory: u64,
    /// Bytes that requests in progress may hold: a part of the memory budget (limit K115).
    pub requests_memory_limit: u64,
    /// Requests answered with 503 (Service Unavailable) because there was no memory for them.
    pub requests_refused_for_memory: u64,
    /// Connections closed because their requests held most when there was no memory for others, or
    /// because very many of their requests in a row were refused.
    pub connections_closed_for_memory: u64,
    /// Requests in early data that the service received, including those that intermediaries have
    /// marked as such.
    pub early_requests: u64,
    /// Requests in early data that were answered with 425 (Too Early), because the policy of
    /// [`Server::early_requests`](super::Server::early_requests) refuses them.
    pub requests_too_early: u64,
    /// Connections whose early data was accepted and saved no round trip: their clients had no token of an
    /// earlier connection (NEW_TOKEN) that proves their address, so that the requests waited for the end of
    /// the handshake. They count as neither early nor too early.
    pub early_data_without_token: u64,
    /// Requests for other hosts that were answered with 421 (Misdirected Request); see
    /// [`Server::only_names`](super::Server::only_names).
    pub requests_misdirected: u64,
    /// Totals of all QUIC connections so far.
    pub quic: QuicTotals,
    /// Statistics of each address of the server.
    pub listeners: Vec<ListenerStats>,
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
    /// Time after the beginning at which the rest is aborted, see [`Server::deadline`](super::Server::deadline).
    pub deadline: Duration,
    /// Connections that were open at the beginning.
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
    /// Connections accepted.
    pub connections: u64,
    /// Open connections.
    pub connections_open: u64,
    /// Requests so far.
    pub requests: u64,
    /// Requests whose response is not complete.
    pub requests_in_flight: u64,
}

/// Counters of connections over TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TcpStats {
    /// Bytes received, TLS included.
    pub bytes_received: u64,
    /// Bytes sent, TLS included.
    pub bytes_sent: u64,
    /// TLS handshakes that failed or took too long.
    pub handshakes_failed: u64,
}

/// Statistics of one address of the server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListenerStats {
    /// The address.
    pub address: SocketAddr,
    /// Statistics of the QUIC endpoint, if there is one.
    pub quic: Option<EndpointStats>,
    /// Counters of its UDP socket.
    pub udp: Option<Counters>,
    /// Received datagrams that the kernel dropped because the buffer of the UDP socket was full, if
    /// the system reports it.
    pub udp_overflow: Option<u64>,
}

/// Statistics of one of the shards that serve QUIC at an address.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShardStats {
    /// The address.
    pub address: SocketAddr,
    /// The number of the shard, from 0.
    pub shard: usize,
    /// Its counters. Limits and budgets hold for all shards together.
    pub quic: EndpointStats,
}

/// An open connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionSummary {
    /// Its client, protocol and number.
    pub peer: Peer,
    /// Time since it was accepted.
    pub age: Duration,
    /// Requests so far.
    pub requests: u64,
    /// Requests whose response is not complete.
    pub requests_in_flight: u64,
    /// Bytes received, of UDP payload or TCP.
    pub bytes_received: u64,
    /// Bytes sent, of UDP payload or TCP.
    pub bytes_sent: u64,
    /// Round-trip time, congestion window, loss and more, for HTTP/3.
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
            requests_memory: self.memory.used().load(Relaxed),
            requests_memory_limit: self.memory.limit(),
            requests_refused_for_memory: self.requests_refused.load(Relaxed),
            connections_closed_for_memory: self.connections_shed.load(Relaxed),
            early_requests: self.early_requests.load(Relaxed),
            requests_too_early: self.requests_too_early.load(Relaxed),
            early_data_without_token: self.early_data_without_token.load(Relaxed),
            requests_misdirected: self.requests_misdirected.load(Relaxed),
            quic: self.quic_totals(),
            ..ServerStats::default()
        }
    }

    /// Returns the progress of the drain, once it has begun.
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
