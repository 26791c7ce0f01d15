//! An IP proxy as a service.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_base::Side;
use courser_http3_tokio::Empty;
use courser_masque::ip::{
    AddressRange, Destination, End, InvalidRange, Pool, Routes, Scope, Template, request,
};
use courser_masque::request::Refusal;
use courser_masque::{InvalidTemplate, Limits, Policy, ProxyError};
use courser_quic::runtime;
use http::request::Parts;
use http::{Request, Response};
use tower_service::Service;

use super::control::Configuration;
use super::core::{Core, Shared};
use super::device::Device;
use super::lease::Lease;
use super::network::Network;
use super::record::OnIpEnd;
use super::relay::Relay;
use super::stats::IpProxyStats;
use crate::clients::{Client, Denied, Permit};
use crate::gate::Gate;
use crate::offer::{Offer, check_request};
use crate::resolve::Resolving;

/// A proxy that forwards the IP packets of its clients (CONNECT-IP, RFC 9484), as a tower service for any router, over
/// HTTP/3, HTTP/2 and HTTP/1.1: the server of a VPN.
///
/// Each tunnel has addresses of a pool. Packets with other sources are dropped. Destinations are judged by the
/// [`Policy`], as those of a [`UdpProxy`](crate::UdpProxy) are, and clients do not reach each other unless the program
/// [says so](Self::connect_clients). What may pass goes to a [`Device`], such as a TUN device.
///
/// A proxy serves [authenticated](Self::authenticate) clients, or [all](Self::open_to_all) if the program says so;
/// without either, every request is answered with 407. Clones share their tunnels. What the versions of HTTP need is the
/// same as for a [`UdpProxy`](crate::UdpProxy).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/ip_pair.rs"));
/// use axum::Router;
/// use courser::masque::{Client, Denied, IpProxy, Policy};
///
/// # fn main() -> Result {
/// # let device = Echo::default();
/// let proxy = IpProxy::new(["10.89.0.0/16".parse()?, "fd00:89::/64".parse()?], Policy::public_only(), device)
///     .authenticate(|request| match request.headers.get("proxy-authorization") {
///         Some(value) if value == "Bearer 6b1f" => Ok(Client::new("alice")),
///         _ => Err(Denied::challenge("Bearer")),
///     });
/// let app: Router = Router::new().route_service("/.well-known/masque/ip/{target}/{ipproto}/", proxy);
/// # drop(app);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct IpProxy {
    gate: Gate,
    idle: Duration,
    templates: Arc<[Template]>,
    routes: Routes,
    network: Arc<Network>,
}

impl fmt::Debug for IpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpProxy")
            .field("gate", &self.gate)
            .field("routes", &self.routes.ranges())
            .finish_non_exhaustive()
    }
}

impl IpProxy {
    /// Creates a proxy at the well-known path (RFC 9484 §3). Its clients get addresses of `pool`, which may be a list of
    /// prefixes, and their packets go through `device`.
    ///
    /// By default a client has 16 tunnels at most, and a tunnel ends after an hour without a packet.
    pub fn new(pool: impl Into<Pool>, policy: Policy, device: impl Device + 'static) -> Self {
        let limits = Limits {
            tunnels_per_client: TUNNELS_PER_CLIENT,
            ..Limits::default()
        };
        Self::of(Gate::new(policy).limits(limits), pool, device)
    }

    /// Creates a proxy with the clients, limits and targets of a gate. A tunnel ends after an hour without a packet, whatever
    /// the gate has for other tunnels.
    pub fn of(gate: Gate, pool: impl Into<Pool>, device: impl Device + 'static) -> Self {
        let pool = pool.into();
        Self {
            idle: IDLE,
            templates: Template::path(Template::WELL_KNOWN).into_iter().collect(),
            routes: Routes::all(pool.has(true), pool.has(false)),
            network: Network::new(pool, gate.policy(), Arc::new(device)),
            gate,
        }
    }

    /// Sets the check of clients, like [`UdpProxy::authenticate`](crate::UdpProxy::authenticate).
    #[must_use]
    pub fn authenticate(
        mut self,
        check: impl Fn(&Parts) -> Result<Client, Denied> + Send + Sync + 'static,
    ) -> Self {
        self.gate = self.gate.authenticate(check);
        self
    }

