//! The run of a server, from its sockets to its end.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use courser_base::{Mutex, is_same_host};
use courser_http3_tokio::HttpService;
use courser_quic::{BindError, Endpoint, RetryPolicy, ServerConfig};
use courser_tls::rustls;
use tokio::net::TcpListener;

use crate::alt_svc::{AltSvc, AltSvcHeader};
use crate::builder::Server;
use crate::certificates::chosen::Chooser;
use crate::certificates::reset::ResetSecret;
use crate::certificates::{self, Sources};
use crate::drain::{self, Drained};
use crate::error::Error;
use crate::events::Events;
use crate::exchange::body::Body;
use crate::handle::{Running, ServerHandle};
use crate::limits;
use crate::limits::gate::Gate;
use crate::limits::refused_clients::RefusedClients;
use crate::limits::uploads::UploadMemory;
use crate::listen::{self, Door, Listener};
use crate::phase::{Conductor, Phase};
use crate::quic::settings::QuicSettings;
use crate::quic::socket::{QuicSocket, QuicSockets};
use crate::quic::{QuicAddress, QuicContext};
use crate::site::Site;
use crate::tally::Tally;
use crate::tasks::{Task, Tasks, keep_running};
use crate::tcp::listen::listen;
use crate::tcp::{TcpAddress, TcpContext};
use crate::{quic, tcp, tls};

impl Server {
    /// Opens the sockets. Clients wait until there is a service.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?).bind()?;
    /// let handle = server.handle();
    /// tokio::spawn(server.service(axum::Router::new()).into_future());
    /// assert!(handle.is_ready());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if an address cannot be bound, or a configuration is invalid.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn bind(self) -> Result<Bound, Error> {
        bind(self)
    }

    /// Answers requests with `service` once the result is awaited, which opens the sockets.
    pub fn service<S: HttpService<Body>>(self, service: S) -> Serving<S> {
        Serving::unbound(self, service)
    }
}

/// A server whose sockets are open; see [`Server::bind`].
#[must_use = "nothing is served before this has a service and is awaited"]
pub struct Bound {
    doors: Vec<Door>,
    handle: ServerHandle,
    quic: Arc<QuicContext>,
    tcp: Arc<TcpContext>,
    alt_svc: Option<AltSvc>,
    drain: drain::Plan,
    /// Background work that ends with the server.
    watch: Background,
}

pub(super) fn bind(server: Server) -> Result<Bound, Error> {
    check(&server)?;
    let addresses = server.addresses.map_err(Error::Address)?;
    if server.with_quic {
        server.quic.moves.check(&addresses)?;
    }
    let certificates = server.certificates?;
    let resolver = certificates.resolver;
    let reset = server.reset.or(certificates.reset);
    let tls = tls::Tls::new(
        server.tls,
        resolver.clone(),
        server.quic.choice_limit(&server.limits),
    )?;
    // The certificate of a client is known at the end of its handshake.
    let takes_early = server.quic.early_data.is_some() && !tls.requests_certificates();
    let may_retry = server.quic.retry_policy(&resolver) != RetryPolicy::Never;
    let memory = budget(server.quic.memory_budget);
    let build = |it: QuicSettings| it.build(&tls, &resolver, &server.limits, &server.http3);
    let quic = server.with_quic.then_some(server.quic);
    let quic = quic.map(build).transpose()?;
    let tls = tls.tcp()?;
    let doors = open_doors(addresses, quic.as_ref(), reset.as_ref(), server.with_tcp)?;
    let site = Arc::new(Site {
        limits: server.limits,
        tally: Arc::new(Tally::with_memory(memory)),
        gate: Gate::new(server.address_filter),
        refused_clients: RefusedClients::new(server.events.clone()),
        resolver,
        only_names: server.only_names,
        sends_interim: server.sends_interim,
        events: server.events,
        conductor: Conductor::new(),
        tasks: Arc::default(),
    });
    let quic = QuicContext {
        site: site.clone(),
        http3: server.http3,
        announces_names: server.announces_names,
        early_requests: takes_early.then_some(server.early_requests),
        may_retry,
    };
    let tcp = TcpContext {
        site: site.clone(),
        tls,
        challenge: challenge(&certificates.sources),
        chooser: site.resolver.choice().cloned().map(Chooser::new),
        uploads: Arc::new(UploadMemory::of_budget(memory)),
    };
    let (sources, watch) = watch(&site, certificates.sources);
    let handle = ServerHandle(Arc::new(Running {
        site: site.clone(),
        listeners: doors.iter().map(Door::listener).collect(),
        sources,
    }));
    for endpoint in handle.endpoints() {
        site.adopt(&endpoint);
    }
    Ok(Bound {
        doors,
        handle,
        quic: Arc::new(quic),
        tcp: Arc::new(tcp),
        alt_svc: server.alt_svc.filter(|_| server.with_quic),
        drain: drain::Plan {
            signal: server.drain,
            ready_delay: server.ready_delay,
            deadline: server.deadline,
        },
        watch,
    })
}

