//! A handle of a running server.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::Mutex;
use courser_quic::hooks::EndpointHooks as _;
use courser_quic::{AddressFilter, ConfigError, Endpoint};
use tokio::task::JoinHandle;

use crate::certificates::{CertificateFacts, Sources};
use crate::events::Event;
#[cfg(unix)]
use crate::give_away::{give_away, take_back};
#[cfg(unix)]
use crate::handover::ListeningSockets;
use crate::limits::Limits;
use crate::listen::Listener;
use crate::phase::Phase;
use crate::site::Site;
use crate::stats::{AcmeStats, ConnectionSummary, ListenerStats, ServerStats, ShardStats};
use crate::tasks;

/// A handle to inspect and stop a server. Cloning is cheap. It keeps neither the server running nor its sockets open.
#[derive(Clone, Debug)]
pub struct ServerHandle(pub(super) Arc<Running>);

/// A server whose sockets are open.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) site: Arc<Site>,
    pub(super) listeners: Vec<Arc<Listener>>,
    /// The listeners of plain HTTP.
    #[cfg(unix)]
    pub(super) redirects: Vec<Arc<Listener>>,
    pub(super) sources: Arc<Mutex<Sources>>,
    pub(super) acme: Option<Arc<Mutex<AcmeStats>>>,
    #[cfg(feature = "webtransport")]
    pub(super) sessions: Option<courser_webtransport_tokio::Monitor>,
    #[cfg(feature = "metrics")]
    pub(super) metrics: Option<courser_observe::Metrics>,
}

impl Running {
    /// Returns the listeners of all addresses, those of plain HTTP last.
    #[cfg(unix)]
    pub(super) fn all_listeners(&self) -> Vec<Arc<Listener>> {
        let all = self.listeners.iter().chain(&self.redirects);
        all.cloned().collect()
    }

    /// Closes the QUIC sockets once their connections are over, although handles are left. Completes when they are
    /// closed.
    ///
    /// # Cancel safety
    /// Safe. The sockets are closed whether or not the future is polled.
    pub(super) fn end(&self) -> impl Future<Output = ()> + use<> {
        self.site.phases.enter(Phase::Ended);
        let endpoints = self.listeners.iter().filter_map(|it| it.endpoint());
        let ending: Vec<_> = endpoints.map(|it| it.end()).collect();
        async move {
            for ended in ending {
                ended.await;
            }
        }
    }

    /// Returns counters and the phase of the server.
    pub(super) fn stats(&self) -> ServerStats {
        let site = &self.site;
        let phase = site.phases.phase();
        let listener = |it: &Arc<Listener>| {
            let endpoint = it.endpoint();
            ListenerStats {
                address: it.address,
                quic: endpoint.as_ref().map(Endpoint::stats),
                udp: endpoint.as_ref().map(Endpoint::socket_counters),
                udp_overflow: endpoint.as_ref().and_then(Endpoint::receive_overflow),
            }
        };
        let mut stats = ServerStats {
            ready: self.is_ready(),
            busy: site.gate.is_busy(),
            draining: phase >= Phase::Draining,
            ended: phase >= Phase::Ended,
            drain: site.tally.drain_progress(),
            stopped_tasks: site.tasks.stopped(),
            task_ends: site.tasks.ends(),
            acme: self.acme.as_ref().map(|it| it.lock().clone()),
            listeners: self.listeners.iter().map(listener).collect(),
            ..site.tally.stats()
        };
        for quic in stats.listeners.iter().filter_map(|it| it.quic) {
            stats.refusals.add_endpoint(&quic);
        }
        stats
    }

    /// Returns the counters of each shard of each QUIC address.
    pub(super) fn shard_stats(&self) -> Vec<ShardStats> {
        let mut all = Vec::new();
        for listener in &self.listeners {
            let endpoint = listener.endpoint();
            let shards = endpoint.iter().flat_map(Endpoint::shard_stats);
            all.extend(shards.enumerate().map(|(shard, quic)| ShardStats {
                address: listener.address,
                shard,
                quic,
            }));
        }
        all
    }

    fn is_ready(&self) -> bool {
        let site = &self.site;
        let is_running = site.phases.phase() == Phase::Running;
        let is_busy = site.gate.is_busy();
        is_running && !is_busy && site.resolver.has_certificate() && site.tasks.all_run()
    }
}

