//! What strangers may take.

mod validate;

use std::time::Duration;

use super::pace::BodyRate;
use super::reading::{Arrears, ReadRate};
use super::socket::ReaderPace;

/// Bounds on what clients may take of a server. Those of HTTP/3's fields and streams are in
/// [`h3::Config`](crate::h3::Config) and [`TransportConfig`](crate::TransportConfig).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections over TCP at a time, and as many over QUIC; further ones are turned away at
    /// once, for each address listened on. Default 20 000. A process needs as many file descriptors for those over TCP.
    pub max_connections: usize,
    /// Connections over TCP, and as many over QUIC, of one address (IPv4, or /64 of IPv6). Default
    /// `None`: an address may hold three times the connections left. Many clients may share an
    /// address, behind NAT or a balancer.
    pub max_connections_per_address: Option<usize>,
    /// Connections a second that one address opens at each listener over TCP, and as many over QUIC;
    /// a network (/24, or /56 of IPv6) may open four times as many. Default `None`, no limit.
    pub connection_rate: Option<u32>,
    /// The same while CPU time or memory is short only. Default `None`: over QUIC networks take turns
    /// then.
    pub loaded_connection_rate: Option<u32>,
    /// Time for the TLS handshake of a connection over TCP. Default 10 s.
    pub handshake_timeout: Duration,
    /// Time for the head of a request over HTTP/1.1, which is also how long a connection may wait
    /// for its next request. Default 30 s.
    pub header_read_timeout: Duration,
    /// How long a connection over TCP may be without a request. Default 60 s.
    pub idle_timeout: Duration,
    /// Time in which a client may read nothing that waits for it on its connection, also by granting
    /// no flow-control credit. Default 60 s; `None` waits for ever. Over HTTP/3 such a connection is
    /// closed with `H3_EXCESSIVE_LOAD` (limit K59).
    pub write_timeout: Option<Duration>,
    /// Minimum rate at which a client must take what waits for it on its connection. Default 240
    /// bytes per second, of which it may be behind by 60 s; `None` waits for ever. Connections of
    /// slower clients are closed, over HTTP/3 with `H3_EXCESSIVE_LOAD` (limit K105).
    pub read_rate: Option<ReadRate>,
    /// How fast bodies of requests have to come that the service waits for; a service that reads on
    /// gets [`BodyError::TooSlow`](super::BodyError::TooSlow). Default 240 bytes a second after
    /// 30 s; `None` waits for ever. Not for CONNECT and `application/grpc`, whose streams may be
    /// silent.
    pub body_rate: Option<BodyRate>,
    /// Time in which the service must begin its answer. Default `None`: a service may take as long as
    /// it likes, as for long polling. Afterwards the service is dropped and the request answered with
    /// 503 (Service Unavailable); other requests are not affected.
    ///
    /// Time for which the service is not ready counts, and so does time in which it reads the body of
    /// the request. The body of a response may take longer. A service that blocks its thread cannot
    /// be ended.
    pub handler_timeout: Option<Duration>,
    /// Bytes of all fields of a request's head over TCP. Default 64 KiB.
    pub max_header_bytes: u32,
    /// Requests at a time on a connection over HTTP/2. Default 256.
    pub max_http2_streams: u32,
}

impl Limits {
    /// Returns the minimum pace at which clients over TCP must read from their sockets.
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
