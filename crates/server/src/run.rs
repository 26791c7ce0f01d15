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
use crate::certificates::{self, Resolver, Sources};
use crate::drain::{self, Drained};
use crate::error::Error;
use crate::events::Events;
use crate::exchange::body::Body;
use crate::exchange::early_data::TooEarly;
use crate::handle::{ServerHandle, Shared};
use crate::limits::gate::Gate;
use crate::limits::refused_clients::RefusedClients;
use crate::limits::uploads::UploadMemory;
use crate::limits::{self, Limits};
use crate::listen::{self, Door, Listener, Quic, QuicSocket};
use crate::phase::{Conductor, Part, Phase};
use crate::quic::QuicContext;
use crate::quic::settings::QuicSettings;
use crate::tally::Tally;
use crate::tasks::{Task, Tasks, keep_running};
use crate::tcp::TcpContext;
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
    server: Parts,
    doors: Vec<Door>,
    handle: ServerHandle,
}

/// The rest of a [`Server`] after its sockets were opened.
struct Parts {
    http3: courser_http3_tokio::Config,
    announces_names: bool,
    only_names: bool,
    /// The policy for requests in early data, if it is accepted.
    early_requests: Option<TooEarly>,
    tcp: Arc<rustls::ServerConfig>,
    challenge: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    refused_clients: Arc<RefusedClients>,
    uploads: Arc<UploadMemory>,
    alt_svc: Option<AltSvc>,
    sends_interim: bool,
    /// True if QUIC clients may be asked to validate their address.
    may_retry: bool,
    drain: drain::Plan,
    /// Background work that ends with the server.
    watch: Pin<Box<dyn Future<Output = ()> + Send>>,
}

pub(super) fn bind(server: Server) -> Result<Bound, Error> {
    if !server.with_tcp && !server.with_quic {
        return Err(Error::NothingToServe);
    }
    limits::check_all(&server.limits, &server.http3)?;
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
    let early_requests = takes_early.then_some(server.early_requests);
    let refused_clients = Arc::new(RefusedClients::new(server.events.clone()));
    let may_retry = server.quic.retry_policy(&resolver) != RetryPolicy::Never;
    let memory = budget(server.quic.memory_budget);
    let build = |it: QuicSettings| it.build(&tls, &resolver, &server.limits, &server.http3);
    let quic = server.with_quic.then_some(server.quic);
    let quic = quic.map(build).transpose()?;
    let tcp = tls.tcp()?;
    let doors = open_doors(addresses, quic.as_ref(), reset.as_ref(), server.with_tcp)?;
    let (sources, events) = (certificates.sources, server.events);
    let challenge = challenge(&sources);
    let tasks = Arc::new(Tasks::default());
    let (sources, watch) = watch(&tasks, sources, &resolver, &events);
    let handle = ServerHandle(Arc::new(Shared {
        tasks,
        conductor: Conductor::new(),
        tally: Arc::new(Tally::with_memory(memory)),
        listeners: doors.iter().map(Door::listener).collect(),
        sources,
        resolver,
        events,
        gate: Gate::new(server.address_filter.clone()),
        limits: server.limits.clone(),
    }));
    for endpoint in handle.endpoints() {
        handle.0.adopt(&endpoint);
    }
    Ok(Bound {
        server: Parts {
            http3: server.http3,
            announces_names: server.announces_names,
            only_names: server.only_names,
            early_requests,
            tcp,
            challenge,
            limits: server.limits,
            refused_clients,
            uploads: Arc::new(UploadMemory::of_budget(memory)),
            alt_svc: server.alt_svc.filter(|_| server.with_quic),
            sends_interim: server.sends_interim,
            may_retry,
            drain: drain::Plan {
                signal: server.drain,
                ready_delay: server.ready_delay,
                deadline: server.deadline,
            },
            watch,
        },
        doors,
        handle,
    })
}

