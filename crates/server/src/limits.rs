//! Limits on the resources of clients.

pub(crate) mod buffers;
pub(crate) mod descriptors;
pub(crate) mod gate;
pub(crate) mod holders;
pub(crate) mod pace;
pub(crate) mod rate;
pub(crate) mod read_monitor;
pub(crate) mod refusals;
pub(crate) mod refused_clients;
pub(crate) mod request_memory;
pub(crate) mod shares;
pub(crate) mod uploads;
mod validate;

use std::time::Duration;

use courser_http3_tokio::FieldLimits;

pub(super) use self::validate::check_all;

use self::pace::BodyRate;
use self::read_monitor::{Arrears, ReadRate, ReaderPace};

/// Limits on the resources that clients may use. [`h3::Config`](courser_http3_tokio::Config) and
/// [`TransportConfig`](courser_quic::TransportConfig) have the limits of HTTP/3 fields and streams.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Largest number of TCP connections, and separately of QUIC connections, for each address of the server.
    /// Further ones are refused at once. Default 20 000. A process needs a file descriptor for each TCP
    /// connection, and each counts with 28 KiB, so fewer are accepted if these exceed three eighths of
    /// [`Server::memory_budget`](super::Server::memory_budget), or three quarters of the descriptors that are free
    /// when the server starts. Over QUIC, clients with unvalidated addresses may hold at most half, and further ones must
    /// validate their address first (Retry), unless [`Server::retry`](super::Server::retry) is `Never`.
    pub max_connections: usize,
    /// Largest number of TCP connections, and separately of QUIC connections, from one address (IPv4, /64 of
    /// IPv6, or a link-local or unique local IPv6 address). Default `None`: an address may hold three times the
    /// connections left. Behind NAT or a load balancer, many clients may share an address. Over QUIC, clients
    /// with validated addresses are counted separately, because unvalidated ones may be forged.
    pub max_connections_per_address: Option<usize>,
    /// Largest number of TCP connections per second that one address may open at each listener, and separately
    /// of QUIC connections. A network (/24, or /56 of IPv6) may open four times as many, a site (/16, or /48 of
    /// IPv6) 16 times, and an allocation (/32 of IPv6) 64 times. Default `None`, no limit.
    pub connection_rate: Option<u32>,
    /// Like `connection_rate`, but applied only while CPU time or memory is short. Default `None`: networks then
    /// take turns over QUIC.
    pub loaded_connection_rate: Option<u32>,
    /// Time limit for the TLS handshake of a TCP connection, and for an asynchronous choice of the certificate
    /// over QUIC ([`Certificates::asynchronous`](super::Certificates::asynchronous)). Such a choice also ends at
    /// the time limit of its handshake,
    /// [`TransportConfig::handshake_timeout`](courser_quic::TransportConfig::handshake_timeout). Default 10 s.
    pub handshake_timeout: Duration,
    /// Time limit for the header section of a request over HTTP/1.1, and for the wait for the next request on a
    /// connection. Default 30 s.
    pub header_read_timeout: Duration,
    /// Time after which a TCP connection without requests is closed. Default 60 s.
    pub idle_timeout: Duration,
    /// Longest time for which a client may leave waiting data unread, including by granting no flow control
    /// credit. Default 60 s; `None` waits indefinitely. Over HTTP/3 the connection is then closed with
    /// `H3_EXCESSIVE_LOAD` (limit K59).
    pub write_timeout: Option<Duration>,
    /// Minimum rate at which a client must read waiting data on its connection. Default 240 bytes per second,
    /// with up to 60 s of arrears; `None` waits indefinitely. Connections of slower clients are closed, over
    /// HTTP/3 with `H3_EXCESSIVE_LOAD` (limit K105).
    pub read_rate: Option<ReadRate>,
    /// Minimum rate at which request bodies must arrive while the service waits for them. Slower ones fail with
    /// [`BodyError::TooSlow`](super::BodyError::TooSlow). Default 240 bytes per second after 30 s; `None` waits
    /// indefinitely. It does not apply to CONNECT, whose streams may be idle. Calls of gRPC over HTTP/2 and
    /// HTTP/3 may be silent for an hour between messages (limit K360).
    pub body_rate: Option<BodyRate>,
    /// Time limit for the service to start its response. Default `None`: a service may take any time, for
    /// example for long polling. At the limit the service is dropped and the response is 503 (Service
    /// Unavailable); other requests are not affected.
    ///
    /// The time includes waiting until the service is ready and reading the request body, but not sending the
    /// response body. A service that blocks its thread cannot be stopped.
    pub handler_timeout: Option<Duration>,
    /// Largest size in bytes of the header section of a request, over every protocol. Default 64 KiB. Over HTTP/2
    /// and HTTP/3, each field counts 32 bytes more than its name and value. Larger ones are answered with 431
    /// (Request Header Fields Too Large).
    ///
    /// Over HTTP/3, [`h3::Config::limits`](courser_http3_tokio::Config::limits) replaces this and
    /// `max_header_fields` if it differs from its default.
    pub max_header_bytes: u32,
    /// Largest number of fields in the header section of a request, over every protocol. Default 1024. Requests
    /// with more are answered with 431 (Request Header Fields Too Large).
    pub max_header_fields: u32,
    /// Largest number of concurrent requests on an HTTP/2 connection. Default 100, the least that RFC 9113 §6.5.2
    /// recommends: each takes some kilobytes while the client does not read its response.
    pub max_http2_streams: u32,
}

impl Limits {
    /// Returns the limits of header sections for HTTP/3. `given` has those of its configuration, which count if they
    /// are not the default ones.
    pub(super) fn fields(&self, given: FieldLimits) -> FieldLimits {
        if given != FieldLimits::REQUEST {
            return given;
        }
        FieldLimits {
            size: self.max_header_bytes.into(),
            lines: self.max_header_fields as usize,
            value: self.max_header_bytes as usize,
            ..given
        }
    }

    /// Returns the minimum rate at which TCP clients must read from their sockets.
    pub(super) fn reader_pace(&self) -> ReaderPace {
        ReaderPace {
            longest_pause: self.write_timeout,
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
            max_header_fields: 1024,
            max_http2_streams: 100,
        }
    }
}
