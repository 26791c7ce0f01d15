//! A forward proxy: CONNECT, CONNECT-UDP, CONNECT-IP and requests for `http` URLs, with one policy for all of them.

mod attempts;
mod credentials;
mod dial;
mod packets;
mod plain;
mod plain_client;
mod record;
mod refusals;
mod relay;
mod rules;
mod stream;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::h3::{EarlyData, Interim};
use courser::masque::{
    Client, Denied, Device, Gate, IpProxy, IpTemplate, Permit, Policy, Prefix, ProxyError, Refusal,
    Target, Template, UdpProxy,
};
use courser::server::{AbsoluteTarget, Peer};
use http::header::{CONTENT_LENGTH, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Scheme;
use http::{Method, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::Service;

use self::attempts::Attempts;
use self::credentials::Unknown;
use self::dial::dial;
use self::packets::Proxies;
use self::plain::Times;
use self::record::{Begin, Counters, Kind, Log, Record};
use self::refusals::{USER_IN_TARGET, blocked, challenge, off, refused};
use self::relay::{End, Relay};
use self::stream::{ClientStream, Offer};
use crate::access_log::{AccessLog, LogFormat};
use crate::body::{Body, BoxError, boxed, explained, typed};
use crate::proxy::hops;

pub(crate) use self::dial::prepare_stream;

pub use self::credentials::{Credentials, new_token};
pub use self::plain_client::PlainClient;
pub use self::record::{ForwardStats, PassedStats};
pub use self::rules::Rule;
pub use courser::masque::Limits;

/// The settings of a [`Forward`] proxy.
#[derive(Clone, Debug)]
pub struct ForwardSettings {
    /// The targets that clients may reach.
    pub policy: Policy,
    /// The clients, or `None` to serve everybody who can connect.
    pub credentials: Option<Credentials>,
    /// True to serve CONNECT, and requests for `http` URLs.
    pub serves_tcp: bool,
    /// True to serve CONNECT-UDP.
    pub serves_udp: bool,
    /// What clients may use. Tunnels over TCP and UDP are counted together.
    pub limits: Limits,
    /// Time limit for a connection over TCP.
    pub connect: Duration,
    /// Time after which a tunnel over TCP without a byte in either direction ends.
    pub tcp_idle: Duration,
}

impl ForwardSettings {
    /// Default of [`tcp_idle`](Self::tcp_idle) (limit K646).
    pub const TCP_IDLE: Duration = TCP_IDLE;
    /// Default of [`connect`](Self::connect) (limit K646).
    pub const CONNECT: Duration = CONNECT;
}

/// A forward proxy as a service. Clones share their tunnels.
///
/// - CONNECT opens a tunnel over TCP (RFC 9110 §9.3.6), over all versions of HTTP. An end of one direction is passed on,
///   and the other goes on.
/// - CONNECT-UDP (RFC 9298) opens a tunnel for UDP packets at the well-known path.
/// - CONNECT-IP (RFC 9484) opens a tunnel for IP packets at the well-known path, if the proxy
///   [has a network](Forward::with_network).
/// - Requests for `http` URLs in absolute form are sent to their server on connections of their own.
///
/// The policy decides on the addresses of targets, after names are resolved, and connections are made to these addresses
/// only. Other requests get a page that describes the proxy.
#[derive(Clone, Debug)]
pub struct Forward {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    udp: UdpProxy,
    ip: Option<IpProxy>,
    settings: ForwardSettings,
    attempts: Attempts,
    log: Option<Log>,
    counters: Arc<Counters>,
    /// True once tunnels have to end.
    cut: watch::Sender<bool>,
}

impl Forward {
    /// Creates a proxy with a line in `log` for each request. Lines of [`LogFormat::Json`] are objects, and those of other
    /// formats text: time, client, user, request line, status, then `name=value`.
    pub fn new(settings: ForwardSettings, log: Option<(AccessLog, LogFormat)>) -> Self {
        let gate = gate(&settings);
        Self::of(gate, None, settings, log)
    }

    /// Creates a proxy like [`new`](Self::new), which also serves CONNECT-IP: its clients get addresses of `pool`, and their
    /// packets go through `device`. The policy judges the destination of each packet, that of ICMP with port 0.
    pub fn with_network(
        settings: ForwardSettings,
        (pool, device): (Vec<Prefix>, impl Device + 'static),
        log: Option<(AccessLog, LogFormat)>,
    ) -> Self {
        let gate = gate(&settings);
        let ip = IpProxy::of(gate.clone(), pool, device);
        Self::of(gate, Some(ip), settings, log)
    }

    fn of(
        gate: Gate,
        ip: Option<IpProxy>,
        settings: ForwardSettings,
        log: Option<(AccessLog, LogFormat)>,
    ) -> Self {
        let shared = Shared {
            udp: UdpProxy::of(gate),
            ip,
            settings,
            attempts: Attempts::default(),
            log: log.map(|(log, format)| Log { log, format }),
            counters: Arc::default(),
            cut: watch::channel(false).0,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the counts since the start.
    pub fn stats(&self) -> ForwardStats {
        self.shared.counters.stats()
    }

    /// Returns the number of open tunnels and requests.
    pub fn open(&self) -> usize {
        self.shared.udp.gate().open()
    }

    /// Returns the time without a byte after which an exchange over TCP ends.
    pub(crate) fn longest_idle(&self) -> Duration {
        self.shared.settings.tcp_idle
    }

    /// Ends the tunnels for packets whose clients have sent none for five seconds (limit K567), now and later: one that has
    /// vanished would keep the end of the proxy waiting until [`Limits::idle`].
    pub fn drain(&self) {
        self.shared.udp.gate().drain(DRAINING_IDLE);
    }

    /// Ends the tunnels that are open, and records them.
    pub fn cut(&self) {
        self.shared.cut.send_replace(true);
        self.shared.udp.gate().close();
    }

    /// Answers a request.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no tunnel.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Some(kind) = self.kind(&request) else {
            return self.own(&request);
        };
        let mut record = self.begin(kind, &request);
        let (mut parts, body) = request.into_parts();
        let client = match self.authenticate(&parts).await {
            Ok(client) => client,
            Err(refusal) => return refused(refusal, &mut record),
        };
        if self.shared.settings.credentials.is_some() {
            record.on_client(client.name().into());
        }
        parts.extensions.insert(client);
        let request = Request::from_parts(parts, body);
        match kind {
            Kind::Tcp => self.tcp(request, record).await,
            Kind::Udp | Kind::Ip => self.packets().answer(kind, request, record).await,
            Kind::Http => self.http(request, record).await,
        }
    }

    /// Returns the protocol of a request, or `None` for one to the proxy itself.
    fn kind<B>(&self, request: &Request<B>) -> Option<Kind> {
        let uri = request.uri();
        if request.method() == Method::CONNECT && uri.scheme().is_none() {
            return Some(Kind::Tcp);
        }
        if request.extensions().get::<AbsoluteTarget>().is_some() {
            let path = uri.path();
            // A template in absolute form, as some clients of HTTP/1.1 send it.
            let is_connect = request.method() == Method::CONNECT;
            let packets = packets::kind(path).filter(|_| is_connect || is_upgrade(request));
            return match packets {
                Some(packets) => Some(packets),
                // An extended CONNECT with another protocol, which the next server would take for a tunnel.
                None if is_connect => None,
                None => Some(Kind::Http),
            };
        }
        packets::kind(uri.path())
    }

    fn begin<B>(&self, kind: Kind, request: &Request<B>) -> Record {
        let uri = request.uri();
        let path = uri.path_and_query().map_or("", |it| it.as_str());
        let authority = uri.authority().map(|it| without_user(it.as_str()));
        let (method, target) = match kind {
            Kind::Tcp => ("CONNECT", authority.unwrap_or_default().to_owned()),
            Kind::Udp => ("CONNECT-UDP", packets::udp_target(path)),
            Kind::Ip => ("CONNECT-IP", packets::ip_target(path)),
            Kind::Http => {
                let host = request.headers().get(http::header::HOST);
                let host = host.and_then(|it| it.to_str().ok()).map(without_user);
                let authority = authority.or(host).unwrap_or_default();
                (
                    request.method().as_str(),
                    format!("http://{authority}{path}"),
                )
            }
        };
        let begin = Begin {
            kind,
            client: client_address(request.extensions()),
            method: method.into(),
            target: target.into(),
            version: request.version(),
        };
        let Shared { log, counters, .. } = &*self.shared;
        Record::begin(log.clone(), counters.clone(), begin)
    }

    /// Returns the client of a request: the name in its credentials, or its address if nobody needs any.
    async fn authenticate(&self, parts: &Parts) -> Result<Client, Refusal> {
        if parts.extensions.get::<EarlyData>().is_some() {
            // An attacker may replay it (RFC 8470 §5.2).
            let reason = "a request to a proxy in early data";
            return Err(Refusal::new(StatusCode::TOO_EARLY, reason));
        }
        let address = client_address(&parts.extensions).map(|it| it.ip());
        let Some(credentials) = &self.shared.settings.credentials else {
            let unnamed = || Client::new("unknown");
            return Ok(address.map_or_else(unnamed, Client::at));
        };
        let attempts = &self.shared.attempts;
        let wait = || attempts.wait(address?, Instant::now());
        let field = parts.headers.get(PROXY_AUTHORIZATION);
        let unknown = match credentials.client(field, || wait().is_some()).await {
            Ok(name) => return Ok(Client::new(&name)),
            Err(unknown) => unknown,
        };
        let reason = match unknown {
            Unknown::Missing => "the request has no credentials",
            Unknown::Wrong => "the credentials are wrong",
            Unknown::Blocked => return Err(blocked(wait().unwrap_or_default())),
        };
        if unknown == Unknown::Wrong
            && let Some(address) = address
        {
            attempts.on_wrong(address, Instant::now());
        }
        Err(challenge(reason))
    }

    async fn tcp<B>(&self, request: Request<B>, mut record: Record) -> Response<Body> {
        let opened = match self.shared.settings.serves_tcp {
            true => self.open_tcp(request).await,
            false => Err(off("CONNECT")),
        };
        let tunnel = match opened {
            Ok(opened) => opened,
            Err(refusal) => return refused(refusal, &mut record),
        };
        record.on_opened(StatusCode::OK, Some(tunnel.address));
        let cut = self.shared.cut.subscribe();
        let mut response = Response::new(Body::empty());
        tunnel.offer.prepare(&mut response);
        tokio::spawn(tunnel.run(record, self.shared.settings.tcp_idle, cut));
        response
    }

    async fn open_tcp<B>(&self, mut request: Request<B>) -> Result<TcpTunnel, Refusal> {
        let gate = self.shared.udp.gate();
        let target = connect_target(&request)?;
        let offer = Offer::of(&mut request);
        let (parts, _) = request.into_parts();
        let permit = gate.admit(&parts)?;
        let offer = offer.ok_or_else(|| {
            let reason = "the server has no upgrades";
            gate.refuse(ProxyError::ProxyInternalError, reason)
        })?;
        let mut candidates = gate.candidates(permit.client(), &target).await?;
        let another = || gate.another(&permit);
        let dialled = dial(candidates.by_ref(), self.shared.settings.connect, another).await;
        let (stream, address) = dialled.map_err(|failure| match failure {
            Some((error, reason)) => gate.refuse(error, &reason),
            None => candidates.refusal(),
        })?;
        Ok(TcpTunnel {
            offer,
            stream,
            address,
            _permit: permit,
        })
    }

    fn packets(&self) -> Proxies<'_> {
        let Shared {
            udp, ip, settings, ..
        } = &*self.shared;
        Proxies {
            udp: settings.serves_udp.then_some(udp),
            ip: ip.as_ref(),
        }
    }

    async fn http<B>(&self, request: Request<B>, mut record: Record) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let interim = parts.extensions.remove::<Interim>();
        let permit = match self.admit_http(&parts) {
            Ok(permit) => permit,
            Err(refusal) => return refused(refusal, &mut record),
        };
        if let Some(response) = hops::answer(&parts) {
            record.on_opened(response.status(), None);
            record.on_end("finished");
            return response;
        }
        let mut request = Request::from_parts(parts, boxed(body));
        request.extensions_mut().clear();
        let settings = &self.shared.settings;
        let times = Times {
            connect: settings.connect,
            idle: settings.tcp_idle,
        };
        let gate = self.shared.udp.gate();
        let exchange = plain::Exchange {
            gate,
            times,
            interim,
        };
        match plain::forward(request, exchange, record, permit).await {
            Ok(response) => response,
            Err((refusal, mut record)) => refused(refusal, &mut record),
        }
    }

    fn admit_http(&self, parts: &Parts) -> Result<Permit, Refusal> {
        if !self.shared.settings.serves_tcp {
            return Err(off("requests for http URLs"));
        }
        let scheme = parts.extensions.get().map(AbsoluteTarget::scheme);
        if scheme != Some(&Scheme::HTTP) {
            let reason = "the URL is not http: a client has to use CONNECT for https";
            return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
        }
        let gate = self.shared.udp.gate();
        if hops::has_passed(&parts.headers) {
            let reason = "the request has passed this proxy before";
            return Err(gate.refuse(ProxyError::ProxyLoopDetected, reason));
        }
        gate.admit(parts)
    }

    /// Answers a request to the proxy itself.
    fn own<B>(&self, request: &Request<B>) -> Response<Body> {
        if *request.method() == Method::CONNECT {
            return explained(StatusCode::NOT_IMPLEMENTED, "unknown protocol of CONNECT");
        }
        if request.uri().path() != "/" {
            return explained(StatusCode::NOT_FOUND, "this is a proxy");
        }
        let settings = &self.shared.settings;
        let mut text = String::from("This is a proxy.\n\n");
        if settings.serves_tcp {
            text.push_str("TCP: CONNECT, and http URLs, over HTTP/1.1, HTTP/2 and HTTP/3\n");
        }
        if settings.serves_udp {
            text.push_str("UDP: ");
            text.push_str(Template::WELL_KNOWN);
            text.push('\n');
        }
        if self.shared.ip.is_some() {
            text.push_str("IP: ");
            text.push_str(IpTemplate::WELL_KNOWN);
            text.push('\n');
        }
        if settings.credentials.is_some() {
            text.push_str("Clients need credentials (Basic or Bearer).\n");
        }
        typed(StatusCode::OK, "text/plain; charset=utf-8", text)
    }
}

impl<B> Service<Request<B>> for Forward
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.answer(request).await) })
    }
}