/// Checks the settings that are independent of addresses and certificates.
fn check(server: &Server) -> Result<(), Error> {
    if !server.with_tcp && !server.with_quic {
        return Err(Error::NothingToServe);
    }
    limits::check_all(&server.limits, &server.http3)?;
    Ok(())
}

type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Replaces certificates that have changed and renews those of ACME, while it is polled. Returns the sources
/// too.
fn watch(site: &Site, mut sources: Sources) -> (Arc<Mutex<Sources>>, Background) {
    let events = site.events.clone();
    let acme = take_acme(&mut sources, &site.tasks, &events);
    let sources = Arc::new(Mutex::new(sources));
    let (watched, resolver) = (sources.clone(), site.resolver.clone());
    let task = site.tasks.task("the watch over certificates");
    let watching = async move {
        let begin = || {
            let watching = certificates::watch(watched.clone(), resolver.clone(), events.clone());
            async move {
                watching.await;
                Ok(())
            }
        };
        keep_running(&task, &events, begin).await;
    };
    let both = async move {
        tokio::join!(watching, acme);
    };
    (sources, Box::pin(both))
}

/// Returns the memory budget of a server with this setting.
fn budget(given: Option<u64>) -> u64 {
    given.unwrap_or_else(courser_quic::default_memory_budget)
}

/// Opens the sockets of all addresses. With port 0, those with different IPs share one port.
fn open_doors(
    addresses: Vec<SocketAddr>,
    quic: Option<&QuicSockets>,
    reset: Option<&ResetSecret>,
    with_tcp: bool,
) -> Result<Vec<Door>, Error> {
    let mut doors: Vec<Door> = Vec::with_capacity(addresses.len());
    for mut address in addresses {
        let is_new = doors
            .iter()
            .all(|door| !is_same_host(door.address, address));
        if let (0, Some(first), true) = (address.port(), doors.first(), is_new) {
            address.set_port(first.address.port());
        }
        let quic = quic.map(|quic| QuicSockets {
            config: with_reset_key(
                quic.moves.apply(quic.config.clone(), address),
                reset,
                address,
            ),
            sinks: quic.sinks.clone(),
            ..*quic
        });
        doors.push(listen::open(address, quic.as_ref(), with_tcp)?);
    }
    Ok(doors)
}

/// Sets the reset key for this address, if there is one.
fn with_reset_key(
    config: ServerConfig,
    reset: Option<&ResetSecret>,
    address: SocketAddr,
) -> ServerConfig {
    match reset.and_then(|secret| secret.key_for(address)) {
        Some(key) => config.reset_key(key),
        None => config,
    }
}

/// Returns the configuration for connections that check a challenge of ACME.
fn challenge(sources: &Sources) -> Option<Arc<rustls::ServerConfig>> {
    #[cfg(feature = "acme")]
    return sources.acme().map(|acme| acme.challenge(tls::provider()));
    #[cfg(not(feature = "acme"))]
    {
        let _ = sources;
        None
    }
}

/// Separates ACME, which drives itself, from sources that are checked periodically.
fn take_acme(sources: &mut Sources, tasks: &Arc<Tasks>, events: &Events) -> Background {
    #[cfg(feature = "acme")]
    if let Some(acme) = sources.take_acme() {
        let (task, events) = (tasks.task("ACME"), events.clone());
        let acme = Arc::new(tokio::sync::Mutex::new(acme));
        return Box::pin(async move {
            let begin = || {
                let (acme, events) = (acme.clone(), events.clone());
                async move {
                    acme.lock().await.run(events).await;
                    Ok(())
                }
            };
            keep_running(&task, &events, begin).await;
        });
    }
    let _ = (sources, tasks, events);
    Box::pin(std::future::ready(()))
}

impl Bound {
    /// Returns the first address of the server, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// Returns a handle, which does not keep the server running.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Answers requests with `service` once the result is awaited.
    pub fn service<S: HttpService<Body>>(self, service: S) -> Serving<S> {
        Serving {
            start: Start::Bound(Box::new(self)),
            service,
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("addresses", &self.handle.local_addrs())
            .finish_non_exhaustive()
    }
}

/// A server with its service, which must be awaited. Completes when it has drained; dropping it
/// aborts everything.
#[must_use = "nothing is served before this is awaited"]
pub struct Serving<S> {
    start: Start,
    service: S,
}

enum Start {
    Unbound(Box<Server>),
    Bound(Box<Bound>),
}

impl<S> Serving<S> {
    pub(super) fn unbound(server: Server, service: S) -> Self {
        Self {
            start: Start::Unbound(Box::new(server)),
            service,
        }
    }
}

impl<S> fmt::Debug for Serving<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

impl<S: HttpService<Body>> IntoFuture for Serving<S> {
    type Output = Result<Drained, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Drained, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let bound = match self.start {
                Start::Unbound(server) => bind(*server)?,
                Start::Bound(bound) => *bound,
            };
            Ok(run(bound, self.service).await)
        })
    }
}