    /// Serves everybody who can send a request, like [`UdpProxy::open_to_all`](crate::UdpProxy::open_to_all).
    #[must_use]
    pub fn open_to_all(mut self) -> Self {
        self.gate = self.gate.open_to_all();
        self
    }

    /// Sets what clients may use. The limits of targets that never answer are those of UDP proxies only.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.idle = limits.idle;
        self.gate = self.gate.limits(limits);
        self
    }

    /// Sets the destinations that are advertised to clients, instead of all addresses of the versions of the pool. Each
    /// client is sent those that its request asks for.
    ///
    /// # Errors
    /// Returns an error if ranges overlap, or there are more than 256.
    pub fn routes(
        mut self,
        routes: impl IntoIterator<Item = AddressRange>,
    ) -> Result<Self, InvalidRange> {
        self.routes = Routes::new(routes)?;
        Ok(self)
    }

    /// Lets clients send packets to each other, and to the router among them: to all addresses of the pool.
    #[must_use]
    pub fn connect_clients(self) -> Self {
        self.network.connects_clients.store(true, Relaxed);
        self
    }

    /// Serves a path with the variables `target` and `ipproto`, both of which are optional, instead of the well-known one.
    /// A router that removes a prefix of the path removes it here too.
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

    /// Sets the resolver of names instead of the system's, like [`UdpProxy::resolver`](crate::UdpProxy::resolver).
    #[must_use]
    pub fn resolver(
        mut self,
        resolve: impl Fn(String, u16) -> Resolving + Send + Sync + 'static,
    ) -> Self {
        self.gate = self.gate.resolver(resolve);
        self
    }

    /// Returns the counters of all clones.
    pub fn stats(&self) -> IpProxyStats {
        let counters = &self.network.counters;
        IpProxyStats {
            open: counters.open.load(Relaxed),
            opened: counters.opened.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            assigned: self.network.pool.lock().assigned() as u64,
            to_network: counters.to_network.load(Relaxed),
            from_network: counters.from_network.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
            unroutable: counters.unroutable.load(Relaxed),
        }
    }

    /// Answers a request. If it opens a tunnel, the tunnel runs in a task of its own once the response is sent.
    ///
    /// A refusal has its reason in the extensions of the response, as [`Refusal`], for logs. The response has status
    /// 400 for a malformed request, 403 for a target or a client that is not allowed, 404 for another path, 405, 426 and
    /// 501 for a request of something else, 407 without credentials, 425 for early data, 429 and 503 without room
    /// for another tunnel or without an address, and 502 and 504 for a name that is not resolved or a target without a
    /// route.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no tunnel.
    pub async fn answer<B, R: Default>(&self, request: Request<B>) -> Response<R> {
        // The body of a request over HTTP/3 is its stream, which the upgrade takes.
        let (parts, _body) = request.into_parts();
        match self.open(Request::from_parts(parts, ())).await {
            Ok(response) => response.map(|()| R::default()),
            Err(refusal) => {
                self.network.counters.refused.fetch_add(1, Relaxed);
                refusal.into_response()
            }
        }
    }

    async fn open(&self, mut request: Request<()>) -> Result<Response<()>, Refusal> {
        let on_end = request.extensions_mut().remove::<OnIpEnd>();
        let scope = check_request(&request, &self.templates, request::check::<()>)?;
        let (parts, ()) = request.into_parts();
        let client = self.gate.client_of(&parts)?;
        let owner: Arc<str> = client.as_ref().map_or("", Client::name).into();
        let permit = self.gate.admit_client(client, parts.version)?;
        let internal = |text| self.gate.refuse(ProxyError::ProxyInternalError, text);
        if !self.network.start() {
            return Err(internal("the network of the proxy has failed"));
        }
        let limits = self.gate.current_limits();
        let early = (limits.early_datagrams, limits.early_bytes);
        let offer = Offer::of(&mut Request::from_parts(parts, ()), early);
        let offer = offer.ok_or_else(|| internal("the server has no upgrades"))?;
        let routes = self.routes_of(permit.client(), &scope).await?;
        let has = |is_ipv4| {
            let mut ranges = routes.ranges().iter();
            ranges.any(|range| range.is_ipv4() == is_ipv4)
        };
        let versions = [has(true), has(false)];
        let lease = Lease::take(self.network.clone(), owner, versions).ok_or_else(|| {
            let text = "the pool has no address left";
            self.gate.refuse(ProxyError::ConnectionLimitReached, text)
        })?;
        let mut response = request::accept(offer.carrier());
        offer.prepare(&mut response);
        let task = Opened {
            offer,
            lease,
            routes,
            network: self.network.clone(),
            idle: self.idle,
            on_end,
            _open: Open::begin(&self.network),
            permit,
        };
        runtime::spawn(task.run());
        Ok(response)
    }

    /// Returns the routes for a scope, whose name is resolved.
    async fn routes_of(&self, client: Option<&Client>, scope: &Scope) -> Result<Routes, Refusal> {
        let addresses = match &scope.destination {
            Destination::Name(name) => self.gate.resolve(client, name, 0).await?,
            _ => Vec::new(),
        };
        let mut addresses: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
        if let Destination::Prefix(prefix) = &scope.destination
            && prefix.is_single()
        {
            self.check_address(prefix.first())?;
        }
        let count = addresses.len();
        addresses.retain(|address| self.check_address(*address).is_ok());
        addresses.sort_unstable();
        addresses.dedup();
        if count > 0 && addresses.is_empty() {
            let text = "the policy prohibits all addresses of the name";
            return Err(self.gate.refuse(ProxyError::DestinationIpProhibited, text));
        }
        let routes = self.routes.within(&scope.ranges(&addresses));
        match routes {
            Ok(routes) if !routes.ranges().is_empty() => Ok(routes),
            _ => {
                let text = "no route of the proxy leads to the target";
                Err(self.gate.refuse(ProxyError::DestinationIpUnroutable, text))
            }
        }
    }

    fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        let is_inside = self.network.is_inside(address);
        if is_inside && self.network.connects_clients.load(Relaxed) {
            return Ok(());
        }
        let judged = self.network.policy.judge_address(address);
        let prohibited = |text: &str| self.gate.refuse(ProxyError::DestinationIpProhibited, text);
        match judged {
            Ok(()) if !is_inside => Ok(()),
            Ok(()) => Err(prohibited("clients do not reach each other")),
            Err(error) => Err(prohibited(&error.to_string())),
        }
    }
}