/// A tunnel over TCP whose response is on its way.
struct TcpTunnel {
    offer: Offer,
    stream: TcpStream,
    address: SocketAddr,
    _permit: Permit,
}

impl TcpTunnel {
    async fn run(self, mut record: Record, idle: Duration, mut cut: watch::Receiver<bool>) {
        let Some(client) = self.offer.stream().await else {
            record.on_end(End::Client.name());
            return;
        };
        let mut relay = Relay::new(client, self.stream, idle);
        let running = relay.run(|to_target, from_target| record.on_bytes(to_target, from_target));
        let end = tokio::select! {
            end = running => end,
            // An error means that the proxy is gone.
            _ = cut.wait_for(|it| *it) => End::Cut,
        };
        record.on_end(end.name());
        let (client, target) = relay.into_sides();
        finish(end, client, &target);
    }
}

/// Ends both sides as the end of the tunnel asks for: an abrupt end of one is an abrupt end of the other.
fn finish(end: End, client: ClientStream, target: &TcpStream) {
    match end {
        End::Finished => return,
        End::Target | End::Idle | End::Cut => {}
        // The target receives a reset. If this fails, it receives an end.
        End::Client => drop(target.set_zero_linger()),
    }
    // Also if the client has reset its own direction alone.
    client.reset();
}

