//! A server, and how a client connects to it.

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

use crate::wire::{DATAGRAM_BYTES, DATAGRAMS, MAX_STREAMS};

/// A server, and how a client connects to it.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The server as the user wrote it, for reports.
    pub target: String,
    /// The address of the server.
    pub address: SocketAddr,
    /// The name that the certificate has to be for.
    pub name: String,
    /// The transport protocol.
    pub over: Over,
    /// The congestion control algorithm.
    pub congestion: Algorithm,
    /// Searches for a larger window when the capacity of the path has risen. See
    /// [`TransportConfig::capacity_rise`].
    pub capacity_rise: bool,
    /// Versions of QUIC; the first flight is of the first one.
    pub versions: Vec<QuicVersion>,
    /// Largest UDP payload; discovered without one.
    pub mtu: Option<u16>,
    /// Sends many UDP datagrams in one system call, where the system can.
    pub segmentation_offload: bool,
    /// Time between two moves of QUIC connections to a new socket, under load; `None` stays.
    pub rebind_every: Option<Duration>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// The clock of this end's CPU time.
    pub clock: CpuClock,
    /// The TLS configuration.
    pub tls: Arc<rustls::ClientConfig>,
    /// Receives the traces of QUIC connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

/// The transport protocol of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// QUIC.
    Quic,
    /// TLS over TCP.
    Tcp,
}

impl Over {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Tcp => "tls over tcp",
        }
    }
}

impl Remote {
    /// Returns the same server with TLS sessions resumed by tickets, which its connections share.
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
            ..transport(self.congestion, self.mtu)
        };
        ClientConfig::with_rustls(self.tls.clone())
            .versions(self.versions.iter().copied())
            .transport_config(transport)
    }

    fn peer(&self) -> Peer<'_> {
        Peer {
            address: self.address,
            name: &self.name,
        }
    }

    /// Returns the failure of a port on which no program listens.
    pub(crate) fn is_absent(&self, protocol: &str) -> Failure {
        self.peer().is_absent(protocol)
    }

    /// Returns the failure of a server with another protocol.
    pub(crate) fn speaks_otherwise(&self) -> Failure {
        let text = format!("{} does not speak the protocol 'perf' (ALPN)", self.address);
        Failure::with_cause(text, Cause::Protocol)
    }

    /// Returns the failure of a connection over QUIC.
    pub(crate) fn quic_failure(&self, error: &ConnectionError) -> Failure {
        if error.is_protocol_mismatch() {
            return self.speaks_otherwise();
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
                self.speaks_otherwise()
            }
            _ => failure,
        }
    }

    /// Returns the offer of handshakes, for messages.
    fn offer(&self) -> HandshakeOffer {
        HandshakeOffer::of_tls13(&self.tls)
    }
}

/// Tickets that are kept: enough for many handshakes at once, each of which brings new ones.
const TICKETS: usize = 4096;
