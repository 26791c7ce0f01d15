//! A reverse proxy.

mod facts;
mod failure;
mod fields;
mod forward;
pub(crate) mod framing;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod hops;
pub(crate) mod interim;
mod report;
#[cfg(test)]
mod scripted;
mod sessions;
mod target;
mod timeouts;
mod tunnel;
mod upgrade;
mod upstream;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use courser::h3::Interim;
use courser::server::{self, Cause, Peer};
use courser::webtransport;
use courser_base::ScopedIp;
use courser_udp::{parse_ip, split_zone};
use http::header::RETRY_AFTER;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::upgrade::OnUpgrade;
use tower::Service;

pub(crate) use self::facts::UpstreamFacts;
use self::failure::{Failure, cause_of_content, status_of};
pub use self::fields::{FIELD_RULES, FieldAction, FieldRule};
use self::forward::Outgoing;
use self::framing::{FilteredTrailers, Framing};
use self::interim::Relay;
use self::report::Reporter;
pub use self::sessions::{SessionBackend, SessionProxy, SessionProxyStats};
pub(crate) use self::timeouts::ContentFailure;
use self::timeouts::{IdleTimeout, ServerTimer};
use self::tunnel::Tunnels;
pub use self::upgrade::UpgradeProtocol;
use self::upgrade::Upgrades;
use self::upstream::{Content, Dial, Upstream};
pub use self::upstream::{ProxyLimits, TcpConnector, UpstreamStats};
use crate::body::{Body, boxed, explained, plain, without_content};

/// The upstream server of a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backend {
    authority: Authority,
    /// True for HTTP/2 with prior knowledge (RFC 9113 §3.3).
    is_http2: bool,
    /// The address to connect to if it is link-local, because the authority has no zone (RFC 6874 §1).
    link_local: Option<ScopedIp>,
}

/// Time limits for the upstream server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProxyTimes {
    /// Time limit for connecting.
    pub connect: Duration,
    /// Time limit for the start of a response. It does not run while the server waits for the client's content.
    pub response: Duration,
    /// Time limit for each pause in the content of a response.
    pub body: Duration,
}

impl Backend {
    /// Parses `http://HOST[:PORT]`, or `h2c://HOST[:PORT]` for HTTP/2. The host may be a link-local address with
    /// its zone, such as `[fe80::1%25eth0]` (RFC 6874).
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!("'{text}' {what}: use http://HOST[:PORT], or h2c://HOST[:PORT] for HTTP/2")
        };
        let (plain, link_local) = match split_zone(text) {
            None => (Cow::Borrowed(text), None),
            Some((plain, ip)) => {
                let ip = parse_ip(&ip).map_err(|error| format!("'{text}': {error}"))?;
                (Cow::Owned(plain), Some(ip))
            }
        };
        let uri: Uri = plain.parse().map_err(|_| wrong("is not a URL"))?;
        let is_http2 = match uri.scheme_str() {
            Some("http") => false,
            Some("h2c") => true,
            Some("https") => {
                return Err(wrong(
                    "requires TLS to the upstream server, which is not supported",
                ));
            }
            _ => return Err(wrong("has an unknown scheme")),
        };
        if !matches!(
            uri.path_and_query().map(PathAndQuery::as_str),
            None | Some("/")
        ) {
            return Err(wrong("has a path, but requests keep their own paths"));
        }
        let authority = uri
            .authority()
            .cloned()
            .ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a user name, which is not supported"));
        }
        let ip = authority.host().trim_matches(['[', ']']).parse::<IpAddr>();
        if link_local.is_none() && ip.is_ok_and(|ip| ScopedIp::from(ip).lacks_zone()) {
            return Err(format!(
                "'{text}' has a link-local address: name its interface, as in http://[fe80::1%25eth0]:8080"
            ));
        }
        Ok(Self {
            authority,
            is_http2,
            link_local,
        })
    }

    /// Returns the address to connect to if it is link-local.
    fn link_local_address(&self) -> Option<SocketAddr> {
        let port = self.authority.port_u16().unwrap_or(80);
        self.link_local.map(|ip| ip.with_port(port))
    }

    /// Returns the host for requests that name none.
    fn host(&self) -> &str {
        match self.authority.port_u16() {
            Some(80) => self.authority.host(),
            _ => self.authority.as_str(),
        }
    }

    fn uri(&self) -> Uri {
        uri_of(self.authority.clone(), PathAndQuery::from_static("/"))
    }
}

