//! A UDP proxy as a service.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use courser_http3_tokio::Empty;
use courser_masque::request::{self, Refusal};
use courser_masque::{Host, InvalidTemplate, Limits, Policy, Target, Template};
use courser_quic::hooks::PeerSocket;
use courser_quic::runtime;
use http::request::Parts;
use http::{Request, Response};
use tower_service::Service;

use crate::clients::{Client, Denied, Permit};
use crate::connect::connect;
use crate::front::{Authentication, Front};
use crate::offer::Offer;
use crate::protocol::Protocol;
use crate::relay::{Counters, Relay};
use crate::resolve::Resolving;
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
#[derive(Clone)]
pub struct UdpProxy {
    policy: Arc<Policy>,
    limits: Limits,
    templates: Arc<[Template]>,
    front: Front,
    counters: Arc<Counters>,
}

impl fmt::Debug for UdpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpProxy")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl UdpProxy {
    /// Creates a proxy at the well-known path (RFC 9298 §2), with the default limits.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            limits: Limits::default(),
            templates: Template::path(Template::WELL_KNOWN).into_iter().collect(),
            front: Front::default(),
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
        self.front.authentication = Authentication::By(Arc::new(check));
        self
    }

    /// Serves everybody who can send a request. With the feature `server` of courser, clients of `courser::serve` are
    /// told apart by their addresses; others share the limit of all tunnels only.
    #[must_use]
    pub fn open_to_all(mut self) -> Self {
        self.front.authentication = Authentication::None;
        self
    }

    /// Sets what clients may use.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
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
        self.front.name = name.into();
        self
    }

    /// Sets the resolver of names instead of the system's. It gets a name and a port, and returns addresses with the
    /// port; all of them are judged.
    #[must_use]
    pub fn resolver(
        mut self,
        resolve: impl Fn(String, u16) -> Resolving + Send + Sync + 'static,
    ) -> Self {
        self.front.resolver = Arc::new(resolve);
        self
    }

    /// Returns the counters of all clones.
    pub fn stats(&self) -> ProxyStats {
        let counters = &self.counters;
        ProxyStats {
            open: self.front.open_tunnels(),
            opened: counters.opened.load(Relaxed),
            refused: self.front.refused(),
            to_targets: counters.to_targets.load(Relaxed),
            from_targets: counters.from_targets.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
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
        let answer = self.open(Request::from_parts(parts, ())).await;
        self.front.respond(answer)
    }

    async fn open(&self, mut request: Request<()>) -> Result<Response<()>, Refusal> {
        let target = self.check(&request)?;
        let client = self.front.client_of(&mut request)?;
        let permit = self.front.admit(client, &self.limits)?;
        let early = (self.limits.early_datagrams, self.limits.early_bytes);
        let offer = self.front.offer(&mut request, early)?;
        let socket = self.reach(&target).await?;
        let response = request::accept(offer.carrier());
        let task = Opened {
            offer,
            socket,
            limits: self.limits,
            counters: self.counters.clone(),
            _permit: permit,
        };
        runtime::spawn(task.run());
        Ok(response)
    }

    /// Returns the target of a request that is well-formed.
    fn check(&self, request: &Request<()>) -> Result<Target, Refusal> {
        self.front
            .check(request, &self.templates, request::check::<()>)
    }

    /// Resolves the name of a target, judges its addresses, and opens a socket.
    async fn reach(&self, target: &Target) -> Result<PeerSocket, Refusal> {
        let port = target.port().get();
        let addresses = match target.host() {
            Host::Ip(ip) => vec![SocketAddr::from((*ip, port))],
            Host::Name(name) => self.front.resolve(name, port, &self.limits).await?,
        };
        connect(&self.policy, &addresses)
            .map_err(|(error, reason)| self.front.refuse(error, &reason))
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
    _permit: Permit,
}

impl Opened {
    async fn run(self) {
        let Some(tunnel) = self.offer.start(Protocol::Udp).await else {
            return;
        };
        self.counters.opened.fetch_add(1, Relaxed);
        Relay::new(tunnel, self.socket, self.limits, self.counters)
            .run()
            .await;
    }
}
