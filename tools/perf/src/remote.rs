//! The server of a measurement and the settings of connections to it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser::{
    Algorithm, ClientConfig, ConnectionError, HandshakeFailureKind, HandshakeOffer, QuicVersion,
    TransportConfig,
};
use courser_measure::target::transport;
use courser_measure::{Cause, CpuClock, Failure, Peer};
use rustls::client::Resumption;

use crate::via::Via;
use crate::wire::{DATAGRAM_BYTES, DATAGRAMS, MAX_STREAMS};

/// The server of a measurement and the settings of connections to it.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The server as the user wrote it, for reports.
    pub target: String,
    /// The address of the server.
    pub address: SocketAddr,
    /// The name that the server's certificate must contain.
    pub name: String,
    /// QUIC, or TLS over TCP.
    pub over: Over,
    /// The congestion control algorithm.
    pub congestion: Algorithm,
    /// Searches for a larger window when the capacity of the path has risen. See
    /// [`TransportConfig::capacity_rise`].
    pub capacity_rise: bool,
    /// Versions of QUIC; the first flight uses the first one.
    pub versions: Vec<QuicVersion>,
    /// Largest UDP payload in bytes; `None` discovers it.
    pub mtu: Option<u16>,
    /// Sends batches of UDP datagrams in one system call, if the system supports it.
    pub segmentation_offload: bool,
    /// Interval at which QUIC connections move to a new socket under load; `None` keeps the socket.
    pub rebind_every: Option<Duration>,
    /// Interfaces or addresses of this machine at which a further path of each connection begins (RFC 10069).
    pub paths: Vec<courser::Via>,
    /// The UDP proxy through which QUIC connections pass, each in a tunnel of its own.
    pub via: Option<Via>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// The clock for the CPU time of the client.
    pub clock: CpuClock,
    /// The TLS configuration of connections over both transports.
    pub tls: Arc<rustls::ClientConfig>,
    /// Receives the traces of QUIC connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

/// The transport protocol of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// QUIC, over UDP.
    Quic,
    /// A session of WebTransport on each connection of HTTP/3.
    WebTransport,
    /// TLS over TCP, with one exchange at a time on a connection.
    Tcp,
}

impl Over {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::WebTransport => "webtransport",
            Self::Tcp => "tls over tcp",
        }
    }
}

impl Remote {
    /// Returns the same server with a shared store of tickets, so that connections resume TLS sessions.
    #[must_use]
    pub(crate) fn resuming(&self) -> Self {
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.resumption = Resumption::in_memory_sessions(TICKETS);
        Self {
            tls: Arc::new(tls),
            ..self.clone()
        }
    }

    pub(crate) fn quic_config(&self) -> ClientConfig {
        let transport = TransportConfig {
            handshake_timeout: self.connect_timeout,
            max_uni_streams: MAX_STREAMS,
            datagram_receive_queue: DATAGRAMS,
            datagram_receive_buffer_size: Some(DATAGRAM_BYTES),
            sinks: self.sinks.clone(),
            capacity_rise: self.capacity_rise,
            max_paths: u8::try_from(self.paths.len() + 1).unwrap_or(u8::MAX),
            ..transport(self.congestion, self.mtu)
        };
        ClientConfig::with_rustls(self.tls.clone())
            .versions(self.versions.iter().copied())
            .transport_config(transport)
    }

    /// Returns the transport parameters of the connection to a proxy. Its largest packets are discovered: --mtu is for
    /// those inside.
    pub(crate) fn outer(&self) -> TransportConfig {
        TransportConfig {
            handshake_timeout: self.connect_timeout,
            capacity_rise: self.capacity_rise,
            ..transport(self.congestion, None)
        }
    }

    fn peer(&self) -> Peer<'_> {
        Peer {
            address: self.address,
            name: &self.name,
        }
    }

    /// Returns the failure for a port on which no program listens.
    pub(crate) fn not_listening(&self, protocol: &str) -> Failure {
        self.peer().not_listening(protocol)
    }

    /// Returns the failure for a server that does not support the protocol.
    pub(crate) fn protocol_mismatch(&self) -> Failure {
        let name = match self.over {
            Over::WebTransport => "h3",
            Over::Quic | Over::Tcp => "perf",
        };
        let text = format!(
            "{} does not support the protocol '{name}' (ALPN)",
            self.address
        );
        Failure::with_cause(text, Cause::Protocol)
    }

    /// Returns the failure of a connection over QUIC.
    pub(crate) fn quic_failure(&self, error: &ConnectionError) -> Failure {
        if error.is_protocol_mismatch() {
            return self.protocol_mismatch();
        }
        self.peer()
            .quic_failure(error, &self.offer(), self.connect_timeout)
    }

    /// Returns the failure of a connection over TCP.
    pub(crate) fn tcp_failure(&self, error: &io::Error) -> Failure {
        let failure = self
            .peer()
            .tcp_failure(error, &self.offer(), self.connect_timeout);
        match failure.cause() {
            Some(Cause::Handshake(cause)) if cause.kind() == HandshakeFailureKind::Protocol => {
                self.protocol_mismatch()
            }
            _ => failure,
        }
    }

    /// Returns the values that handshakes offer, for messages.
    fn offer(&self) -> HandshakeOffer {
        HandshakeOffer::of_tls13(&self.tls)
    }
}

/// The largest number of tickets kept: enough for many concurrent handshakes, each of which adds new ones.
const TICKETS: usize = 4096;
