//! A UDP proxy as a service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use courser_http3_tokio::Empty;
use courser_masque::request::{self, Refusal};
use courser_masque::{InvalidTemplate, Limits, Policy, ProxyError, Target, Template};
use courser_quic::hooks::PeerSocket;
use courser_quic::runtime;
use http::request::Parts;
use http::{Request, Response};
use tower_service::Service;

use crate::clients::{Client, Denied, Permit};
use crate::connect::connect;
use crate::gate::Gate;
use crate::offer::{Offer, check_request};
use crate::protocol::Protocol;
use crate::record::OnEnd;
use crate::relay::{Counted, Counters, Relay};
use crate::resolve::Resolving;
use crate::silent::Unanswered;
use crate::stats::ProxyStats;

/// A proxy that sends UDP packets for its clients (CONNECT-UDP, RFC 9298), as a tower service for any router, over
/// HTTP/3, HTTP/2 and HTTP/1.1.
///
/// A proxy serves [authenticated](Self::authenticate) clients, or [all](Self::open_to_all) if the program says so;
/// without either, every request is answered with 407. The [`Policy`] decides on the addresses of targets.
/// Clones share their tunnels.
///
/// HTTP/3 needs [`enable`](crate::enable), HTTP/2 the extended CONNECT of its server. HTTP/1.1 needs a server that
/// supports upgrades, as hyper does with `with_upgrades`.
///
/// ```
/// # mod courser { pub use courser_http3_tokio as h3; pub use courser_masque_tokio as masque; pub use courser_quic::*;
/// #     pub use courser_server::serve; }
/// use axum::Router;
/// use courser::masque::{self, Client, Denied, Policy, Template, UdpProxy};
/// use courser::{Identity, Side, h3};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let proxy = UdpProxy::new(Policy::public_only().deny_ports([53, 123])).authenticate(|request| {
///     match request.headers.get("proxy-authorization") {
///         Some(value) if value == "Bearer 6b1f" => Ok(Client::new("alice")),
///         _ => Err(Denied::challenge("Bearer")),
///     }
/// });
/// let app: Router = Router::new().route_service("/.well-known/masque/udp/{host}/{port}/", proxy);
/// let mut settings = h3::Config::new(Side::Server);
/// masque::enable(&mut settings, Side::Server);
/// let server = courser::serve("[::]:4433", Identity::dev()?)
///     .config(settings)
///     .http2_extended_connect(true)
///     .service(app);
/// # let _ = (server, Template::WELL_KNOWN);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct UdpProxy {
    gate: Gate,
    templates: Arc<[Template]>,
    counters: Arc<Counters>,
}

impl UdpProxy {
    /// Creates a proxy at the well-known path (RFC 9298 §2), with the default limits.
    pub fn new(policy: Policy) -> Self {
        Self::of(Gate::new(policy))
    }

    /// Creates a proxy with the clients, limits and targets of a gate, at the well-known path.
    pub fn of(gate: Gate) -> Self {
        Self {
            gate,
            templates: Template::path(Template::WELL_KNOWN).into_iter().collect(),
            counters: Arc::default(),
        }
    }

    /// Sets the check of clients, which is called for each request with its fields and extensions. It must not block: a
    /// layer in front of the proxy can ask a database, and leave the client in the extensions.
    #[must_use]
    pub fn authenticate(
        mut self,
        check: impl Fn(&Parts) -> Result<Client, Denied> + Send + Sync + 'static,
    ) -> Self {
        self.gate = self.gate.authenticate(check);
        self
    }

    /// Serves everybody who can send a request. With the feature `server` of courser, clients of `courser::serve` are
    /// told apart by their addresses; others share the limit of all tunnels only.
    #[must_use]
    pub fn open_to_all(mut self) -> Self {
        self.gate = self.gate.open_to_all();
        self
    }