impl ServerHandle {
    /// Returns the first address of the server, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addrs()[0]
    }

    /// Returns all addresses of the server, at least one.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.0.listeners.iter().map(|it| it.address).collect()
    }

    /// Returns the QUIC endpoints, one for each address of the server; none without QUIC. If the socket of an
    /// address fails, its endpoint is missing until a new one is opened, so do not keep the result.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let listeners = self.0.listeners.iter();
        listeners.filter_map(|it| it.endpoint()).collect()
    }

    /// Returns counters and the phase of the server. Examines each QUIC connection.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?).bind()?;
    /// # let handle = server.handle();
    /// let stats = handle.stats();
    /// for listener in &stats.listeners {
    ///     println!("{}: {:?} datagrams dropped by the kernel", listener.address, listener.udp_overflow);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> ServerStats {
        self.0.stats()
    }

    /// Returns the counters of each shard of each QUIC address, which show how evenly the work is distributed.
    /// See [`Server::shards`](super::Server::shards).
    pub fn shard_stats(&self) -> Vec<ShardStats> {
        self.0.shard_stats()
    }

    /// Returns the counts and the list of sessions of WebTransport, or `None` unless
    /// [`Server::webtransport`](super::Server::webtransport) was called.
    #[cfg(feature = "webtransport")]
    pub fn sessions(&self) -> Option<courser_webtransport_tokio::Monitor> {
        self.0.sessions.clone()
    }

    /// Returns the number of open connections over all protocols. Unlike [`stats`](Self::stats), it does not
    /// examine them.
    pub fn open_connections(&self) -> u64 {
        self.0.site.tally.connections_open()
    }

    /// Returns true while new clients should be sent to this server: it is neither draining nor busy, has a
    /// certificate, and all its background tasks run ([`Event::TaskEnded`]).
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Returns true once the server has ended: it has drained or was dropped, its connections are over, and its sockets
    /// are closed or about to be. Handles that are left keep no socket open, and [`stats`](Self::stats) returns the
    /// last counters.
    pub fn has_ended(&self) -> bool {
        self.0.site.phases.phase() >= Phase::Ended
    }

    /// Returns the names of the background tasks that have ended and were not restarted yet.
    pub fn stopped_tasks(&self) -> Vec<String> {
        self.0.site.tasks.stopped()
    }

    /// Runs a background task of the application as part of the server. When the future that `begin` returns
    /// ends or panics, [`Event::TaskEnded`] reports it, the server is not [ready](Self::is_ready), and `begin`
    /// is called again after a pause of one second, which doubles up to a minute. Aborting the returned handle
    /// ends the task permanently.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn sweep_sessions() -> std::io::Result<()> { std::future::pending().await }
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?).bind()?;
    /// let sweeper = server.handle().keep_running("the sweeper of sessions", || async {
    ///     sweep_sessions().await?;
    ///     Ok(())
    /// });
    /// # sweeper.abort();
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn keep_running<F>(
        &self,
        name: impl Into<String>,
        begin: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send,
    {
        let (task, events) = (self.0.site.tasks.task(name), self.0.site.events.clone());
        tokio::spawn(async move { tasks::keep_running(&task, &events, begin).await })
    }

    /// Returns true while new clients are refused because of [`set_busy`](Self::set_busy).
    pub fn is_busy(&self) -> bool {
        self.0.site.gate.is_busy()
    }

    /// Starts or stops refusing new clients: with CONNECTION_REFUSED over QUIC, by closing over TCP.
    ///
    /// Open connections continue, and their requests are answered. Meanwhile [`ServerStats::ready`] is false.
    /// Unlike [`ServerHandle::drain`], this can be reversed.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?).bind()?;
    /// # let handle = server.handle();
    /// handle.set_busy(true); // new clients are refused
    /// assert!(!handle.is_ready());
    /// handle.set_busy(false);
    /// # Ok(()) }
    /// ```
    pub fn set_busy(&self, is_busy: bool) {
        self.0.site.gate.set_busy(is_busy);
        for endpoint in self.endpoints() {
            self.0.site.set_admission(&endpoint);
        }
    }

    /// Replaces the address filter. Datagrams from blocked addresses are dropped before any other processing,
    /// and TCP connections from them are closed when they are accepted.
    ///
    /// Open connections of newly blocked addresses are closed at once: with CONNECTION_REFUSED over QUIC,
    /// without a response over TCP.
    pub fn set_address_filter(&self, filter: impl Into<Arc<AddressFilter>>) {
        let filter = filter.into();
        self.0.site.gate.set_filter(filter.clone());
        for endpoint in self.endpoints() {
            endpoint.set_address_filter(filter.clone());
        }
    }

    /// Returns the open connections, oldest first.
    pub fn connections(&self) -> Vec<ConnectionSummary> {
        let mut all = Vec::new();
        self.for_each_connection(|summary| all.push(summary));
        all
    }

    /// Calls `look` with each open connection, oldest first. Holds the statistics of one connection at a time,
    /// while [`connections`](Self::connections) holds those of all.
    pub fn for_each_connection(&self, mut look: impl FnMut(ConnectionSummary)) {
        let mut open = self.0.site.tally.open();
        open.sort_by_key(|record| record.peer.connection_id());
        for record in open {
            look(ConnectionSummary::of(&record));
        }
    }

    /// Returns the open connection with this [number](super::Peer::connection_id). Takes one lock, independently
    /// of the number of connections.
    pub fn connection(&self, id: u64) -> Option<ConnectionSummary> {
        let record = self.0.site.tally.find(id)?;
        Some(ConnectionSummary::of(&record))
    }

    /// Returns the limits that were set with [`Server::limits`](super::Server::limits).
    pub fn limits(&self) -> &Limits {
        &self.0.site.limits
    }

    /// Returns public facts about the first certificate in use, or `None` with custom resolvers and while ACME has
    /// none yet.
    pub fn certificate(&self) -> Option<CertificateFacts> {
        self.certificates().into_iter().next()
    }

    /// Returns public facts about all certificates in use, the default one first; none with custom resolvers.
    pub fn certificates(&self) -> Vec<CertificateFacts> {
        self.0.site.resolver.facts()
    }

    /// Reads certificate files again. Returns true if a certificate was replaced. This also happens
    /// automatically within a second of a change.
    ///
    /// # Errors
    /// Returns the first error if a certificate cannot be used. The previous one remains in use.
    pub fn reload(&self) -> Result<bool, ConfigError> {
        let reloaded = self.0.sources.lock().reload(&self.0.site.resolver);
        if let Ok(true) = reloaded {
            self.0.site.events.report(Event::CertificateReplaced);
        }
        reloaded
    }

    /// Hands the listening sockets over to another process, so that it serves new clients while this server
    /// drains. Pass them to [`Server::inherit`](super::Server::inherit) there, for example in a child process or
    /// over a Unix socket, and [`retire`](Self::retire) this server as soon as the other one serves. If it fails,
    /// call [`take_back`](Self::take_back).
    ///
    /// Both processes accept TCP clients meanwhile. From the return of this method on, this process receives
    /// only from the QUIC clients that it has already; each has a socket of its own for that, up to 1024 for a
    /// shard. Other clients wait for the other process. A QUIC client that moves to another address after that
    /// loses its connection and has to connect again, and so do clients beyond the limit.
    ///
    /// # Errors
    /// Returns an error if the system refuses further descriptors, if the server drains already, or `Unsupported` for
    /// QUIC on systems other than Linux. The server continues then.
    ///
    /// # Cancel safety
    /// If the future is dropped, call [`take_back`](Self::take_back).
    #[cfg(unix)]
    pub async fn hand_over(&self) -> std::io::Result<Vec<ListeningSockets>> {
        if self.0.site.phases.phase() >= Phase::Retired {
            return Err(std::io::Error::other("the server drains already"));
        }
        give_away(&self.0.all_listeners()).await
    }

    /// Drains the server after [`hand_over`](Self::hand_over), when the other process serves: stops accepting clients
    /// at once, and [drains](Self::drain) a second later. Clients that were accepted last can send a request in
    /// that time. Returns at once.
    pub fn retire(&self) {
        self.0.site.phases.enter(Phase::Retired);
    }

    /// Receives from all QUIC clients again after [`hand_over`](Self::hand_over).
    #[cfg(unix)]
    pub fn take_back(&self) {
        take_back(&self.0.all_listeners());
    }

    /// Starts to drain the server, like the signal of [`Server::drain`](super::Server::drain). Returns at once.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?).bind()?;
    /// let handle = server.handle();
    /// let serving = tokio::spawn(server.service(axum::Router::new()).into_future());
    /// handle.drain();
    /// println!("{}", serving.await??);
    /// # Ok(()) }
    /// ```
    pub fn drain(&self) {
        self.0.site.phases.enter(Phase::NotReady);
    }

    /// Ends the server at once and aborts requests in flight.
    pub fn cut(&self) {
        self.0.site.tally.begin_cutting();
        self.0.site.phases.enter(Phase::Cut);
    }
}