/// Returns the target of a CONNECT.
fn connect_target<B>(request: &Request<B>) -> Result<Target, Refusal> {
    let malformed = |reason: &str| Refusal::new(StatusCode::BAD_REQUEST, reason);
    let authority = request.uri().authority().map_or("", |it| it.as_str());
    if authority.contains('@') {
        return Err(malformed(USER_IN_TARGET));
    }
    // Servers do not agree whether it is content or the beginning of what is in the tunnel (RFC 9110 §9.3.6).
    let headers = request.headers();
    let length = headers.get(CONTENT_LENGTH);
    if headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|it| it != "0") {
        return Err(malformed("a CONNECT has no content"));
    }
    authority
        .parse()
        .map_err(|error| malformed(&format!("the target is invalid: {error}")))
}

/// Returns an authority without a user and a password, for logs.
fn without_user(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or_default()
}

/// Returns the address of a client.
fn client_address(extensions: &http::Extensions) -> Option<SocketAddr> {
    let over_tls = extensions.get().map(Peer::current_address);
    over_tls.or_else(|| extensions.get().map(PlainClient::address))
}

/// Returns the decisions of a proxy: its service has found out who the client is.
fn gate(settings: &ForwardSettings) -> Gate {
    Gate::new(settings.policy.clone())
        .limits(settings.limits)
        .authenticate(|parts| {
            let client = parts.extensions.get::<Client>().cloned();
            client.ok_or_else(Denied::forbidden)
        })
}

/// Returns true for a request of HTTP/1.1 that asks for an upgrade.
fn is_upgrade<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(http::header::UPGRADE)
}

/// Time without a byte in either direction of a CONNECT, or of the exchange for an `http` URL (limit K646).
const TCP_IDLE: Duration = Duration::from_secs(3600);

/// Time to connect to a target over TCP (limit K646).
const CONNECT: Duration = Duration::from_secs(10);

/// Time without a packet of the client after which tunnels for packets end while the proxy drains (limit K567).
const DRAINING_IDLE: Duration = Duration::from_secs(5);
