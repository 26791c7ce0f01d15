//! A forward proxy: CONNECT, CONNECT-UDP and requests for `http` URLs, with one policy for all of them.

mod attempts;
mod credentials;
mod dial;
mod plain;
mod plain_client;
mod record;
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
use courser::h3::{EarlyData, Empty};
use courser::masque::{
    Client, Denied, Gate, OnEnd, Permit, Policy, ProxyError, Refusal, ReportedError, Target,
    Template, UdpProxy,
};
use courser::server::{AbsoluteTarget, Peer};
use courser_base::Mutex;
use http::header::{PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RETRY_AFTER};
use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::Service;

use self::attempts::Attempts;
use self::credentials::Unknown;
use self::dial::dial;
use self::plain::Times;
use self::record::{Begin, Counters, Kind, Log, Record};
use self::relay::{End, Relay};
use self::stream::{ClientStream, Offer};
use crate::access_log::{AccessLog, LogFormat};
use crate::body::{Body, BoxError, boxed, explained, typed};
use crate::proxy::hops;

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
        let gate = Gate::new(settings.policy.clone())
            .limits(settings.limits)
            .authenticate(|parts| {
                let client = parts.extensions.get::<Client>().cloned();
                client.ok_or_else(Denied::forbidden)
            });
        let shared = Shared {
            udp: UdpProxy::of(gate),
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

    /// Ends the tunnels over TCP that are open, and records them. Those over UDP end with the connections of their clients.
    pub fn cut(&self) {
        self.shared.cut.send_replace(true);
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
            Kind::Udp => self.udp(request, record).await,
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
            let is_udp = path.starts_with(UDP_PATH) && (is_connect || is_upgrade(request));
            return Some(if is_udp { Kind::Udp } else { Kind::Http });
        }
        uri.path().starts_with(UDP_PATH).then_some(Kind::Udp)
    }

    fn begin<B>(&self, kind: Kind, request: &Request<B>) -> Record {
        let uri = request.uri();
        let path = uri.path_and_query().map_or("", |it| it.as_str());
        let authority = uri.authority().map(|it| it.as_str());
        let (method, target) = match kind {
            Kind::Tcp => ("CONNECT", authority.unwrap_or_default().to_owned()),
            Kind::Udp => ("CONNECT-UDP", udp_target(path)),
            Kind::Http => {
                let host = request.headers().get(http::header::HOST);
                let host = host.and_then(|it| it.to_str().ok());
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
        if let Some(address) = address
            && let Some(wait) = attempts.wait(address, Instant::now())
        {
            let reason = "too many wrong credentials from this address";
            let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason);
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            refusal.headers.insert(RETRY_AFTER, seconds);
            return Err(refusal);
        }
        let field = parts.headers.get(PROXY_AUTHORIZATION);
        match credentials.client(field).await {
            Ok(name) => Ok(Client::new(&name)),
            Err(unknown) => {
                if unknown == Unknown::Wrong
                    && let Some(address) = address
                {
                    attempts.on_wrong(address, Instant::now());
                }
                Err(challenge(unknown))
            }
        }
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
        tokio::spawn(tunnel.run(record, self.shared.settings.tcp_idle, cut));
        Response::new(Body::empty())
    }

    async fn open_tcp<B>(&self, mut request: Request<B>) -> Result<TcpTunnel, Refusal> {
        let gate = self.shared.udp.gate();
        let authority = request.uri().authority().map_or("", |it| it.as_str());
        let target: Target = authority.parse().map_err(|error| {
            let reason = format!("the target is invalid: {error}");
            Refusal::new(StatusCode::BAD_REQUEST, &reason)
        })?;
        let offer = Offer::of(&mut request);
        let (parts, _) = request.into_parts();
        let permit = gate.admit(&parts)?;
        let offer = offer.ok_or_else(|| {
            let reason = "the server has no upgrades";
            gate.refuse(ProxyError::ProxyInternalError, reason)
        })?;
        let addresses = gate.addresses(&target).await?;
        let (stream, address) = dial(addresses, self.shared.settings.connect)
            .await
            .map_err(|(error, reason)| gate.refuse(error, &reason))?;
        Ok(TcpTunnel {
            offer,
            stream,
            address,
            _permit: permit,
        })
    }

    async fn udp<B>(&self, mut request: Request<B>, mut record: Record) -> Response<Body> {
        if !self.shared.settings.serves_udp {
            return refused(off("CONNECT-UDP"), &mut record);
        }
        let pending = Arc::new(Mutex::new(Some(record)));
        let ended = pending.clone();
        // A request that ends before its response has a record too: that of the last clone.
        request.extensions_mut().insert(OnEnd::new(move |tunnel| {
            if let Some(mut record) = ended.lock().take() {
                record.on_udp(tunnel);
            }
        }));
        let response: Response<Empty> = self.shared.udp.answer(request).await;
        let refusal = response.extensions().get::<Refusal>().cloned();
        let mut record = pending.lock();
        match (refusal, record.as_mut()) {
            (Some(refusal), Some(record)) => return refused(refusal, record),
            (Some(refusal), None) => return page(&refusal),
            (None, Some(record)) => {
                record.on_opened(response.status(), None);
                // Until the tunnel reports another end: its request may end before its response.
                record.on_end(End::Client.name());
            }
            // The tunnel has ended already.
            (None, None) => {}
        }
        drop(record);
        response.map(boxed)
    }

    async fn http<B>(&self, request: Request<B>, mut record: Record) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
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
        match plain::forward(request, (gate, times), record, permit).await {
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
        End::Finished => {}
        End::Target | End::Idle | End::Cut => client.reset(),
        // The target receives a reset. If this fails, it receives an end.
        End::Client => drop(target.set_zero_linger()),
    }
}

