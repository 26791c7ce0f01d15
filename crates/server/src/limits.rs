//! Limits on the resources of clients.

pub(crate) mod gate;
pub(crate) mod pace;
pub(crate) mod rate;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod refused_clients;
pub(crate) mod request_memory;
pub(crate) mod shares;
pub(crate) mod uploads;
mod validate;

use std::time::Duration;

pub(super) use self::validate::check_all;

use self::pace::BodyRate;
use self::reading::{Arrears, ReadRate, ReaderPace};

/// Limits on the resources that clients may use. The limits on HTTP/3 fields and streams are in
/// [`h3::Config`](courser_http3_tokio::Config) and [`TransportConfig`](courser_quic::TransportConfig).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections over TCP at a time, and as many over QUIC, for each address of the server.
    /// Further ones are refused at once. Default 20 000. A process needs as many file descriptors
    /// for those over TCP. Over QUIC, clients that have not proven their address hold at most half,
    /// and further ones must prove it first (Retry), unless [`Server::retry`](super::Server::retry) is
    /// `Never`.
    pub max_connections: usize,
    /// Connections over TCP, and as many over QUIC, of one address (IPv4, /64 of IPv6, or a link-local or
    /// unique local IPv6 address). Default `None`: an address may hold three times the connections left. Behind NAT or a load balancer,
    /// many clients may share an address. Over QUIC, a client that has proven its address is counted
    /// without those that have not, because these may be forged.
    pub max_connections_per_address: Option<usize>,
    /// Connections per second that one address may open at each listener over TCP, and as many over
    /// QUIC; a network (/24, or /56 of IPv6) may open four times as many. Default `None`, no limit.
    pub connection_rate: Option<u32>,
    /// Like `connection_rate`, but applied only while CPU time or memory is short. Default `None`:
    /// then networks take turns over QUIC.
    pub loaded_connection_rate: Option<u32>,
    /// Time limit for the TLS handshake of a connection over TCP, and for an async choice of the certificate
    /// over QUIC ([`Certificates::asynchronous`](super::Certificates::asynchronous)). Over QUIC a choice also
    /// ends with [`TransportConfig::handshake_timeout`](courser_quic::TransportConfig::handshake_timeout),
    /// the time limit of its handshake. Default 10 s.
    pub handshake_timeout: Duration,
    /// Time limit for the head of a request over HTTP/1.1, and for the wait for the next request on
    /// a connection. Default 30 s.
    pub header_read_timeout: Duration,
    /// Time after which a connection over TCP without requests is closed. Default 60 s.
    pub idle_timeout: Duration,
    /// Time for which a client may leave waiting data unread on its connection, also by granting no
    /// flow-control credit. Default 60 s; `None` waits indefinitely. Over HTTP/3 such a connection
    /// is closed with `H3_EXCESSIVE_LOAD` (limit K59).
    pub write_timeout: Option<Duration>,
    /// Minimum rate at which a client must read waiting data on its connection. Default 240 bytes
    /// per second, with up to 60 s of arrears; `None` waits indefinitely. Connections of slower
    /// clients are closed, over HTTP/3 with `H3_EXCESSIVE_LOAD` (limit K105).
    pub read_rate: Option<ReadRate>,
    /// Minimum rate at which request bodies must arrive while the service waits for them. Below it,
    /// reads fail with [`BodyError::TooSlow`](super::BodyError::TooSlow). Default 240 bytes a
    /// second after 30 s; `None` waits indefinitely. Not for CONNECT and `application/grpc`, whose
    /// streams may be silent.
    pub body_rate: Option<BodyRate>,
    /// Time limit for the service to begin its response. Default `None`: a service may take any
    /// time, as for long polling. After the limit the service is dropped and the request answered
    /// with 503 (Service Unavailable); other requests are not affected.
    ///
    /// Time in which the service is not ready or reads the body of the request counts. The body of
    /// a response may take longer. A service that blocks its thread cannot be stopped.
    pub handler_timeout: Option<Duration>,
    /// Maximum size in bytes of all fields in a request's head over TCP. Default 64 KiB.
    pub max_header_bytes: u32,
    /// Concurrent requests on a connection over HTTP/2. Default 256.
    pub max_http2_streams: u32,
}

impl Limits {
    /// Returns the minimum rate at which clients over TCP must read from their sockets.
    pub(super) fn reader_pace(&self) -> ReaderPace {
        ReaderPace {
            patience: self.write_timeout,
            arrears: self.read_rate.map(Arrears::new),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 20_000,
            max_connections_per_address: None,
            connection_rate: None,
            loaded_connection_rate: None,
            handshake_timeout: Duration::from_secs(10),
            header_read_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Some(Duration::from_secs(60)),
            read_rate: Some(ReadRate::default()),
            body_rate: Some(BodyRate::default()),
            handler_timeout: None,
            max_header_bytes: 64 * 1024,
            max_http2_streams: 256,
        }
    }
}