    /// Sets what clients may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.gate = self.gate.limits(limits);
        self
    }

    /// Serves a path with the variables `target_host` and `target_port` instead of the well-known one, such as
    /// `/udp{?target_host,target_port}`. A router that removes a prefix of the path removes it here too.
    ///
    /// # Errors
    /// Returns an error if the template of the path is invalid.
    pub fn path(mut self, template: &str) -> Result<Self, InvalidTemplate> {
        self.templates = Arc::new([Template::path(template)?]);
        Ok(self)
    }

    /// Sets the name of the proxy in the field Proxy-Status (RFC 9209). Default `courser`.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.gate = self.gate.name(name);
        self
    }

    /// Sets the resolver of names instead of the system's. It gets a name and a port, and returns addresses with the
    /// port; all of them are judged.
    #[must_use]
    pub fn resolver(
        mut self,
        resolve: impl Fn(String, u16) -> Resolving + Send + Sync + 'static,
    ) -> Self {
        self.gate = self.gate.resolver(resolve);
        self
    }

    /// Returns what decides about clients and targets, for a proxy of another protocol beside this one.
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the counters of all clones.
    pub fn stats(&self) -> ProxyStats {
        let counters = &self.counters;
        ProxyStats {
            open: counters.open.load(Relaxed),
            opened: counters.opened.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            to_targets: counters.to_targets.load(Relaxed),
            from_targets: counters.from_targets.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
            bytes_to_targets: counters.bytes_to_targets.load(Relaxed),
            bytes_from_targets: counters.bytes_from_targets.load(Relaxed),
        }
    }

    /// Answers a request. If it opens a tunnel, the tunnel runs in a task of its own once the response is sent.
    ///
    /// A refusal has its reason in the extensions of the response, as [`Refusal`], for logs. The response has status
    /// 400 for a malformed request, 403 for a target or a client that is not allowed, 404 for another path, 405, 426 and
    /// 501 for a request of something else, 407 without credentials, 425 for early data, 429 and 503 without room
    /// for another tunnel, and 502 and 504 for a name that is not resolved or an address that is not reached.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no tunnel.
    pub async fn answer<B, R: Default>(&self, request: Request<B>) -> Response<R> {
        // The body of a request over HTTP/3 is its stream, which the upgrade takes.
        let (parts, _body) = request.into_parts();
        match self.open(Request::from_parts(parts, ())).await {
            Ok(response) => response.map(|()| R::default()),
            Err(refusal) => {
                self.counters.refused.fetch_add(1, Relaxed);
                refusal.into_response()
            }
        }
    }

    async fn open(&self, mut request: Request<()>) -> Result<Response<()>, Refusal> {
        let target = self.check(&request)?;
        let (parts, ()) = request.into_parts();
        let permit = self.gate.admit(&parts)?;
        request = Request::from_parts(parts, ());
        let limits = *self.gate.current_limits();
        let offer = Offer::of(&mut request, (limits.early_datagrams, limits.early_bytes))
            .ok_or_else(|| {
                let reason = "the server has no upgrades";
                self.gate.refuse(ProxyError::ProxyInternalError, reason)
            })?;
        let mut candidates = self.gate.candidates(permit.client(), &target).await?;
        let opened = connect(candidates.by_ref());
        let (address, socket) = opened.map_err(|failure| match failure {
            Some((error, reason)) => self.gate.refuse(error, &reason),
            None => candidates.refusal(),
        })?;
        let mut response = request::accept(offer.carrier());
        offer.prepare(&mut response);
        let unanswered = self.gate.unanswered(permit.client(), address.ip());
        let task = Opened {
            offer,
            socket,
            limits,
            counters: self.counters.clone(),
            counted: Counted::begin(&self.counters),
            address,
            unanswered,
            on_end: request.extensions_mut().remove::<OnEnd>(),
            permit,
        };
        runtime::spawn(task.run());
        Ok(response)
    }

    /// Returns the target of a request that is well-formed.
    fn check(&self, request: &Request<()>) -> Result<Target, Refusal> {
        check_request(request, &self.templates, request::check::<()>)
    }
}

impl<B: Send + 'static> Service<Request<B>> for UdpProxy {
    type Response = Response<Empty>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Empty>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.answer(request).await) })
    }
}

/// A tunnel whose response is on its way.
struct Opened {
    offer: Offer,
    socket: PeerSocket,
    limits: Limits,
    counters: Arc<Counters>,
    counted: Counted,
    address: SocketAddr,
    unanswered: Unanswered,
    on_end: Option<OnEnd>,
    permit: Permit,
}

impl Opened {
    async fn run(self) {
        let Some(tunnel) = self.offer.start(Protocol::Udp).await else {
            return;
        };
        self.permit.on_started(&tunnel);
        let ends = (self.limits, self.permit);
        let relay = Relay::new(tunnel, self.socket, ends, self.unanswered, self.counters);
        relay.run(self.address, self.on_end).await;
        drop(self.counted);
    }
}
