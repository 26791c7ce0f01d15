//! The connections that a measurement uses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_measure::{ConnectionCounters, Failure, IoCounters};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::link::{Connector, Link};
use crate::meter::Meter;
use crate::network::Network;
use crate::remote::Remote;
use crate::server_report::ServerReport;
use crate::transfer::Agreed;

/// The connections of a measurement, all to one server.
#[derive(Debug)]
pub(crate) struct Session {
    connector: Connector,
    links: Vec<Link>,
    pub(crate) handshake: Handshake,
}

/// The duration and the negotiated parameters of a handshake.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub struct Handshake {
    /// The duration in seconds.
    pub seconds: f64,
    /// The cipher suite and the key exchange, and whether the handshake resumed a session.
    #[serde(flatten)]
    pub agreed: Agreed,
}

impl Session {
    pub(crate) async fn open(remote: &Remote, connections: u64) -> Result<Self, Failure> {
        let connector = Connector::new(remote)?;
        let began = Instant::now();
        let first = connector.connect(remote).await?;
        let seconds = began.elapsed().as_secs_f64();
        let handshake = Handshake {
            seconds,
            agreed: first.agreed(),
        };
        let mut session = Self {
            connector,
            links: vec![first],
            handshake,
        };
        session.grow(remote, connections).await?;
        Ok(session)
    }

    async fn grow(&mut self, remote: &Remote, connections: u64) -> Result<(), Failure> {
        while (self.links.len() as u64) < connections {
            self.links.push(self.connector.connect(remote).await?);
        }
        Ok(())
    }

    /// Returns `count` links. Over QUIC they share the connections evenly; over TCP each has its own
    /// connection.
    pub(crate) async fn lanes(
        &mut self,
        remote: &Remote,
        count: u64,
    ) -> Result<Vec<Link>, Failure> {
        let shared: Option<Vec<Link>> = (0..count)
            .zip(self.links.iter().cycle())
            .map(|(_, link)| link.share())
            .collect();
        if let Some(shared) = shared {
            return Ok(shared);
        }
        self.grow(remote, count).await?;
        Ok(std::mem::take(&mut self.links))
    }

    /// Requests the server's counters on the first connection.
    pub(crate) async fn server_report(&mut self) -> Option<ServerReport> {
        self.links.first_mut()?.server_report().await
    }

    /// Returns the features that the first connection uses; `None` over TCP.
    pub(crate) fn network(&self, is_segmenting: bool) -> Option<Network> {
        self.connector.network(self.links.first()?, is_segmenting)
    }

    /// Starts counting the bytes and requests of the connections.
    pub(crate) fn meter(&self) -> Arc<Meter> {
        Meter::with_moves(self.connector.moves())
    }

    pub(crate) fn io(&self) -> IoCounters {
        self.connector.io()
    }

    /// Returns the counters of the connections at this end.
    pub(crate) fn counters(&self) -> Option<ConnectionCounters> {
        ConnectionCounters::sum(self.links.iter().filter_map(Link::counters))
    }

    /// Returns the counters of the connections at the server; `None` if it does not answer for one of them.
    /// Requests all at the same time, so that many connections take no longer than one.
    pub(crate) async fn server_counters(&self) -> Option<ConnectionCounters> {
        let links: Option<Vec<Link>> = self.links.iter().map(Link::share).collect();
        let requests = links?
            .into_iter()
            .map(|link| async move { link.server_counters().await });
        let mut requests: JoinSet<_> = requests.collect();
        let mut all = Vec::with_capacity(self.links.len());
        while let Some(answer) = requests.join_next().await {
            all.push(answer.ok()??);
        }
        ConnectionCounters::sum(all)
    }

    /// Closes all connections, and waits briefly until the server has closed them too.
    pub(crate) async fn close(self) {
        self.links.into_iter().for_each(Link::close);
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.connector.wait_idle()).await;
    }
}

/// Time limit for closing. A server that does not answer has closed already.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
