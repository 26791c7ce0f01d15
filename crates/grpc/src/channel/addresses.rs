//! The tasks of a channel: name resolution and connecting. They end with the channel, or when they are done.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use courser_client::Error;
use courser_client::hooks::{Destination, lookup};
use courser_quic::runtime;
use tonic::{Code, Status};

use super::backend::{Heard, Server};
use super::balancer::{Pick, Work};
use super::shared::Shared;
use crate::status::status_of;

impl Shared {
    /// Waits for a server that is connected.
    ///
    /// # Errors
    /// `Unavailable` while no server can be reached.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<Arc<Server>, Status> {
        loop {
            // Created first, so that no change after the pick is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let (pick, work) = self
                .balancer
                .lock()
                .pick(Instant::now(), self.settings.refresh);
            self.start(work);
            match pick {
                Pick::Ready(server) => return Ok(server),
                Pick::Wait => changed.await,
                Pick::Unavailable(_, status) if !self.settings.waits_for_ready => {
                    return Err(status);
                }
                Pick::Unavailable(until, _) => {
                    let mut sleep = pin!(runtime::sleep_until(until));
                    poll_fn(|cx| match changed.as_mut().poll(cx) {
                        Poll::Ready(()) => Poll::Ready(()),
                        Poll::Pending => sleep.as_mut().poll(cx),
                    })
                    .await;
                }
            }
        }
    }

    fn start(self: &Arc<Self>, work: Work) {
        if work.resolves {
            tokio::spawn(self.clone().resolve());
        }
        for server in work.connects {
            tokio::spawn(self.clone().connect(server));
        }
    }

    async fn connect(self: Arc<Self>, server: Arc<Server>) {
        let connected = server.destination.connect().await;
        let random = random();
        let mut balancer = self.balancer.lock();
        match connected {
            Ok(()) => {
                server.heard.now();
                balancer.on_connected(Instant::now(), &server);
            }
            Err(error) => {
                let status = status_of(error, Code::Unavailable);
                // A connection that could not be opened is no answer to the call, whatever the reason.
                let status = as_unavailable(status);
                balancer.on_connect_failed(Instant::now(), &server, status, random);
            }
        }
        drop(balancer);
        self.changed.notify_waiters();
    }

    async fn resolve(self: Arc<Self>) {
        let mut servers = Vec::new();
        let mut unresolved = Vec::new();
        let mut failure = None;
        for index in 0..self.targets.len() {
            match self.servers_of(index).await {
                Ok(found) => servers.extend(found),
                Err(error) => {
                    unresolved.push(index);
                    failure = Some(error);
                }
            }
        }
        servers.truncate(MAX_BACKENDS);
        let (now, random) = (Instant::now(), random());
        let mut balancer = self.balancer.lock();
        match failure {
            Some(error) if servers.is_empty() => {
                let status = as_unavailable(status_of(error, Code::Unavailable));
                balancer.on_lookup_failed(now, status, random);
            }
            _ => balancer.on_resolved(now, servers, &unresolved),
        }
        drop(balancer);
        self.changed.notify_waiters();
    }

    async fn servers_of(&self, index: usize) -> Result<Vec<Server>, Error> {
        let target = &self.targets[index];
        let addresses = lookup(&self.client, &target.server).await?;
        let server = |address| Server {
            destination: Destination::new(&self.client, target.origin.clone(), address),
            target: index,
            address,
            uri: target.uri.clone(),
            heard: Heard::new(),
        };
        Ok(addresses.into_iter().map(server).collect())
    }
}

/// Returns the same status with the code `Unavailable`.
fn as_unavailable(status: Status) -> Status {
    if status.code() == Code::Unavailable {
        return status;
    }
    let mut unavailable = Status::unavailable(status.message());
    unavailable.set_source(Arc::new(status));
    unavailable
}

/// Returns a number from 0 to 1, the middle if the system has no random numbers.
pub(super) fn random() -> f64 {
    let seed = runtime::random_seed();
    seed.map_or(0.5, |seed| {
        f64::from(u16::from_le_bytes([seed[0], seed[1]])) / f64::from(u16::MAX)
    })
}

/// Largest number of addresses of a channel, each with a connection (limit K540).
const MAX_BACKENDS: usize = 64;
