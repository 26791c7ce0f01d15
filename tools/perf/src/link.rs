//! One interface for QUIC, WebTransport and TLS over TCP, so that each scenario is written once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::{Connection, EarlyData};
use courser_measure::{ConnectionCounters, Failure, IoCounters, Moves};
use tokio_rustls::TlsConnector;

use crate::carrier::Carrier as _;
use crate::datagram::{self, Datagrams, Shape};
use crate::meter::Meter;
use crate::network::Network;
use crate::quic::{self, QuicConnector};
use crate::remote::{Over, Remote};
use crate::server_report::ServerReport;
use crate::tcp::{TcpConnector, TcpLink};
use crate::transfer::{Agreed, Until};
use crate::web_transport::WebSession;
use crate::wire::Request;

/// Opens connections over QUIC, with sessions of WebTransport or without, or over TLS on TCP.
#[derive(Debug)]
pub(crate) enum Connector {
    Quic(QuicConnector),
    WebTransport(QuicConnector),
    Tcp(TcpConnector),
}

impl Connector {
    /// Creates a connector for a server.
    pub(crate) fn new(remote: &Remote) -> Result<Self, Failure> {
        match remote.over {
            Over::Quic => QuicConnector::new(remote, remote.quic_config()).map(Self::Quic),
            Over::WebTransport => {
                QuicConnector::new(remote, remote.quic_config()).map(Self::WebTransport)
            }
            Over::Tcp => {
                let connector = TlsConnector::from(remote.tls.clone());
                Ok(Self::Tcp(TcpConnector::new(connector)))
            }
        }
    }

    /// Creates a connector whose QUIC connections can send early data, if there are tickets.
    pub(crate) fn with_early_data(remote: &Remote) -> Result<Self, Failure> {
        match remote.over {
            Over::Quic => {
                let config = remote.quic_config().early_data(true);
                let connector = QuicConnector::new(remote, config)?;
                Ok(Self::Quic(connector.with_early_data()))
            }
            Over::WebTransport => Err(Failure::new(
                "sessions of WebTransport are not opened in early data",
            )),
            Over::Tcp => Err(Failure::new(
                "early data needs QUIC: TLS over TCP is measured without it",
            )),
        }
    }

    pub(crate) async fn connect(&self, remote: &Remote) -> Result<Link, Failure> {
        match self {
            Self::Quic(connector) => connector.connect(remote).await.map(Link::Quic),
            Self::WebTransport(connector) => {
                let connection = connector.connect(remote).await?;
                let session = WebSession::open(connection, &remote.name).await?;
                Ok(Link::WebTransport(Box::new(session)))
            }
            Self::Tcp(connector) => connector.connect(remote).await.map(Link::Tcp),
        }
    }

    /// Returns the moves of the connections, if [`Remote::rebind_every`] is set.
    pub(crate) fn moves(&self) -> Option<Arc<Moves>> {
        match self {
            Self::Quic(connector) | Self::WebTransport(connector) => connector.moves(),
            Self::Tcp(_) => None,
        }
    }

    /// Returns the counters of the sockets.
    pub(crate) fn io(&self) -> IoCounters {
        match self {
            Self::Quic(connector) | Self::WebTransport(connector) => connector.io(),
            Self::Tcp(connector) => connector.io(),
        }
    }

    /// Returns the features that a connection uses; `None` over TCP.
    pub(crate) fn network(&self, link: &Link, is_segmenting: bool) -> Option<Network> {
        match (self, link) {
            (Self::Quic(connector), Link::Quic(connection)) => {
                Some(connector.network(connection, is_segmenting))
            }
            (Self::WebTransport(connector), Link::WebTransport(session)) => {
                Some(connector.network(session.connection(), is_segmenting))
            }
            _ => None,
        }
    }

    /// Waits until the peers of closed connections have closed them too.
    pub(crate) async fn wait_idle(&self) {
        if let Self::Quic(connector) | Self::WebTransport(connector) = self {
            connector.wait_idle().await;
        }
    }
}

/// A connection to a perf server, used by one task.
#[derive(Debug)]
pub(crate) enum Link {
    Quic(Connection),
    WebTransport(Box<WebSession>),
    Tcp(Box<TcpLink>),
}