/// Returns a URI of the scheme `http`, because connections to upstream servers have no TLS.
fn uri_of(authority: Authority, path: PathAndQuery) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority);
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).expect("all parts are there")
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_http2 { "h2c" } else { "http" };
        match self.link_local {
            None => write!(f, "{scheme}://{}", self.authority),
            Some(ip) => {
                let (ip, zone) = (ip.ip(), ip.scope_id());
                write!(f, "{scheme}://[{ip}%25{zone}]")?;
                let port = self.authority.port_u16();
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

/// Forwards requests to an upstream server.
///
/// Clients and the upstream server may use different versions of HTTP. The host of a request stays the one that the
/// client named, as Host over HTTP/1.1 and as `:authority` over HTTP/2. A request of HTTP/1.0 without a host gets
/// that of the upstream server's URL. The scheme over HTTP/2 is that of the URL, `http`, and the client's is in
/// Forwarded and X-Forwarded-Proto. Upgrades to WebSocket and interim responses are forwarded.
///
/// [`FIELD_RULES`] lists the fields that are not forwarded unchanged: those that are specific to a connection (RFC
/// 9110 §7.6), and those that describe the client, which the proxy writes itself. A request whose target and Host
/// field name different hosts is refused, and so is one that has passed this process before (RFC 9110 §7.6.3).
#[derive(Clone, Debug)]
pub struct Proxy<C = TcpConnector> {
    backend: Backend,
    upstream: Upstream<C>,
    times: ProxyTimes,
    upgrades: Upgrades,
    keeps_underscores: bool,
    tunnels: Arc<Tunnels>,
    reporter: Option<Arc<Reporter>>,
}

impl Proxy {
    /// Creates a proxy that connects over TCP.
    pub fn new(backend: Backend, times: ProxyTimes) -> Self {
        Self::with_limits(backend, times, ProxyLimits::default())
    }

    /// Creates a proxy that connects over TCP, with limits on its connections.
    pub fn with_limits(backend: Backend, times: ProxyTimes, limits: ProxyLimits) -> Self {
        let connector = TcpConnector::new(backend.link_local_address(), times.connect);
        Self::with(connector, backend, times, limits)
    }

    /// Calls `report` with a message for the operator when requests to the upstream server fail: the cause, the
    /// address, and what to do. Each cause is reported at most once a minute, on a thread of its own.
    #[must_use]
    pub fn on_failure(self, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            reporter: Some(Reporter::new(self.backend.to_string(), report)),
            ..self
        }
    }

    /// Returns the use of the connections to the upstream server.
    pub fn stats(&self) -> UpstreamStats {
        UpstreamStats {
            tunnels: self.tunnels.open(),
            tunnels_idle: self.tunnels.closed_idle(),
            ..self.upstream.stats()
        }
    }
}

impl<C: Dial> Proxy<C> {
    /// Creates a proxy that connects with this connector.
    fn with(connector: C, backend: Backend, times: ProxyTimes, limits: ProxyLimits) -> Self {
        let (server, is_http2) = (backend.uri(), backend.is_http2);
        let limits = ProxyLimits {
            // A refusal must not become a timeout.
            retry: limits.retry.min(times.response / 2),
            ..limits
        };
        Self {
            upstream: Upstream::new(connector, server, is_http2, times.connect, limits),
            backend,
            times,
            upgrades: Upgrades::default(),
            keeps_underscores: false,
            tunnels: Tunnels::new(limits.tunnel_idle),
            reporter: None,
        }
    }

    /// Forwards upgrades to these protocols besides WebSocket.
    #[must_use]
    pub fn with_upgrades(mut self, protocols: impl IntoIterator<Item = UpgradeProtocol>) -> Self {
        self.upgrades = self.upgrades.with(protocols);
        self
    }

    /// Forwards request fields whose names contain an underscore, which are removed by default: CGI and many
    /// frameworks do not distinguish it from a hyphen. Names that resemble a name of [`FIELD_RULES`] are removed in
    /// any case.
    #[must_use]
    pub const fn with_underscores(mut self, keeps_underscores: bool) -> Self {
        self.keeps_underscores = keeps_underscores;
        self
    }

    /// Returns the upstream server.
    pub const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns the response of the upstream server, 502 if it cannot be reached or does not speak HTTP, 503 if its
    /// connections are in use, or 504 if it exceeds a time limit. A response that the proxy makes itself has its
    /// [`Cause`] as an extension.
    pub async fn answer(&self, request: Request<server::Body>) -> Response<Body> {
        self.answer_recorded(request, &mut UpstreamFacts::default())
            .await
    }

    /// Returns the response like [`answer`](Self::answer), and records facts about the upstream server.
    pub(crate) async fn answer_recorded(
        &self,
        request: Request<server::Body>,
        facts: &mut UpstreamFacts,
    ) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        match self.forward(request, facts).await {
            Ok(response) => response,
            Err(failure) => {
                if let Some(reporter) = &self.reporter {
                    let error = failure.error.as_deref();
                    reporter.on_failure(failure.cause, error, facts.address);
                }
                match is_head {
                    true => without_content(refusal(&failure)),
                    false => refusal(&failure),
                }
            }
        }
    }

    async fn forward(
        &self,
        request: Request<server::Body>,
        facts: &mut UpstreamFacts,
    ) -> Result<Response<Body>, Failure> {
        if webtransport::is_session_request(&request) {
            let reason = "sessions of WebTransport are not forwarded here";
            return Err(Failure::new(Cause::NoSessionUpstream, reason));
        }
        let (mut parts, body) = request.into_parts();
        if !forward::has_valid_names(&parts.headers) {
            return Err(Failure::new(Cause::InvalidField, "invalid field name"));
        }
        let version = parts.version;
        let interim = parts.extensions.remove::<Interim>();
        let path = target::path(&parts)?;
        let host = target::host(&parts);
        let host = host.map_err(|reason| Failure::new(Cause::InvalidHost, reason))?;
        hops::check(&parts)?;
        if let Some(answer) = hops::answer(&parts) {
            return Ok(answer);
        }
        let framing = Framing::of(&mut parts.headers, version);
        let framing = framing.map_err(|reason| Failure::new(Cause::InvalidFraming, reason))?;
        let is_awaited = interim::is_awaited(&parts) && !http_body::Body::is_end_stream(&body);
        let client_side = parts.extensions.remove::<OnUpgrade>();
        let upgrade = client_side.zip(self.upgrades.requested(&parts));
        if upgrade.is_some() && self.backend.is_http2 {
            // Without the upgrade, it would be a request for the content at this path.
            let reason = "upgrades require an upstream server with HTTP/1.1";
            return Err(Failure::new(Cause::UnsupportedUpgrade, reason));
        }
        let protocol = upgrade.as_ref().map(|(_, protocol)| protocol.clone());
        self.address(&mut parts, path, host.as_ref(), protocol);
        let client = parts.extensions.get::<Peer>().map(Peer::current_address);
        parts.extensions = http::Extensions::new();
        if let (Some(client), true) = (&interim, is_awaited) {
            // Boxed, because few requests need it.
            Box::pin(interim::proceed(client)).await;
        }
        let body = framing.body(&mut parts, body, self.keeps_underscores);
        let body = body.await;
        let body = body.map_err(|error| Failure::from(cause_of_content(&error)))?;
        let permit = self.upstream.admit(client.map(ScopedIp::of)).await?;
        let mut timer = ServerTimer::start();
        let request = Request::from_parts(parts, timer.watch(body));
        let (relay, sender) = match interim.map(|client| Relay::new(client, version)) {
            Some((relay, sender)) => (Some(relay), Some(sender)),
            None => (None, None),
        };
        let response = {
            // Pinned here, because each future that contains another one reserves memory for it twice.
            let mut sent = pin!(self.upstream.send(request, permit, sender, facts));
            let response = pin!(async {
                match relay {
                    Some(relay) => relay.until(sent).await,
                    None => sent.as_mut().await,
                }
            });
            timer.within(self.times.response, response).await
        };
        facts.responding = Some(timer.elapsed());
        let response = response.ok_or(Cause::UpstreamTimeout)??;
        facts.status = Some(response.status());
        forward::check_response(response.status(), response.headers())?;
        self.finish(response, upgrade, version)
    }

    /// Rewrites the target and the fields of a request for the upstream server.
    fn address(
        &self,
        parts: &mut http::request::Parts,
        path: PathAndQuery,
        host: Option<&HeaderValue>,
        upgrade: Option<HeaderValue>,
    ) {
        // HTTP/1.0 clients may omit Host, but later versions require it (RFC 9112 §3.2).
        let named = host.cloned();
        let named = named.or_else(|| HeaderValue::from_str(self.backend.host()).ok());
        let outgoing = |host_field| Outgoing {
            host,
            host_field,
            upgrade,
            keeps_underscores: self.keeps_underscores,
        };
        if self.backend.is_http2 {
            forward::prepare_request(parts, outgoing(None));
            let authority = named.and_then(|host| Authority::try_from(host.as_bytes()).ok());
            // It was validated as an authority.
            let authority = authority.unwrap_or_else(|| self.backend.authority.clone());
            parts.version = Version::HTTP_2;
            parts.uri = uri_of(authority, path);
        } else {
            forward::prepare_request(parts, outgoing(named));
            parts.version = Version::HTTP_11;
            parts.uri = Uri::from(path);
        }
    }

    /// Returns the response for the client: the upgraded connection is forwarded, and other content is limited in
    /// time.
    fn finish(
        &self,
        mut response: Response<Content<C>>,
        upgrade: Option<(OnUpgrade, HeaderValue)>,
        version: Version,
    ) -> Result<Response<Body>, Failure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let headers = response.headers();
            let upgrade =
                upgrade.filter(|(_, protocol)| upgrade::is_switched_to(headers, protocol));
            // The upstream server upgrades without a request from the client, or to another protocol.
            let (client_side, protocol) = upgrade.ok_or(Cause::UpstreamUnexpectedUpgrade)?;
            let backend_side = hyper::upgrade::on(&mut response);
            let (mut parts, content) = response.into_parts();
            let tunnels = self.tunnels.clone();
            tokio::spawn(tunnels.join(client_side, backend_side, content.into_lease()));
            forward::prepare_upgrade(&mut parts, version, Some(protocol));
            return Ok(Response::from_parts(parts, Body::empty()));
        }
        let (mut parts, body) = response.into_parts();
        if parts.status == StatusCode::UPGRADE_REQUIRED && version == Version::HTTP_11 {
            let protocol = self.upgrades.first(&parts.headers);
            forward::prepare_upgrade(&mut parts, version, protocol);
        } else {
            forward::prepare_response(&mut parts, version);
        }
        if parts.status == StatusCode::RESET_CONTENT {
            return Ok(Response::from_parts(parts, Body::empty()));
        }
        let content = FilteredTrailers::new(body, true);
        let content = IdleTimeout::new(content, self.times.body, self.reporter.clone());
        Ok(Response::from_parts(parts, boxed(content)))
    }
}

