//! A reverse proxy.

mod facts;
mod failure;
mod forward;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod interim;
mod report;
#[cfg(test)]
mod scripted;
mod target;
mod timeouts;
mod tunnel;
mod upstream;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser::h3::Interim;
use courser::server::{self, Cause, Peer};
use courser_base::ScopedIp;
use courser_udp::{parse_ip, split_zone};
use http::header::{CONTENT_LENGTH, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use tower::Service;

pub(crate) use self::facts::UpstreamFacts;
use self::failure::{Failure, cause_of_content, status_of};
use self::interim::Relay;
use self::report::Reporter;
pub(crate) use self::timeouts::ContentFailure;
use self::timeouts::{IdleTimeout, ServerTimer};
use self::tunnel::Tunnels;
use self::upstream::{Content, Dial, Upstream};
pub use self::upstream::{ProxyLimits, TcpConnector, UpstreamStats};
use crate::body::{Body, boxed, explained, plain};

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

    /// Returns the Host field for requests that name no host.
    fn host(&self) -> &str {
        match self.authority.port_u16() {
            Some(80) => self.authority.host(),
            _ => self.authority.as_str(),
        }
    }

    fn uri(&self) -> Uri {
        self.uri_of(PathAndQuery::from_static("/"))
    }

    fn uri_of(&self, path: PathAndQuery) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).expect("all parts are there")
    }
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
/// Clients and the upstream server may use different versions of HTTP. Upgrades such as WebSocket and interim
/// responses are forwarded. Connection-specific fields are removed (RFC 9110 §7.6), and fields that describe the
/// client are replaced: Forwarded, X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host and Via. A request whose
/// target and Host field name different hosts is refused.
#[derive(Clone, Debug)]
pub struct Proxy<C = TcpConnector> {
    backend: Backend,
    upstream: Upstream<C>,
    times: ProxyTimes,
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
        Self {
            upstream: Upstream::new(connector, server, is_http2, times.connect, limits),
            backend,
            times,
            tunnels: Tunnels::new(limits.tunnel_idle),
            reporter: None,
        }
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

    /// Returns the response like [`answer`](Self::answer), and writes down what happened at the upstream server.
    pub(crate) async fn answer_recorded(
        &self,
        request: Request<server::Body>,
        facts: &mut UpstreamFacts,
    ) -> Response<Body> {
        match self.forward(request, facts).await {
            Ok(response) => response,
            Err(failure) => {
                if let Some(reporter) = &self.reporter {
                    let error = failure.error.as_deref();
                    reporter.on_failure(failure.cause, error, facts.address);
                }
                refusal(&failure)
            }
        }
    }

    async fn forward(
        &self,
        request: Request<server::Body>,
        facts: &mut UpstreamFacts,
    ) -> Result<Response<Body>, Failure> {
        let (mut parts, body) = request.into_parts();
        let is_upgrade = forward::is_upgrade(&parts);
        let client_side = parts
            .extensions
            .remove::<OnUpgrade>()
            .filter(|_| is_upgrade);
        if !forward::has_valid_names(&parts.headers) {
            return Err(Failure::new(Cause::InvalidField, "invalid field name"));
        }
        let version = parts.version;
        let interim = parts.extensions.remove::<Interim>();
        let path = parts.uri.path_and_query().cloned();
        // A forwarded CONNECT would open a tunnel at the upstream server, whatever its target.
        if parts.method == Method::CONNECT {
            return Err(Cause::ConnectRefused.into());
        }
        let path = path.ok_or(Cause::InvalidTarget)?;
        let host = target::host(&parts);
        let host = host.map_err(|reason| Failure::new(Cause::InvalidHost, reason))?;
        forward::prepare_request(&mut parts, host.as_ref(), client_side.is_some());
        self.address(&mut parts, path);
        let client = parts.extensions.get::<Peer>().map(Peer::current_address);
        parts.extensions = http::Extensions::new();
        let body = body_of(&parts, version, body).await;
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
        if !forward::has_valid_names(response.headers()) {
            return Err(Cause::UpstreamInvalidField.into());
        }
        self.finish(response, client_side, version)
    }