/// Returns the address of a client.
fn client_address(extensions: &http::Extensions) -> Option<SocketAddr> {
    let over_tls = extensions.get().map(Peer::current_address);
    over_tls.or_else(|| extensions.get().map(PlainClient::address))
}

/// Returns true for a request of HTTP/1.1 that asks for an upgrade.
fn is_upgrade<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(http::header::UPGRADE)
}

/// Returns the target in a path for logs, or the path if it has none.
fn udp_target(path: &str) -> String {
    let rest = path.strip_prefix(UDP_PATH).unwrap_or(path);
    match rest.trim_end_matches('/').split_once('/') {
        Some((host, port)) if host.to_ascii_lowercase().contains("%3a") => {
            format!("[{}]:{port}", host.replace("%3A", ":").replace("%3a", ":"))
        }
        Some((host, port)) => format!("{host}:{port}"),
        None => path.to_owned(),
    }
}

/// Returns the refusal of a request without the credentials of a client (RFC 9110 §15.5.8).
fn challenge(unknown: Unknown) -> Refusal {
    let reason = match unknown {
        Unknown::Missing => "the request has no credentials",
        Unknown::Wrong => "the credentials are wrong",
    };
    let mut refusal = Refusal::new(StatusCode::PROXY_AUTHENTICATION_REQUIRED, reason);
    // In two lines, because some clients read only one challenge of a line.
    for challenge in CHALLENGES {
        let value = HeaderValue::from_static(challenge);
        refusal.headers.append(PROXY_AUTHENTICATE, value);
    }
    refusal
}

/// Returns the refusal of a protocol that the operator has not switched on.
fn off(what: &str) -> Refusal {
    Refusal::new(
        StatusCode::NOT_IMPLEMENTED,
        &format!("this proxy does not serve {what}"),
    )
}

/// Records a refusal, and returns its response.
fn refused(refusal: Refusal, record: &mut Record) -> Response<Body> {
    record.on_refused(refusal.status, &refusal.reason);
    page(&refusal)
}

/// Returns the response of a refusal. Its text has no reason that describes the network of the proxy.
fn page(refusal: &Refusal) -> Response<Body> {
    let error = ReportedError::of(&refusal.headers).map(|it| it.error);
    let text = match error.as_deref() {
        Some("destination_ip_prohibited") => "the proxy does not allow this target",
        Some("dns_error") => "the name is not resolved",
        Some("dns_timeout") => "the name was not resolved in time",
        Some("connection_refused") => "the target refuses the connection",
        Some("connection_timeout") => "the target does not answer in time",
        Some("connection_terminated") => "the target has closed the connection",
        Some("destination_ip_unroutable") => "the proxy has no route to the target",
        Some("connection_limit_reached") => "the proxy has no room for another tunnel",
        Some(error) => error,
        None => &refusal.reason,
    };
    let mut response = explained(refusal.status, text);
    for (name, value) in &refusal.headers {
        response.headers_mut().append(name, value.clone());
    }
    response
}

/// Time without a byte in either direction of a CONNECT, or of the exchange for an `http` URL (limit K646).
const TCP_IDLE: Duration = Duration::from_secs(3600);

/// Time to connect to a target over TCP (limit K646).
const CONNECT: Duration = Duration::from_secs(10);

const CHALLENGES: [&str; 2] = [
    "Basic realm=\"courser\", charset=\"UTF-8\"",
    "Bearer realm=\"courser\"",
];

/// The path of CONNECT-UDP before its variables (RFC 9298 §2).
const UDP_PATH: &str = "/.well-known/masque/udp/";
