//! QUIC and TLS over TCP behind one face, so that each scenario is written once.

use std::time::{Duration, Instant};

use courser::{CipherSuite, Connection};
use serde::Serialize;

use super::counters::{ConnectionCounters, IoCounters, ServerReport};
use super::meter::Meter;
use super::quic::{self, QuicConnector};
use super::remote::Remote;
use super::tcp::{TcpConnector, TcpLink};
use super::wire::Request;
use crate::error::Failure;

/// When a transfer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Until {
    Bytes(u64),
    At(Instant),
}

/// Makes connections.
#[derive(Debug)]
pub(crate) enum Connector {
    Quic(QuicConnector),
    Tcp(TcpConnector),
}

impl Connector {
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

/// What a handshake agreed on.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub(crate) struct Agreed {
    pub(crate) suite: Option<String>,
    pub(crate) key_exchange: Option<String>,
    pub(crate) resumed: bool,
}

impl Agreed {
    fn of_quic(connection: &Connection) -> Self {
        let data = connection.handshake_data();
        let suite = data
            .as_ref()
            .and_then(|data| data.suite)
            .map(|suite| match suite {
                CipherSuite::Aes128Gcm => "AES-128-GCM",
                CipherSuite::Aes256Gcm => "AES-256-GCM",
                CipherSuite::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            });
        Self {
            suite: suite.map(str::to_owned),
            key_exchange: data.as_ref().and_then(|data| data.key_exchange.clone()),
            resumed: data.is_some_and(|data| data.resumed),
        }
    }
}
