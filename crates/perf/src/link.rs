//! QUIC and TLS over TCP behind one face, so that each scenario is written once.

use std::time::{Duration, Instant};

use courser::Connection;
use courser_measure::Failure;
use tokio_rustls::TlsConnector;

use crate::counters::{ConnectionCounters, IoCounters, ServerReport};
use crate::meter::Meter;
use crate::quic::{self, QuicConnector};
use crate::remote::{Over, Remote};
use crate::tcp::{TcpConnector, TcpLink};
use crate::transfer::{Agreed, Until};
use crate::wire::Request;

/// Makes connections.
#[derive(Debug)]
pub(crate) enum Connector {
    Quic(QuicConnector),
    Tcp(TcpConnector),
}

impl Connector {
    /// Opens what connections to a server need.
    pub(crate) fn new(remote: &Remote) -> Result<Self, Failure> {
        match remote.over {
            Over::Quic => QuicConnector::new(remote, remote.quic_config()).map(Self::Quic),
            Over::Tcp => {
                let connector = TlsConnector::from(remote.tls.clone());
                Ok(Self::Tcp(TcpConnector::new(connector)))
            }
        }
    }

    pub(crate) async fn connect(&self, remote: &Remote) -> Result<Link, Failure> {
        match self {
            Self::Quic(connector) => connector.connect(remote).await.map(Link::Quic),
            Self::Tcp(connector) => connector.connect(remote).await.map(Link::Tcp),
        }
    }

    /// What went through the sockets.
    pub(crate) fn io(&self) -> IoCounters {
        match self {
            Self::Quic(connector) => connector.io(),
            Self::Tcp(connector) => connector.io(),
        }
    }

    /// Waits until the peers of closed connections know.
    pub(crate) async fn wait_idle(&self) {
        if let Self::Quic(connector) = self {
            connector.wait_idle().await;
        }
    }
}

/// A connection to a perf server, used by one task.
#[derive(Debug)]
pub(crate) enum Link {
    Quic(Connection),
    Tcp(Box<TcpLink>),
}

impl Link {
    /// Sends until `until`, and waits until the server has read it all.
    pub(crate) async fn upload(&mut self, until: Until, meter: &Meter) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::upload(connection, until, meter).await,
            Self::Tcp(link) => link.upload(until, meter).await,
        }
    }

    /// Receives until `until`.
    pub(crate) async fn download(&mut self, until: Until, meter: &Meter) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::download(connection, until, meter).await,
            Self::Tcp(link) => link.download(until, meter).await,
        }
    }

    /// One request and its response.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request,
        meter: &Meter,
    ) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::exchange(connection, request, meter).await,
            Self::Tcp(link) => link.exchange(request, meter).await,
        }
    }

    /// Like [`Link::exchange`], on unidirectional streams where there are streams.
    pub(crate) async fn exchange_uni(
        &mut self,
        request: &Request,
        meter: &Meter,
    ) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::exchange_uni(connection, request, meter).await,
            Self::Tcp(link) => link.exchange(request, meter).await,
        }
    }

    /// Asks how the server fares; `None` when it does not understand the question.
    pub(crate) async fn ask(&mut self) -> Option<ServerReport> {
        match self {
            Self::Quic(connection) => quic::ask(connection).await,
            Self::Tcp(link) => link.ask().await,
        }
    }

    /// Another user of the same connection, where connections have streams.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Quic(connection) => Some(Self::Quic(connection.clone())),
            Self::Tcp(_) => None,
        }
    }

    /// How the connection stands; `None` over TCP, where the kernel knows.
    pub(crate) fn counters(&self) -> Option<ConnectionCounters> {
        match self {
            Self::Quic(connection) => Some(connection.stats().into()),
            Self::Tcp(_) => None,
        }
    }

    /// What the handshake agreed on.
    pub(crate) fn agreed(&self) -> Agreed {
        match self {
            Self::Quic(connection) => Agreed::of_quic(connection),
            Self::Tcp(link) => link.agreed(),
        }
    }

    /// Closes, without waiting for the peer.
    pub(crate) fn close(self) {
        match self {
            Self::Quic(connection) => connection.close(0_u32.into(), b"done"),
            // The kernel closes in its own time.
            Self::Tcp(link) => drop(link),
        }
    }

    /// Closes, and returns how long it takes until the peer is known to know. Over QUIC nothing
    /// else may be open on `connector`.
    pub(crate) async fn close_and_wait(self, connector: &Connector) -> Result<Duration, Failure> {
        let began = Instant::now();
        match self {
            Self::Quic(connection) => {
                connection.close(0_u32.into(), b"done");
                connector.wait_idle().await;
            }
            Self::Tcp(link) => link.close_and_wait().await?,
        }
        Ok(began.elapsed())
    }
}