/// Aborts everything if the server's future is dropped.
struct CutOnDrop(Conductor);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.enter(Phase::Cut);
    }
}

async fn run<S: HttpService<Body>>(bound: Bound, service: S) -> Drained {
    let _cut = CutOnDrop(bound.handle.0.site.conductor.clone());
    let running = bound.handle.0.clone();
    let (plan, watch) = bound.begin(service);
    tokio::select! {
        drained = drain::run(plan, &running) => drained,
        never = never_ending(watch) => match never {},
    }
}

impl Bound {
    /// Begins to serve clients at all addresses. Returns the settings of the end, and the background work.
    fn begin<S: HttpService<Body>>(self, service: S) -> (drain::Plan, Background) {
        let running = &self.handle.0;
        let site = &running.site;
        for (door, listener) in self.doors.into_iter().zip(&running.listeners) {
            let part = site.conductor.part();
            let port = door.address.port();
            let mut quic_task = None;
            if let Some((endpoint, socket)) = door.quic {
                let task = site.tasks.task(format!("QUIC at {}", door.address));
                quic_task = Some(task.clone());
                let door = QuicDoor {
                    listener: listener.clone(),
                    socket,
                    at: QuicAddress {
                        context: self.quic.clone(),
                        port,
                        part: part.clone(),
                    },
                };
                tokio::spawn(door.serve(endpoint, service.clone(), task));
            }
            if let Some(socket) = door.tcp {
                let task = site.tasks.task(format!("TCP at {}", door.address));
                let alt_svc = self.alt_svc.map(|alt_svc| AltSvcHeader {
                    announced: alt_svc.value(port),
                    part: part.clone(),
                    quic: quic_task,
                });
                let door = TcpDoor {
                    address: door.address,
                    at: TcpAddress {
                        context: self.tcp.clone(),
                        alt_svc,
                        part,
                    },
                };
                tokio::spawn(door.serve(socket, service.clone(), task));
            }
        }
        (self.drain, self.watch)
    }
}

/// A listener's side of QUIC.
struct QuicDoor {
    listener: Arc<Listener>,
    socket: QuicSocket,
    at: QuicAddress,
}

impl QuicDoor {
    /// Serves clients until the server drains. If the endpoint ends before, another one takes its place.
    async fn serve<S: HttpService<Body>>(self, endpoint: Endpoint, service: S, task: Arc<Task>) {
        let events = &self.at.context.site.events;
        let shards = task.beside("the shards of");
        let mut first = Some(endpoint);
        let (this, shards) = (&self, &*shards);
        let begin = move || {
            let (first, service) = (first.take(), service.clone());
            async move {
                let endpoint = match first {
                    Some(endpoint) => endpoint,
                    None => this.open_again()?,
                };
                let ended = quic::accept(&endpoint, service, this.at.clone(), shards).await;
                // The socket is free once nothing holds the endpoint.
                this.listener.set_endpoint(None);
                Err(ended.into())
            }
        };
        let draining = self.at.part.clone().will_reach(Phase::Draining);
        tokio::select! {
            biased;
            () = draining => {}
            () = keep_running(&task, events, begin) => {}
        }
        // Waiting and later clients are refused at once.
        if let Some(endpoint) = self.listener.endpoint() {
            endpoint.set_busy(true);
        }
    }

    fn open_again(&self) -> Result<Endpoint, BindError> {
        // After a panic.
        self.listener.set_endpoint(None);
        let endpoint = self.socket.open(self.listener.address)?;
        self.at.context.site.adopt(&endpoint);
        self.listener.set_endpoint(Some(endpoint.clone()));
        Ok(endpoint)
    }
}

/// A listener's side of TCP.
struct TcpDoor {
    address: SocketAddr,
    at: TcpAddress,
}

impl TcpDoor {
    /// Serves clients until the server drains. If the socket is of no use any more, another one takes its
    /// place.
    async fn serve<S: HttpService<Body>>(self, socket: TcpListener, service: S, task: Arc<Task>) {
        let Self { address, at } = self;
        let mut first = Some(socket);
        let site = at.context.site.clone();
        let draining = at.part.clone().will_reach(Phase::Draining);
        let begin = move || {
            let first = first.take();
            let (service, at) = (service.clone(), at.clone());
            async move {
                let socket = match first {
                    Some(socket) => socket,
                    None => listen(address)?,
                };
                Err(tcp::accept(socket, service, at).await.into())
            }
        };
        tokio::select! {
            biased;
            () = draining => {}
            () = keep_running(&task, &site.events, begin) => {}
        }
    }
}

async fn never_ending(future: impl Future<Output = ()>) -> std::convert::Infallible {
    future.await;
    std::future::pending().await
}