    /// Returns the response for the client: the upgraded connection is forwarded, and other content is limited in
    /// time.
    fn finish(
        &self,
        mut response: Response<Content<C>>,
        client_side: Option<OnUpgrade>,
        version: Version,
    ) -> Result<Response<Body>, Failure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // The upstream server upgrades without a request from the client.
            let client_side = client_side.ok_or(Cause::UpstreamUnexpectedUpgrade)?;
            let backend_side = hyper::upgrade::on(&mut response);
            let (mut parts, content) = response.into_parts();
            let tunnels = self.tunnels.clone();
            tokio::spawn(tunnels.join(client_side, backend_side, content.into_lease()));
            forward::prepare_upgrade(&mut parts);
            return Ok(Response::from_parts(parts, Body::empty()));
        }
        let (mut parts, body) = response.into_parts();
        forward::prepare_response(&mut parts, version);
        let content = IdleTimeout::new(body, self.times.body, self.reporter.clone());
        Ok(Response::from_parts(parts, boxed(content)))
    }

    /// Rewrites the target of a request for the upstream server.
    fn address(&self, parts: &mut http::request::Parts, path: PathAndQuery) {
        if self.backend.is_http2 {
            parts.version = Version::HTTP_2;
            parts.uri = self.backend.uri_of(path);
            return;
        }
        parts.version = Version::HTTP_11;
        // Without a path the target would be empty, as in `GET http://example.org HTTP/1.1` (RFC 9112 §3.2.1).
        parts.uri = Uri::from(match path.as_str() {
            "/" => PathAndQuery::from_static("/"),
            _ => path,
        });
        // HTTP/1.0 clients may omit Host, but HTTP/1.1 requires it (RFC 9112 §3.2).
        if !parts.headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(self.backend.host())
        {
            parts.headers.insert(HOST, host);
        }
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
        Some(reason) if status == StatusCode::BAD_REQUEST => explained(status, &reason.to_string()),
        _ => plain(status),
    };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    }
    response.extensions_mut().insert(failure.cause);
    response
}

/// Seconds after which a client may repeat a request that found all connections in use (RFC 9110 §15.6.4).
const RETRY_SECONDS: &str = "5";

/// Returns the body to forward. Over HTTP/2 and HTTP/3 only the end of the stream shows that a request has no
/// content, so the first frame of a likely empty body is awaited. An HTTP/1.1 server would otherwise receive a
/// body of unknown length, which many refuse for GET.
async fn body_of(
    parts: &http::request::Parts,
    version: Version,
    mut body: server::Body,
) -> Result<Body, server::BodyError> {
    let has_content_field = parts.headers.contains_key(CONTENT_LENGTH)
        || parts.headers.contains_key(TRANSFER_ENCODING)
        || version < Version::HTTP_2;
    let is_likely_empty = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if has_content_field || !is_likely_empty {
        return Ok(boxed(body));
    }
    match body.frame().await.transpose()? {
        None => Ok(Body::empty()),
        Some(first) => Ok(boxed(Prefetched {
            first: Some(first),
            rest: body,
        })),
    }
}

/// A body whose first frame is already received.
struct Prefetched {
    first: Option<Frame<Bytes>>,
    rest: server::Body,
}

impl http_body::Body for Prefetched {
    type Data = Bytes;
    type Error = server::BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => pin!(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

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

    /// RFC 9112 §3.2.1.
    #[tokio::test]
    async fn targets_get_the_form_of_their_protocol() {
        let times = ProxyTimes {
            connect: Duration::ZERO,
            response: Duration::ZERO,
            body: Duration::ZERO,
        };
        for (target, path) in [
            ("http://a.test", "/"),
            ("http://a.test#fragment", "/"),
            ("http://a.test/", "/"),
            ("http://a.test?b", "/?b"),
            ("http://a.test/b?c", "/b?c"),
            ("/b", "/b"),
            ("*", "*"),
        ] {
            for (backend, expected) in [
                ("http://b.test", path.to_owned()),
                ("h2c://b.test", format!("http://b.test{path}")),
            ] {
                let proxy = Proxy::new(Backend::parse(backend).expect("a backend"), times);
                let request = Request::get(target).body(()).expect("a request");
                let (mut parts, ()) = request.into_parts();
                let path = parts.uri.path_and_query().cloned().expect("a path");
                proxy.address(&mut parts, path);
                assert_eq!(parts.uri.to_string(), expected, "{target}");
            }
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
