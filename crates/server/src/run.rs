//! Running a server, from opening its sockets to its end.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use courser_base::{Mutex, is_same_host};
use courser_http3_tokio::HttpService;
#[cfg(feature = "metrics")]
use courser_observe::hooks as observe;
use courser_quic::hooks::EndpointHooks as _;
use courser_quic::{BindError, ConfigError, Endpoint, RetryPolicy, ServerConfig};
use courser_tls::rustls;
use tokio::net::TcpListener;

use crate::alt_svc::{AltSvc, AltSvcHeader};
use crate::builder::Server;
#[cfg(feature = "acme")]
use crate::certificates::acme;
use crate::certificates::reset::ResetSecret;
use crate::certificates::{self, Sources};
use crate::drain::{self, Drained};
use crate::error::Error;
use crate::events::Events;
use crate::exchange::body::Body;
use crate::handle::{Running, ServerHandle};
use crate::handover::{self, ListeningSockets};
use crate::limits;
use crate::limits::gate::Gate;
use crate::limits::refused_clients::RefusedClients;
use crate::listen::{self, Listener, OpenSockets};
use crate::phase::{Phase, Phases};
use crate::quic::socket::{QuicSocket, QuicSockets};
use crate::quic::{QuicAddress, QuicContext};
use crate::redirect::Redirects;
use crate::requests::Handlers;
use crate::site::{SHUTTING_DOWN, Site};
use crate::stats::AcmeStats;
use crate::tally::Tally;
use crate::tasks::{Task, Tasks, keep_running};
use crate::tcp::listen::listen;
use crate::tcp::{TcpAddress, TcpContext};
use crate::{quic, tcp, tls};

impl Server {
    /// Opens the sockets. Clients wait until the server has a service.
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

    /// Sets the service that responds to requests. The sockets are opened when the result is awaited.
    pub fn service<S: HttpService<Body>>(self, service: S) -> Serving<S> {
        Serving::unbound(self, service)
    }
}

/// A server whose sockets are open; see [`Server::bind`].
#[must_use = "nothing is served before this has a service and is awaited"]
pub struct Bound {
    sockets: Vec<OpenSockets>,
    handle: ServerHandle,
    quic: Arc<QuicContext>,
    tcp: Arc<TcpContext>,
    redirects: Redirects,
    alt_svc: Option<AltSvc>,
    drain: drain::Plan,
    /// Background work that ends with the server.
    watch: Background,
    end: EndOnDrop,
}

pub(super) fn bind(mut server: Server) -> Result<Bound, Error> {
    let handlers = prepare(&mut server)?;
    let addresses = server.sockets.addresses.map_err(Error::Address)?;
    let certificates = server.certificates?;
    let resolver = certificates.resolver;
    let choice_limit = server.quic.choice_limit(&server.http.limits);
    let tls = tls::Tls::new(server.tls, resolver.clone(), choice_limit)?;
    // Client certificates are known only after the handshake.
    let takes_early = server.quic.early_data.is_some() && !tls.requests_certificates();
    let may_retry = server.quic.retry_policy(&resolver) != RetryPolicy::Never;
    let memory = budget(server.quic.memory_budget);
    let quic = server.sockets.with_quic.then_some(server.quic);
    let quic = quic.map(|it| it.build(&tls, &resolver, &server.http.limits, &server.http.http3));
    let quic = quic.transpose()?;
    let tls = tls.tcp()?;
    let opened = open_all(
        addresses,
        server.sockets.redirects.map_err(Error::Address)?,
        server.sockets.inherited,
        quic.as_ref(),
        server.reset.or(certificates.reset).as_ref(),
        server.sockets.with_tcp,
    )?;
    let site = Arc::new(Site {
        limits: server.http.limits,
        tally: Arc::new(Tally::new(memory, server.http.own_listener, handlers)),
        gate: Gate::new(server.address_filter),
        refused_clients: RefusedClients::new(server.events.clone()),
        resolver,
        only_names: server.http.only_names,
        sends_interim: server.http.sends_interim,
        http2_connect: server.http.http2_connect,
        events: server.events,
        phases: Phases::new(),
        tasks: Arc::default(),
    });
    let challenge = challenge(&certificates.sources)?;
    let tcp = TcpContext::new(site.clone(), tls, challenge, memory, opened.https.len());
    let port = https_port(server.sockets.alt_svc, &opened.https);
    let redirects = Redirects::new(opened.plain, port, &certificates.sources)?;
    let acme = acme_stats(&certificates.sources);
    let (sources, watch) = watch(&site, certificates.sources);
    let running = Running {
        site: site.clone(),
        listeners: opened.https.iter().map(OpenSockets::listener).collect(),
        #[cfg(unix)]
        redirects: redirects.listeners(),
        sources,
        acme,
        #[cfg(feature = "webtransport")]
        sessions: server.http.monitor,
        #[cfg(feature = "metrics")]
        metrics: server.metrics,
    };
    let (handle, end) = begin_handles(running);
    Ok(Bound {
        sockets: opened.https,
        handle,
        quic: Arc::new(QuicContext {
            site,
            http3: server.http.http3,
            announces_names: server.http.announces_names,
            early_requests: takes_early.then_some(server.http.early_requests),
            may_retry,
        }),
        tcp: Arc::new(tcp),
        redirects,
        alt_svc: server.sockets.alt_svc.filter(|_| server.sockets.with_quic),
        drain: server.drain,
        watch,
        end,
    })
}