type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Replaces certificates that have changed and renews those of ACME, while it is polled. Returns the sources
/// too.
fn watch(
    tasks: &Arc<Tasks>,
    mut sources: Sources,
    resolver: &Arc<Resolver>,
    events: &Events,
) -> (Arc<Mutex<Sources>>, Background) {
    let acme = take_acme(&mut sources, tasks, events);
    let sources = Arc::new(Mutex::new(sources));
    let (watched, resolver, events) = (sources.clone(), resolver.clone(), events.clone());
    let task = tasks.task("the watch over certificates");
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
    quic: Option<&Quic>,
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
        let quic = quic.map(|quic| Quic {
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
    let Bound {
        server,
        doors,
        handle,
    } = bound;
    let shared = &handle.0;
    let _cut = CutOnDrop(shared.conductor.clone());
    begin(&server, doors, shared, &service);
    drop(service);
    tokio::select! {
        drained = drain::run(server.drain, shared) => drained,
        never = never_ending(server.watch) => match never {},
    }
}

/// Begins to serve clients at all addresses.
fn begin<S: HttpService<Body>>(
    server: &Parts,
    doors: Vec<Door>,
    shared: &Arc<Shared>,
    service: &S,
) {
    let choice = shared.resolver.choice().cloned();
    let common = Common {
        shared,
        server,
        only: server.only_names.then(|| shared.resolver.clone()),
        chooser: choice.map(Chooser::new).map(Arc::new),
    };
    for (door, listener) in doors.into_iter().zip(&shared.listeners) {
        let part = shared.conductor.part();
        let mut quic_task = None;
        if let Some((endpoint, socket)) = door.quic {
            let task = shared.tasks.task(format!("QUIC at {}", door.address));
            quic_task = Some(task.clone());
            let place = QuicPlace {
                shared: shared.clone(),
                listener: listener.clone(),
                socket,
                context: common.quic(door.address.port()),
                part: part.clone(),
            };
            tokio::spawn(place.serve(endpoint, service.clone(), task));
        }
        if let Some(socket) = door.tcp {
            let context = common.tcp(door.address.port(), &part, quic_task);
            let task = shared.tasks.task(format!("TCP at {}", door.address));
            let place = (door.address, socket);
            tokio::spawn(serve_tcp(place, service.clone(), context, part, task));
        }
    }
}

/// The parts that all addresses of a server share.
struct Common<'a> {
    shared: &'a Arc<Shared>,
    server: &'a Parts,
    /// The certificates whose names alone are served, if they are.
    only: Option<Arc<Resolver>>,
    /// Chooses the certificates, if an async function does.
    chooser: Option<Arc<Chooser>>,
}

impl Common<'_> {
    fn quic(&self, port: u16) -> Arc<QuicContext> {
        let Self { shared, server, .. } = self;
        Arc::new(QuicContext {
            http3: server.http3.clone(),
            named: server.announces_names.then(|| shared.resolver.clone()),
            only: self.only.clone(),
            early_requests: server.early_requests.clone(),
            sends_interim: server.sends_interim,
            may_retry: server.may_retry,
            limits: server.limits.clone(),
            tally: shared.tally.clone(),
            gate: shared.gate.clone(),
            refused_clients: server.refused_clients.clone(),
            events: shared.events.clone(),
            port,
        })
    }

    fn tcp(&self, port: u16, part: &Part, quic: Option<Arc<Task>>) -> Arc<TcpContext> {
        let Self { shared, server, .. } = self;
        Arc::new(TcpContext {
            tls: server.tcp.clone(),
            challenge: server.challenge.clone(),
            chooser: self.chooser.clone(),
            only: self.only.clone(),
            limits: server.limits.clone(),
            uploads: server.uploads.clone(),
            tally: shared.tally.clone(),
            gate: shared.gate.clone(),
            alt_svc: server.alt_svc.map(|alt_svc| AltSvcHeader {
                announced: alt_svc.value(port),
                part: part.clone(),
                quic,
            }),
            sends_interim: server.sends_interim,
            events: shared.events.clone(),
            refused_clients: server.refused_clients.clone(),
        })
    }
}

/// An address where QUIC is served.
struct QuicPlace {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    socket: QuicSocket,
    context: Arc<QuicContext>,
    part: Part,
}

impl QuicPlace {
    /// Serves clients until the server drains. If the endpoint ends before, another one takes its place.
    async fn serve<S: HttpService<Body>>(self, endpoint: Endpoint, service: S, task: Arc<Task>) {
        let events = &self.shared.events;
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
                let (context, part) = (this.context.clone(), this.part.clone());
                let ended = quic::accept(&endpoint, service, context, part, (shards, events)).await;
                // The socket is free once nothing holds the endpoint.
                this.listener.set_endpoint(None);
                Err(ended.into())
            }
        };
        let draining = self.part.clone().will_reach(Phase::Draining);
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
        self.shared.adopt(&endpoint);
        self.listener.set_endpoint(Some(endpoint.clone()));
        Ok(endpoint)
    }
}

/// Serves clients over TCP until the server drains. If the socket is of no use any more, another one takes
/// its place.
async fn serve_tcp<S: HttpService<Body>>(
    (address, socket): (SocketAddr, TcpListener),
    service: S,
    context: Arc<TcpContext>,
    part: Part,
    task: Arc<Task>,
) {
    let mut first = Some(socket);
    let events = context.events.clone();
    let draining = part.clone().will_reach(Phase::Draining);
    let begin = move || {
        let first = first.take();
        let (service, context, part) = (service.clone(), context.clone(), part.clone());
        async move {
            let socket = match first {
                Some(socket) => socket,
                None => listen::listen(address)?,
            };
            Err(tcp::accept(socket, service, context, part).await.into())
        }
    };
    tokio::select! {
        biased;
        () = draining => {}
        () = keep_running(&task, &events, begin) => {}
    }
}

async fn never_ending(future: impl Future<Output = ()>) -> std::convert::Infallible {
    future.await;
    std::future::pending().await
}