impl<C: Dial> Service<Request<server::Body>> for Proxy<C> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<server::Body>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.answer(request).await) })
    }
}

/// Returns the response for a request that failed, with the cause as an extension.
fn refusal(failure: &Failure) -> Response<Body> {
    let status = status_of(failure.cause);
    let mut response = match &failure.error {
        // The reason concerns the request, so the client may read it.
        Some(reason) if concerns_request(status) => explained(status, &reason.to_string()),
        _ => plain(status),
    };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    }
    response.extensions_mut().insert(failure.cause);
    response
}

/// Returns true if the reason for a status is in the request, not in the upstream server.
fn concerns_request(status: StatusCode) -> bool {
    status.is_client_error()
        || matches!(
            status,
            StatusCode::NOT_IMPLEMENTED | StatusCode::LOOP_DETECTED
        )
}

/// Seconds after which a client may repeat a request that found all connections in use (RFC 9110 §15.6.4).
const RETRY_SECONDS: &str = "5";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read() {
        let plain = Backend::parse("http://localhost:8080").expect("a backend");
        assert_eq!(plain.to_string(), "http://localhost:8080");
        assert!(Backend::parse("h2c://[::1]:1").expect("a backend").is_http2);
        assert!(Backend::parse("http://localhost/").is_ok());
    }

    #[test]
    fn host_of_a_backend_has_no_default_port() {
        for (url, host) in [
            ("http://a.test", "a.test"),
            ("http://a.test:80", "a.test"),
            ("http://a.test:8080", "a.test:8080"),
            ("http://[::1]:80", "[::1]"),
        ] {
            assert_eq!(Backend::parse(url).expect("a backend").host(), host);
        }
    }

    /// RFC 6874 §1: a zone is meaningful only on the local machine.
    #[test]
    fn zones_of_backends_are_kept_for_the_socket_only() {
        for (url, address, host) in [
            (
                "http://[fe80::1%257]:8080",
                "[fe80::1%7]:8080",
                "[fe80::1]:8080",
            ),
            ("h2c://[fe80::1%257]/", "[fe80::1%7]:80", "[fe80::1]"),
        ] {
            let backend = Backend::parse(url).expect(url);
            let address = address.parse().expect(address);
            assert_eq!(backend.link_local_address(), Some(address));
            assert_eq!(backend.host(), host);
            assert_eq!(backend.to_string(), url.trim_end_matches('/'));
        }
        let backend = Backend::parse("http://[2001:db8::1]:1").expect("a backend");
        assert_eq!(backend.link_local_address(), None);
        for (url, word) in [
            ("http://[fe80::1]:1", "name its interface"),
            ("http://[fe80::1%25nowhere]:1", "no interface 'nowhere'"),
            ("http://[2001:db8::1%257]:1", "only link-local addresses"),
        ] {
            let error = Backend::parse(url).expect_err(url);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn invalid_backends_are_reported() {
        for (text, word) in [
            ("localhost:80", "unknown scheme"),
            ("https://x", "TLS"),
            ("http://x/path", "path"),
            ("http://me@x", "user"),
            ("ftp://x", "unknown scheme"),
            ("", "not a URL"),
        ] {
            let error = Backend::parse(text).expect_err(text);
            assert!(
                error.contains(word) && error.contains("use http://"),
                "{error}"
            );
        }
    }

    /// RFC 9114 §4.4: neither over HTTP/3 nor over TCP.
    #[tokio::test]
    async fn connect_opens_no_tunnel() {
        let backend = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        backend.set_nonblocking(true).expect("a socket");
        let address = backend.local_addr().expect("bound");
        let second = Duration::from_secs(1);
        let times = ProxyTimes {
            connect: second,
            response: second,
            body: second,
        };
        let proxy = Proxy::new(
            Backend::parse(&format!("http://{address}")).expect("a backend"),
            times,
        );
        for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
            for target in [address.to_string(), format!("http://{address}/path")] {
                let request = Request::connect(target).version(version);
                let request = request.body(server::Body::empty()).expect("a request");
                let response = proxy.answer(request).await;
                assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{version:?}");
                let accepted = backend.accept().map_err(|error| error.kind());
                let nothing = std::io::ErrorKind::WouldBlock;
                assert_eq!(accepted.err(), Some(nothing), "{version:?}");
            }
        }
    }
}