/// Adds the endpoints to the server. Returns a handle, and the end of the server.
fn begin_handles(running: Running) -> (ServerHandle, EndOnDrop) {
    let running = Arc::new(running);
    #[cfg(feature = "metrics")]
    if let Some(metrics) = &running.metrics {
        crate::metrics::report(metrics, &running);
    }
    let handle = ServerHandle(running.clone());
    let endpoints = handle.endpoints();
    endpoints
        .iter()
        .for_each(|it| running.site.add_endpoint(it));
    (handle, EndOnDrop(running))
}

/// Checks the settings that are independent of certificates, and applies the limits of header
/// sections to HTTP/3. Returns what the requests of all connections share.
fn prepare(server: &mut Server) -> Result<Handlers, Error> {
    server.http.http3.limits = server.http.limits.fields(server.http.http3.limits);
    if !server.sockets.with_tcp && !server.sockets.with_quic {
        return Err(Error::NothingToServe);
    }
    limits::check_all(&server.http.limits, &server.http.http3)?;
    if let (true, Ok(addresses)) = (server.sockets.with_quic, &server.sockets.addresses) {
        server.quic.path_settings.check(addresses)?;
    }
    #[cfg(feature = "webtransport")]
    enable_sessions(server)?;
    Ok(handlers(server))
}

/// Announces sessions of WebTransport, if there are any.
#[cfg(feature = "webtransport")]
fn enable_sessions(server: &mut Server) -> Result<(), Error> {
    if let Some(config) = server.http.sessions.take() {
        let side = courser_quic::Side::Server;
        let monitor = courser_webtransport_tokio::enable(&mut server.http.http3, side, config)?;
        server.http.monitor = Some(monitor);
    }
    Ok(())
}

/// Returns what the requests of all connections share. If there are metrics, they count the connections too.
fn handlers(server: &mut Server) -> Handlers {
    #[cfg(feature = "metrics")]
    if let Some(metrics) = &server.metrics {
        server.quic.count_in(metrics);
    }
    Handlers {
        #[cfg(feature = "metrics")]
        counts: server.metrics.as_ref().map(observe::http_counts),
        events: server.events.clone(),
        time_limit: server.http.limits.handler_timeout,
        extensions: std::mem::take(&mut server.http.extensions),
        ..Handlers::default()
    }
}

