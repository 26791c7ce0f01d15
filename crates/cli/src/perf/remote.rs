//! Whom a client connects to, and how.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser::{
    Algorithm, ClientConfig, ConnectionError, HandshakeFailureKind, HandshakeOffer, TransportConfig,
};
use courser_measure::target::transport;
use courser_measure::{Cause, CpuClock, Failure, Peer};
use rustls::client::Resumption;

use super::wire::MAX_STREAMS;

/// Whom a client connects to, and how.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// As the user wrote it.
    pub(crate) target: String,
    pub(crate) address: SocketAddr,
    /// What the certificate has to be for.
    pub(crate) name: String,
    pub(crate) over: Over,
    pub(crate) congestion: Algorithm,
    pub(crate) mtu: Option<u16>,
    /// Many UDP datagrams leave in one system call, where the system can.
    pub(crate) segmentation_offload: bool,
    pub(crate) connect_timeout: Duration,
    /// What counts as this end's CPU time.
    pub(crate) clock: CpuClock,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    /// Receives the traces of QUIC connections.
    pub(crate) sinks: Option<Arc<dyn SinkFactory>>,
}

/// What carries the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    Quic,
    Tcp,
}

impl Over {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Tcp => "tls over tcp",
        }
    }
}

impl Remote {
    /// The same with sessions resumed by tickets; what is made from it shares them.
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
            sinks: self.sinks.clone(),
            ..transport(self.congestion, self.mtu)
        };
        ClientConfig::with_rustls(self.tls.clone()).transport_config(transport)
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

/// Enough for many handshakes at once; each brings new ones.
const TICKETS: usize = 4096;
