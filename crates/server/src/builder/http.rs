//! The settings of requests, over all versions of HTTP.

use courser_http3_tokio as h3;

use super::Server;
#[cfg(doc)]
use crate::certificates::Certificates;
use crate::exchange::early_data::TooEarly;
use crate::limits::Limits;
use crate::own_response::{OwnListener, OwnResponse};
use crate::peer::Peer;

impl Server {
    /// Sets limits on the resources of clients.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::server::Limits;
    ///
    /// let mut limits = Limits::default();
    /// limits.max_connections = 1000;
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).limits(limits);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn limits(mut self, limits: Limits) -> Self {
        self.http.limits = limits;
        self
    }

    /// Sets the limits, compression and extensions of HTTP/3.
    pub fn config(mut self, config: h3::Config) -> Self {
        self.http.http3 = config;
        self
    }

    /// Serves sessions of WebTransport over HTTP/3 with these origins, dialects and limits, besides requests. Without this
    /// call, clients are told that there are none.
    ///
    /// The service accepts a session with `courser::webtransport::upgrade`.
    /// When the server drains, it asks all clients to end their sessions, with GOAWAY and WT_DRAIN_SESSION;
    /// sessions that are left are closed with code 0 at the [deadline](Self::deadline).
    /// [`ServerHandle::sessions`](crate::ServerHandle::sessions) counts and lists them.
    ///
    /// [`bind`](Self::bind) returns [`Error::Sessions`](crate::Error::Sessions) if the extensions of
    /// [`config`](Self::config) claim the same streams.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; pub use courser_webtransport_tokio as webtransport; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::extract::Request;
    /// use axum::response::Response;
    /// use axum::{Router, routing::any};
    /// use courser::webtransport::{self, Config, Session};
    ///
    /// async fn chat(mut request: Request) -> Response {
    ///     let accepted = webtransport::upgrade(&mut request).accept(|session: Session| async move {
    ///         session.closed().await;
    ///     });
    ///     accepted.await
    /// }
    ///
    /// let app: Router = Router::new().route("/chat", any(chat));
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?)
    ///     .webtransport(Config::new())
    ///     .bind()?;
    /// let sessions = server.handle().sessions().expect("they are served");
    /// assert_eq!(sessions.stats().open, 0);
    /// let serving = server.service(app); // await it
    /// # drop(serving);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "webtransport")]
    pub fn webtransport(mut self, config: courser_webtransport_tokio::Config) -> Self {
        self.http.sessions = Some(config);
        self
    }

    /// Announces the names of its certificate to each HTTP/3 client, so that a client can use one connection for
    /// several of them (ORIGIN, RFC 9412). Wildcards are not announced. No frame is sent if the certificate has
    /// only the name that the client requested.
    ///
    /// Off by default, and without effect with a custom resolver or an
    /// [asynchronous](Certificates::asynchronous) choice. [`h3::Config::origins`] is announced to every client
    /// independently of this setting. A server that does not serve all of these names on each connection should
    /// respond with 421; see [`only_names`](Self::only_names).
    pub fn announce_names(mut self, is_on: bool) -> Self {
        self.http.announces_names = is_on;
        self
    }

    /// Responds to requests for hosts other than the names of the connection's certificate with `421 Misdirected
    /// Request` (RFC 9114 §3.3), over all versions of HTTP. The service does not receive them, and clients may
    /// repeat them on another connection. A wildcard matches one label, and ports are not compared. The address to
    /// which the client has connected is served too, because health checks use it as the host. The target of CONNECT
    /// is not checked, except that of extended CONNECT (RFC 9220).
    ///
    /// Off by default, because clients of a development server or behind a load balancer may use other names. It
    /// has no effect with a custom resolver or an [asynchronous](Certificates::asynchronous) choice,
    /// because the server does not have their names.
    pub fn only_names(mut self, is_on: bool) -> Self {
        self.http.only_names = is_on;
        self
    }

    /// Adds a value to the extensions of each request, which `make` derives from the client. Can be repeated; of two
    /// values of one type, requests have the later one.
    ///
    /// Use it for extractors that expect the address in a type of their own, such as tonic's `TcpConnectInfo`. For
    /// axum's `ConnectInfo`, there is `Server::connect_info` with the feature `axum`. A panic of `make` has the same
    /// effect as one of the service.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::Extension;
    ///
    /// #[derive(Clone)]
    /// struct Client(std::net::IpAddr);
    ///
    /// async fn greet(Extension(Client(ip)): Extension<Client>) -> String {
    ///     format!("hello, {ip}\n")
    /// }
    ///
    /// let app: axum::Router = axum::Router::new().route("/", axum::routing::get(greet));
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?)
    ///     .extension(|peer| Client(peer.address().ip()));
    /// # drop((server, app));
    /// # Ok(()) }
    /// ```
    pub fn extension<T, F>(mut self, make: F) -> Self
    where
        T: Clone + Send + Sync + 'static,
        F: Fn(&Peer) -> T + Send + Sync + 'static,
    {
        self.http.extensions = self.http.extensions.and(make);
        self
    }

    /// Lets handlers of axum 0.8 and layers extract `ConnectInfo<SocketAddr>`, as with `axum::serve` and
    /// `into_make_service_with_connect_info`. Off by default, because it costs each request an allocation.
    ///
    /// It is the [address](Peer::address) of the client at the start of its connection, with IPv4-mapped addresses
    /// converted to IPv4. Behind a proxy it is that of the proxy. For another version of axum, pass
    /// `|peer| ConnectInfo(peer.address())` to [`Server::extension`].
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::net::SocketAddr;
    ///
    /// use axum::{Router, extract::ConnectInfo, routing::get};
    ///
    /// async fn greet(ConnectInfo(client): ConnectInfo<SocketAddr>) -> String {
    ///     format!("hello, {client}\n")
    /// }
    ///
    /// let app: Router = Router::new().route("/", get(greet));
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).connect_info();
    /// # drop((server, app));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "axum")]
    pub fn connect_info(self) -> Self {
        self.extension(|peer| axum::extract::ConnectInfo(peer.address()))
    }

    /// Sets which requests in early data the service receives. The server responds to others with `425 Too
    /// Early`, and clients repeat them after the handshake. By default the service receives those with safe
    /// methods ([`TooEarly::unless_safe`]). The policy receives method, path and header section, so it can
    /// decide by route. It has no effect without [`Server::early_data`].
    ///
    /// The policy is not called for early requests of clients without a token that validates their address.
    /// These are delayed until the handshake completes, and then are ordinary requests.
    pub fn early_requests(mut self, policy: TooEarly) -> Self {
        self.http.early_requests = policy;
        self
    }

    /// Adds an [`h3::Interim`] to the extensions of each request, through which services send interim responses
    /// such as 103 (Early Hints) over every protocol except HTTP/1.0. Off by default, because it costs each request some
    /// allocations, and some old clients of HTTP/1.1 take an interim response for the final one (RFC 8297 §3).
    pub fn interim_responses(mut self, is_on: bool) -> Self {
        self.http.sends_interim = is_on;
        self
    }

    /// Enables extended CONNECT over HTTP/2 (RFC 8441), with which browsers open WebSockets on the connection that
    /// they have.
    ///
    /// The service receives requests for every protocol, with the method CONNECT, a scheme and a path, and
    /// hyper's `ext::Protocol` among their extensions. hyper's `upgrade::on` returns the stream once the response is
    /// 2xx. axum's `WebSocketUpgrade` does both with axum's feature `http2`, behind a route of `any`, since `get`
    /// answers 405.
    ///
    /// Off by default. A client that sees the setting no longer sends `Upgrade` over HTTP/1.1, and does not try it
    /// when CONNECT is refused, so a service that answers only `Upgrade` would lose its browsers. HTTP/3
    /// has a setting of its own, [`h3::Config::extended_connect`], because its streams come from
    /// [`h3::upgrade`].
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).http2_extended_connect(true);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn http2_extended_connect(mut self, is_on: bool) -> Self {
        self.http.http2_connect = is_on;
        self
    }

    /// Calls `listener` with each response that the server makes itself, without its service: for malformed requests, for
    /// those of other hosts, when memory is short, and for plain HTTP. An access log needs it to be complete. The listener is
    /// called on the task of the connection and must not block.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// # let identity = courser::Identity::dev()?;
    /// let server = courser::serve("127.0.0.1:0", identity)
    ///     .on_own_response(|it| eprintln!("{} got {}: {}", it.client, it.status, it.cause));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn on_own_response(
        mut self,
        listener: impl Fn(&OwnResponse<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.http.own_listener = OwnListener::to(listener);
        self
    }
}