impl Link {
    /// Sends until `until`, and waits until the server has read all bytes.
    pub(crate) async fn upload(&mut self, until: Until, meter: &Meter) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::upload(connection, until, meter).await,
            Self::WebTransport(session) => quic::upload(&**session, until, meter).await,
            Self::Tcp(link) => link.upload(until, meter).await,
        }
    }

    /// Requests bytes, and receives them until `until`.
    pub(crate) async fn download(&mut self, until: Until, meter: &Meter) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::download(connection, until, meter).await,
            Self::WebTransport(session) => quic::download(&**session, until, meter).await,
            Self::Tcp(link) => link.download(until, meter).await,
        }
    }

    /// Sends a request and receives its response.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request,
        meter: &Meter,
    ) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::exchange(connection, request, meter).await,
            Self::WebTransport(session) => quic::exchange(&**session, request, meter).await,
            Self::Tcp(link) => link.exchange(request, meter).await,
        }
    }

    /// Sends a request and receives its response on unidirectional streams. Fails over TCP.
    pub(crate) async fn exchange_uni(
        &mut self,
        request: &Request,
        meter: &Meter,
    ) -> Result<(), Failure> {
        match self {
            Self::Quic(connection) => quic::exchange_uni(connection, request, meter).await,
            Self::WebTransport(session) => quic::exchange_uni(&**session, request, meter).await,
            Self::Tcp(link) => link.exchange(request, meter).await,
        }
    }

    /// Measures datagrams. Fails over TCP.
    pub(crate) async fn measure_datagrams(
        &self,
        shape: Shape,
        meter: &Meter,
    ) -> Result<Datagrams, Failure> {
        match self {
            Self::Quic(connection) => datagram::measure(connection, shape, meter).await,
            Self::WebTransport(session) => datagram::measure(&**session, shape, meter).await,
            Self::Tcp(_) => Err(Failure::new("datagrams need QUIC")),
        }
    }

    /// Waits for the end of the handshake and for the tickets. Returns the fate of early data.
    pub(crate) async fn complete(&self) -> Result<EarlyData, Failure> {
        match self {
            Self::Quic(connection) => quic::complete(connection).await,
            Self::WebTransport(session) => quic::complete(session.connection()).await,
            Self::Tcp(_) => Ok(EarlyData::None),
        }
    }

    /// Requests the server's counters; returns `None` when the server does not support the request.
    pub(crate) async fn server_report(&mut self) -> Option<ServerReport> {
        match self {
            Self::Quic(connection) => quic::server_report(connection).await,
            Self::WebTransport(session) => quic::server_report(&**session).await,
            Self::Tcp(link) => link.server_report().await,
        }
    }

    /// Requests the server's counters of the connection; `None` over TCP, where the kernel has them.
    pub(crate) async fn server_counters(&self) -> Option<ConnectionCounters> {
        match self {
            Self::Quic(connection) => quic::server_report(connection).await?.connection,
            Self::WebTransport(session) => quic::server_report(&**session).await?.connection,
            Self::Tcp(_) => None,
        }
    }

    /// Returns another handle to the same connection; `None` over TCP, where requests cannot share one.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Quic(connection) => Some(Self::Quic(connection.clone())),
            Self::WebTransport(session) => Some(Self::WebTransport(session.clone())),
            Self::Tcp(_) => None,
        }
    }

    /// Returns the counters of the connection; `None` over TCP, where the kernel has them.
    pub(crate) fn counters(&self) -> Option<ConnectionCounters> {
        match self {
            Self::Quic(connection) => Some(connection.stats().into()),
            Self::WebTransport(session) => Some(session.connection().stats().into()),
            Self::Tcp(_) => None,
        }
    }

    /// Returns the parameters that the handshake negotiated.
    pub(crate) fn agreed(&self) -> Agreed {
        match self {
            Self::Quic(connection) => Agreed::of_quic(connection),
            Self::WebTransport(session) => Agreed::of_quic(session.connection()),
            Self::Tcp(link) => link.agreed(),
        }
    }

    /// Closes the connection without waiting for the peer.
    pub(crate) fn close(self) {
        match self {
            Self::Quic(connection) => connection.close(0_u32.into(), b"done"),
            Self::WebTransport(session) => session.close(),
            // Dropping the stream closes the connection.
            Self::Tcp(link) => drop(link),
        }
    }

    /// Closes the connection and returns the time until the peer has closed it too. Over QUIC no other
    /// connection of `connector` may be open.
    pub(crate) async fn close_and_wait(self, connector: &Connector) -> Result<Duration, Failure> {
        let began = Instant::now();
        match self {
            Self::Quic(connection) => {
                connection.close(0_u32.into(), b"done");
                connector.wait_idle().await;
            }
            Self::WebTransport(session) => {
                session.close();
                connector.wait_idle().await;
            }
            Self::Tcp(link) => link.close_and_wait().await?,
        }
        Ok(began.elapsed())
    }
}