type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns the sources, and a future that replaces changed certificates and renews those of ACME while it is
/// polled.
fn watch(site: &Site, mut sources: Sources) -> (Arc<Mutex<Sources>>, Background) {
    let events = site.events.clone();
    let acme = take_acme(&mut sources, &site.tasks, &events);
    let sources = Arc::new(Mutex::new(sources));
    let (watched, resolver) = (sources.clone(), site.resolver.clone());
    let task = site.tasks.task("the certificate watcher");
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

/// The open sockets of a server.
struct AllSockets {
    https: Vec<OpenSockets>,
    plain: Vec<OpenSockets>,
}

/// Opens the sockets of all addresses. For port 0, addresses with different IPs share one port.
fn open_all(
    addresses: Vec<SocketAddr>,
    plain: Vec<SocketAddr>,
    mut inherited: Vec<ListeningSockets>,
    quic: Option<&QuicSockets>,
    reset: Option<&ResetSecret>,
    with_tcp: bool,
) -> Result<AllSockets, Error> {
    let mut https: Vec<OpenSockets> = Vec::with_capacity(addresses.len());
    for mut address in addresses {
        let is_new = https
            .iter()
            .all(|sockets| !is_same_host(sockets.address, address));
        if let (0, Some(first), true) = (address.port(), https.first(), is_new) {
            address.set_port(first.address.port());
        }
        let quic = quic.map(|quic| QuicSockets {
            config: with_reset_key(
                quic.path_settings.apply(quic.config.clone(), address),
                reset,
                address,
            ),
            sinks: quic.sinks.clone(),
            ..*quic
        });
        let inherited = handover::take(&mut inherited, address);
        https.push(listen::open(address, quic.as_ref(), with_tcp, inherited)?);
    }
    let plain = plain.into_iter().map(|address| {
        let inherited = handover::take(&mut inherited, address);
        listen::open(address, None, true, inherited)
    });
    let plain = plain.collect::<Result<_, _>>()?;
    handover::check_empty(&inherited)?;
    Ok(AllSockets { https, plain })
}

/// Returns the port at which clients reach the server.
fn https_port(alt_svc: Option<AltSvc>, sockets: &[OpenSockets]) -> u16 {
    let first = sockets.first().map_or(443, |it| it.address.port());
    alt_svc.and_then(|it| it.port).unwrap_or(first)
}

/// Sets the stateless reset key for this address, if there is a secret.
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

/// Returns the configuration for connections that check an ACME challenge.
fn challenge(sources: &Sources) -> Result<Option<Arc<rustls::ServerConfig>>, ConfigError> {
    #[cfg(feature = "acme")]
    if let Some(acme) = sources.acme().filter(|acme| acme.needs_tls()) {
        let config = acme.answers().tls_config(courser_tls::crypto_provider());
        let config = config.map_err(|error| ConfigError::Tls(error.to_string()))?;
        return Ok(Some(config));
    }
    let _ = sources;
    Ok(None)
}

/// Returns the counters of the ACME client, if there is one.
fn acme_stats(sources: &Sources) -> Option<Arc<Mutex<AcmeStats>>> {
    #[cfg(feature = "acme")]
    return sources.acme().map(acme::Agent::stats);
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
    /// Returns the first address of the server, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// Returns the addresses of plain HTTP, with the actual ports; see
    /// [`Server::redirect_http`](Server::redirect_http).
    pub fn redirect_addrs(&self) -> Vec<SocketAddr> {
        self.redirects.addresses()
    }

    /// Returns a handle, which does not keep the server running.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Sets the service that responds to requests once the result is awaited.
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

/// A server with its service. Await it to run the server until it has drained; dropping it aborts all
/// connections.
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

/// Aborts all connections and closes the sockets if the server, or the future that runs it, is dropped.
struct EndOnDrop(Arc<Running>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.site.phases.enter(Phase::Cut);
        drop(self.0.end());
    }
}

async fn run<S: HttpService<Body>>(bound: Bound, service: S) -> Drained {
    let running = bound.handle.0.clone();
    let (plan, watch, _end) = bound.begin(service);
    tokio::select! {
        drained = drain::run(plan, &running) => drained,
        never = never_ending(watch) => match never {},
    }
}

impl Bound {
    /// Starts to serve clients at all addresses. Returns the settings of the drain, the background work, and the end of
    /// the server.
    fn begin<S: HttpService<Body>>(self, service: S) -> (drain::Plan, Background, EndOnDrop) {
        let running = &self.handle.0;
        let site = &running.site;
        for (sockets, listener) in self.sockets.into_iter().zip(&running.listeners) {
            let part = site.phases.part();
            let port = sockets.address.port();
            let mut quic_task = None;
            if let Some((endpoint, socket)) = sockets.quic {
                let task = site.tasks.task(format!("QUIC at {}", sockets.address));
                quic_task = Some(task.clone());
                let sockets = QuicAcceptor {
                    listener: listener.clone(),
                    socket,
                    at: QuicAddress {
                        context: self.quic.clone(),
                        port,
                        // Both fields of an announcement name the port that clients can reach.
                        announced_port: self.alt_svc.and_then(|it| it.port).unwrap_or(port),
                        part: part.clone(),
                    },
                };
                tokio::spawn(sockets.serve(endpoint, service.clone(), task));
            }
            if let Some(socket) = sockets.tcp {
                let task = site.tasks.task(format!("TCP at {}", sockets.address));
                let alt_svc = self
                    .alt_svc
                    .map(|alt_svc| AltSvcHeader::new(alt_svc, port, part.clone(), quic_task));
                let sockets = TcpAcceptor {
                    address: sockets.address,
                    at: TcpAddress {
                        context: self.tcp.clone(),
                        alt_svc,
                        part,
                    },
                };
                tokio::spawn(sockets.serve(socket, service.clone(), task));
            }
        }
        self.redirects.begin(site);
        (self.drain, self.watch, self.end)
    }
}

/// Serves an address over QUIC.
struct QuicAcceptor {
    listener: Arc<Listener>,
    socket: QuicSocket,
    at: QuicAddress,
}

impl QuicAcceptor {
    /// Serves clients until the server drains. If the endpoint ends before, opens another one.
    async fn serve<S: HttpService<Body>>(self, endpoint: Endpoint, service: S, task: Arc<Task>) {
        let events = &self.at.context.site.events;
        let shards = task.subtask("the shards of");
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
                // The socket is closed once all handles of the endpoint are dropped.
                this.listener.set_endpoint(None);
                Err(ended.into())
            }
        };
        let retired = self.at.part.clone().will_reach(Phase::Retired);
        tokio::select! {
            biased;
            () = retired => {}
            () = keep_running(&task, events, begin) => {}
        }
        // Clients that wait or arrive later are refused at once.
        if let Some(endpoint) = self.listener.endpoint() {
            endpoint.set_refusal(Some(SHUTTING_DOWN));
        }
    }

    fn open_again(&self) -> Result<Endpoint, BindError> {
        // The endpoint is still set after a panic.
        self.listener.set_endpoint(None);
        let endpoint = self.socket.open(self.listener.address)?;
        self.at.context.site.add_endpoint(&endpoint);
        self.listener.set_endpoint(Some(endpoint.clone()));
        Ok(endpoint)
    }
}

/// Serves an address over TCP.
struct TcpAcceptor {
    address: SocketAddr,
    at: TcpAddress,
}

impl TcpAcceptor {
    /// Serves clients until the server drains. If the socket fails permanently, opens another one.
    async fn serve<S: HttpService<Body>>(
        self,
        socket: Arc<TcpListener>,
        service: S,
        task: Arc<Task>,
    ) {
        let Self { address, at } = self;
        let mut first = Some(socket);
        let site = at.context.site.clone();
        let retired = at.part.clone().will_reach(Phase::Retired);
        let begin = move || {
            let first = first.take();
            let (service, at) = (service.clone(), at.clone());
            async move {
                let socket = match first {
                    Some(socket) => socket,
                    None => Arc::new(listen(address)?),
                };
                Err(tcp::accept(socket, service, at).await.into())
            }
        };
        tokio::select! {
            biased;
            () = retired => {}
            () = keep_running(&task, &site.events, begin) => {}
        }
    }
}

async fn never_ending(future: impl Future<Output = ()>) -> std::convert::Infallible {
    future.await;
    std::future::pending().await
}