impl<B: Send + 'static> Service<Request<B>> for IpProxy {
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
    lease: Arc<Lease>,
    routes: Routes,
    network: Arc<Network>,
    idle: Duration,
    on_end: Option<OnIpEnd>,
    _open: Open,
    permit: Permit,
}

/// Counts a tunnel as open until it is dropped.
struct Open(Arc<Network>);

impl Open {
    fn begin(network: &Arc<Network>) -> Self {
        network.counters.open.fetch_add(1, Relaxed);
        Self(network.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counters.open.fetch_sub(1, Relaxed);
    }
}

impl Opened {
    async fn run(self) {
        let (ipv4, ipv6) = {
            let pool = self.network.pool.lock();
            (pool.router(true), pool.router(false))
        };
        let mut end = End::new(Side::Server).ignoring_peer().routers(ipv4, ipv6);
        let entries = self.lease.entries();
        let ranges = self.routes.ranges().iter().filter(|range| {
            let is_same = |entry: &_| same_version(entry, range);
            entries.iter().any(is_same)
        });
        // A part of ordered ranges is ordered.
        let routes = Routes::of_ordered(ranges.copied().collect()).unwrap_or_default();
        let capsules = [end.assign(entries, &[]), end.advertise(routes)];
        let shared = Shared::new(end);
        let protocol = Configuration::protocol(shared.clone(), self.lease.clone(), &capsules);
        let Some(tunnel) = self.offer.start(protocol).await else {
            return;
        };
        self.permit.on_started(&tunnel);
        let core = Core { tunnel, shared };
        self.lease.attach(&core);
        self.network.counters.opened.fetch_add(1, Relaxed);
        let ends = (self.idle, self.permit);
        Relay::new(core, self.network, self.lease, ends)
            .run(self.on_end)
            .await;
    }
}

fn same_version(entry: &courser_masque::ip::AssignedAddress, range: &AddressRange) -> bool {
    entry.prefix.is_ipv4() == range.is_ipv4()
}

/// Tunnels of a client (limit K634).
const TUNNELS_PER_CLIENT: usize = 16;

/// Time without a packet (limit K634): a VPN is often idle, and connections without an end time out earlier.
const IDLE: Duration = Duration::from_secs(3600);
