//! The settings of a server.

use std::fmt;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_quic::telemetry::SinkFactory;
use courser_quic::{
    AddressFilter, ConfigError, ConnectionIdGenerator, EarlyDataOptions, QuicVersion, ReplyLimits,
    RetryPolicy, TransportConfig,
};
use courser_tls::rustls;
use courser_tls::{ClientAuthentication, Cryptography};

use crate::alt_svc::AltSvc;
use crate::certificates::Certificates;
use crate::certificates::reset::ResetSecret;
use crate::events::{Event, Events};
use crate::exchange::early_data::TooEarly;
use crate::handover::ListeningSockets;
use crate::limits::Limits;
use crate::own_response::{OwnListener, OwnResponse};
use crate::peer::Peer;
use crate::quic::settings::QuicSettings;
use crate::quic::sinks::MakeSinks;
use crate::requests::MoreExtensions;
use crate::tls::Settings;

/// Creates the settings of a server on `address` with this certificate. Sockets are opened when it is
/// [awaited](Server::service) or [bound](Server::bind).
///
/// The address is a string such as `"[::]:4433"`, a [`SocketAddr`], or a name with a port; the server listens on
/// all addresses of a name. `[::]` accepts IPv4 clients too. For port 0 the system chooses a port that is free
/// for UDP and TCP.
///
/// The certificate is an [`Identity`](courser_quic::Identity) or [`Certificates`].
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, routing::get};
/// use courser::Identity;
///
/// let app = Router::new().route("/", get(|| async { "hello\n" }));
/// let server = courser::serve("127.0.0.1:0", Identity::dev()?).bind()?;
/// println!("https://{}/", server.local_addr());
/// let serving = server.service(app); // await it
/// # drop(serving);
/// # Ok(()) }
/// ```
pub fn serve<C>(address: impl ToSocketAddrs, certificates: C) -> Server
where
    C: TryInto<Certificates>,
    ConfigError: From<C::Error>,
{
    Server {
        addresses: resolve(address),
        inherited: Vec::new(),
        certificates: certificates.try_into().map_err(ConfigError::from),
        limits: Limits::default(),
        http3: h3::Config::new(courser_quic::Side::Server),
        announces_names: false,
        only_names: false,
        early_requests: TooEarly::unless_safe(),
        reset: None,
        quic: QuicSettings::default(),
        address_filter: Arc::default(),
        alt_svc: Some(AltSvc::default()),
        redirects: Ok(Vec::new()),
        with_tcp: true,
        with_quic: true,
        sends_interim: false,
        http2_connect: false,
        tls: Settings::default(),
        drain: None,
        ready_delay: Duration::ZERO,
        deadline: DEADLINE,
        events: Events::default(),
        own_listener: OwnListener::default(),
        extensions: MoreExtensions::default(),
        #[cfg(feature = "metrics")]
        metrics: None,
    }
}

/// The settings of a server; see [`serve`].
#[must_use = "nothing is served before this has a service and is awaited"]
pub struct Server {
    pub(crate) addresses: Result<Vec<SocketAddr>, io::Error>,
    pub(crate) inherited: Vec<ListeningSockets>,
    pub(crate) certificates: Result<Certificates, ConfigError>,
    pub(crate) limits: Limits,
    pub(crate) http3: h3::Config,
    pub(crate) announces_names: bool,
    pub(crate) only_names: bool,
    pub(crate) early_requests: TooEarly,
    pub(crate) reset: Option<ResetSecret>,
    pub(crate) quic: QuicSettings,
    pub(crate) address_filter: Arc<AddressFilter>,
    pub(crate) alt_svc: Option<AltSvc>,
    /// The addresses of plain HTTP.
    pub(crate) redirects: Result<Vec<SocketAddr>, io::Error>,
    pub(crate) with_tcp: bool,
    pub(crate) with_quic: bool,
    pub(crate) sends_interim: bool,
    /// True if HTTP/2 clients may send extended CONNECT.
    pub(crate) http2_connect: bool,
    pub(crate) tls: Settings,
    pub(crate) drain: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(crate) ready_delay: Duration,
    pub(crate) deadline: Duration,
    pub(crate) events: Events,
    pub(crate) own_listener: OwnListener,
    pub(crate) extensions: MoreExtensions,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Option<courser_observe::Metrics>,
}

impl Server {
    /// Listens on further addresses. Port 0 selects the port of the first address, or another port if the server
    /// already listens on that address.
    pub fn also_on(mut self, address: impl ToSocketAddrs) -> Self {
        if let Ok(addresses) = &mut self.addresses {
            match resolve(address) {
                Ok(more) => addresses.extend(more),
                Err(error) => self.addresses = Err(error),
            }
        }
        self
    }

    /// Uses these listening sockets for the addresses that they are bound to, instead of opening others. They
    /// come from a server in another process ([`ServerHandle::hand_over`](crate::ServerHandle::hand_over)) or
    /// from a service manager ([`ListeningSockets::from_service_manager`]). The number of shards is that of the UDP
    /// sockets. A socket for no address of the server is an error, because its clients would wait for an answer.
    pub fn inherit(mut self, sockets: impl IntoIterator<Item = ListeningSockets>) -> Self {
        self.inherited.extend(sockets);
        self
    }

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
        self.limits = limits;
        self
    }

    /// Sets the limits, compression and extensions of HTTP/3.
    pub fn config(mut self, config: h3::Config) -> Self {
        self.http3 = config;
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
        self.announces_names = is_on;
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
        self.only_names = is_on;
        self
    }

    /// Sets the transport settings of QUIC. Default: those of [`TransportConfig`], with 256 concurrent requests.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let transport = courser::TransportConfig {
    ///     max_idle_timeout: Some(Duration::from_secs(10)),
    ///     congestion: courser::Algorithm::Bbr,
    ///     ..Default::default()
    /// };
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).transport(transport);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        self.quic.transport = Some(transport);
        self
    }

    /// Reports this server in `metrics`: its requests by protocol, method and status with their durations, its
    /// connections over TCP and QUIC, refused clients by reason, its memory, certificates and drain.
    ///
    /// QUIC connections are counted by the sinks of `metrics` too, with the address that they arrived at as the label
    /// `endpoint`, beside the sinks of [`Server::sinks`]. There is nothing to [watch](courser_observe::Metrics::watch).
    ///
    /// | metric | labels | |
    /// |---|---|---|
    /// | `courser_http_requests_total` | `protocol`, `method`, `code` | other methods than those of RFC 9110 and PATCH are `other`; the code 499 stands for clients that have left before there was a response |
    /// | `courser_http_request_duration_seconds` | `protocol` | histogram, from the request header section to the end of the response |
    /// | `courser_http_response_content_bytes_total`, `courser_http_responses_incomplete_total` | `protocol` | |
    /// | `courser_http_requests_refused_total` | `cause` | requests that the service did not get |
    /// | `courser_handler_panics_total` | | panics of the service |
    /// | `courser_requests_in_flight`, `courser_connections_open`, `courser_connections_total` | `protocol` | |
    /// | `courser_refused_total` | `reason` | refused clients over QUIC and TCP |
    /// | `courser_ready`, `courser_busy`, `courser_draining`, `courser_drain_…` | | the state of the server |
    /// | `courser_tcp_…`, `courser_udp_…`, `courser_quic_…` | | bytes, handshakes, packets, memory; shards by `address` and `shard` |
    /// | `courser_certificate_…`, `courser_acme_…` | | |
    ///
    /// No label has a value that a client can choose freely. Values of several servers with the same metrics are
    /// added. A request costs two readings of the clock and five atomic additions.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_observe as observe; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::observe::Metrics;
    ///
    /// let metrics = Metrics::new();
    /// let app: axum::Router = axum::Router::new().route_service("/metrics", metrics.service());
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?)
    ///     .metrics(&metrics)
    ///     .bind()?;
    /// assert!(metrics.text().contains("courser_ready 1"));
    /// # drop(server.service(app));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, metrics: &courser_observe::Metrics) -> Self {
        self.metrics = Some(metrics.clone());
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
        self.extensions = self.extensions.and(make);
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

    /// Sets the sinks of QUIC connections for each address of the server, for example to count the connections
    /// of each address separately. They replace the sinks of [`Server::transport`].
    ///
    /// `sinks` is called once for each address that the server listens on. For port 0, it receives the port that
    /// the system chose.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    ///
    /// use courser::telemetry::{Sink, SinkFactory};
    ///
    /// #[derive(Debug)]
    /// struct Log(std::net::SocketAddr);
    ///
    /// impl SinkFactory for Log {
    ///     fn sink(&self, _: &courser::ConnectionId, _: courser::Side) -> Option<Box<dyn Sink>> {
    ///         println!("a client arrived at {}", self.0);
    ///         None
    ///     }
    /// }
    ///
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?);
    /// let server = server.sinks(|address| Arc::new(Log(address)));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn sinks(
        mut self,
        sinks: impl Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync + 'static,
    ) -> Self {
        self.quic.sinks = Some(MakeSinks(Arc::new(sinks)));
        self
    }

    /// Sets when QUIC clients must validate their address. Default [`RetryPolicy::Auto`]: if many handshakes are
    /// in progress, or if the address or network has used its share of the connections. The default is
    /// [`RetryPolicy::Always`] if the choice of certificates is [asynchronous](Certificates::asynchronous).
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.quic.retry = Some(policy);
        self
    }

    /// Sets the versions of QUIC in order of preference, and upgrades clients to the first one that they
    /// support, like [`ServerConfig::versions`](courser_quic::ServerConfig::versions). By default all versions
    /// are accepted, and a client keeps the version with which it starts.
    pub fn quic_versions(mut self, versions: impl IntoIterator<Item = QuicVersion>) -> Self {
        self.quic.versions = Some(versions.into_iter().collect());
        self
    }

    /// Sets the generator of connection IDs for all addresses of the server, like
    /// [`ServerConfig::connection_ids`](courser_quic::ServerConfig::connection_ids). By default IDs are 8 random
    /// bytes. With a [`ServerIdGenerator`](courser_quic::ServerIdGenerator), load balancers can derive the
    /// server from an ID.
    pub fn connection_ids(mut self, generator: Arc<dyn ConnectionIdGenerator>) -> Self {
        self.quic.connection_ids = Some(generator);
        self
    }

    /// Allows HTTP/3 clients to change their address, like
    /// [`ServerConfig::migration`](courser_quic::ServerConfig::migration). On by default.
    ///
    /// If it is off, clients are asked not to migrate (RFC 9000 §18.2), and packets from another IP address are
    /// dropped. Another port of the same address is accepted, because NATs rebind.
    pub fn migration(mut self, is_allowed: bool) -> Self {
        self.quic.path_settings.forbids_migration = !is_allowed;
        self
    }

    /// Asks HTTP/3 clients to migrate to another address of the server once the handshake is confirmed: to `v4`
    /// over IPv4, and to `v6` over IPv6 (RFC 9000 §9.6). None by default.
    ///
    /// This is useful for servers behind a shared address, such as anycast, that also have an address of their
    /// own. Only listeners on a wildcard address offer it, because only their sockets receive there: `0.0.0.0`
    /// for `v4`, and `[::]` for both. Ports are not compared, because a router may translate them. Clients that
    /// get no answer there, or do not support it, stay at the first address. It can be combined with
    /// [`migration(false)`](Self::migration), which then applies only to the first address.
    ///
    /// [`bind`](Self::bind) returns [`Error::PreferredAddress`](crate::Error::PreferredAddress) for a wildcard or multicast address, for
    /// port 0, for the address and port of another listener, and without a listener that can receive there.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::net::{Ipv4Addr, SocketAddrV4};
    ///
    /// let own = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 4433);
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).preferred_address(own, None);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn preferred_address(
        mut self,
        v4: impl Into<Option<SocketAddrV4>>,
        v6: impl Into<Option<SocketAddrV6>>,
    ) -> Self {
        self.quic.path_settings.preferred_v4 = v4.into();
        self.quic.path_settings.preferred_v6 = v6.into();
        self
    }

    /// Accepts QUIC packets whose QUIC bit is 0, and clears the bit in half of the packets, at random, to
    /// clients that accept it, so that networks do not rely on it (RFC 9287). Off by default.
    pub fn grease_quic_bit(mut self, is_on: bool) -> Self {
        self.quic.path_settings.greases_quic_bit = is_on;
        self
    }

    /// Accepts HTTP/3 requests in early data (0-RTT), which save returning clients a round trip. Off by default.
    /// Such a request has the extension [`EarlyData`](crate::EarlyData) until the handshake completes.
    ///
    /// Early requests of clients without a token that validates their address are delayed until the handshake
    /// completes, and then are ordinary requests.
    ///
    /// The server prevents the replay of early data to itself; see [`EarlyDataOptions`] for servers that share
    /// an address. The settings of [`Server::config`] replace [`EarlyDataOptions::application`].
    pub fn early_data(mut self, options: EarlyDataOptions) -> Self {
        self.quic.early_data = Some(options);
        self
    }

    /// Sets which requests in early data the service receives. The server responds to others with `425 Too
    /// Early`, and clients repeat them after the handshake. By default the service receives those with safe
    /// methods ([`TooEarly::unless_safe`]). The policy receives method, path and header section, so it can
    /// decide by route. It has no effect without [`Server::early_data`].
    ///
    /// The policy is not called for early requests of clients without a token that validates their address.
    /// These are delayed until the handshake completes, and then are ordinary requests.
    pub fn early_requests(mut self, policy: TooEarly) -> Self {
        self.early_requests = policy;
        self
    }

    /// Distributes the QUIC connections of each address over `count` shards, 1 to 256, so that they can use as
    /// many cores. Default 1.
    ///
    /// Limits apply to all shards together. See
    /// [`EndpointBuilder::shards`](courser_quic::EndpointBuilder::shards) for the requirements; if the system
    /// does not meet them, there is one shard, and a warning in the capabilities of
    /// [`ServerHandle::endpoints`](crate::ServerHandle::endpoints).
    pub fn shards(mut self, count: usize) -> Self {
        self.quic.shards = count;
        self
    }

    /// Sets how many bytes the connections of each address may hold for clients, at least 1 MiB.
    ///
    /// Over QUIC, the budget includes bytes sent but not acknowledged, bytes received but not read, datagrams and
    /// handshakes. Half of it is shared by the connections over TCP of all addresses, with what they have received
    /// and not processed, and by all requests in progress. Request content over HTTP/2 that the service has not read has
    /// a further quarter. The default is a quarter of the memory of the machine or control group, and at least 16 MiB.
    /// Near the limit, connections accept less data from the service, windows stop growing and clients are
    /// refused. As the last resort, the server closes the connection that holds the most memory for the least
    /// progress.
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.quic.memory_budget = Some(bytes);
        self
    }

    /// Sets the rates of Retry, Version Negotiation and refusals over QUIC for each address of the server.
    /// Default: 10 000 per second to one network and 40 000 to all.
    pub fn reply_limits(mut self, limits: ReplyLimits) -> Self {
        self.quic.reply_limits = Some(limits);
        self
    }

    /// Sets the rates of stateless resets over QUIC for each address of the server. Default: 200 per second to
    /// one network and 2000 to all.
    pub fn reset_limits(mut self, limits: ReplyLimits) -> Self {
        self.quic.reset_limits = Some(limits);
        self
    }

    /// Sets which addresses are blocked. None by default.
    /// [`ServerHandle::set_address_filter`](crate::ServerHandle::set_address_filter) replaces the filter while
    /// the server runs.
    pub fn address_filter(mut self, filter: impl Into<Arc<AddressFilter>>) -> Self {
        self.address_filter = filter.into();
        self
    }

    /// Sets the secret from which the keys of stateless resets are derived for each address.
    ///
    /// After a crash, a server with the same secret resets connections of former clients at once. Otherwise
    /// clients wait for their idle timeout (RFC 9000 §10.3). By default the secret is derived from the private
    /// key of the certificate, or read from the folder of the certificate. It is random for port 0, for a custom
    /// resolver, and for private keys on systems other than Linux, where machines with the same key cannot be
    /// distinguished.
    ///
    /// Servers that run at the same time on the same address and port, such as machines behind a load balancer,
    /// must have different secrets (RFC 9000 §21.11).
    pub fn reset_secret(mut self, secret: [u8; 32]) -> Self {
        self.reset = Some(ResetSecret::from_user(secret));
        self
    }

    /// Sets the announcement of HTTP/3 in responses over TCP; `None` announces nothing. A response of the service
    /// that has an `Alt-Svc` field keeps it. A service that forwards requests should therefore remove the field of its
    /// upstream server, which names another port (RFC 7838 §2.1).
    pub fn alt_svc(mut self, alt_svc: impl Into<Option<AltSvc>>) -> Self {
        self.alt_svc = alt_svc.into();
        self
    }

    /// Disables HTTP/2 and HTTP/1.1, so that no TCP socket is opened.
    pub fn without_tcp(mut self) -> Self {
        self.with_tcp = false;
        self
    }

    /// Listens for plain HTTP on this address, usually port 80, and leads clients to https: to the port of
    /// [`alt_svc`](Self::alt_svc), or else the port of the first address. GET and HEAD get 301, other methods 308.
    /// Can be repeated.
    ///
    /// Each connection has one request and lasts at most 10 seconds, or
    /// [`Limits::header_read_timeout`] if that is shorter. With
    /// `Acme::http01`, challenges are answered here. The service does not see the requests.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?)
    ///     .redirect_http("127.0.0.1:0")
    ///     .bind()?;
    /// println!("http://{}/", server.redirect_addrs()[0]);
    /// # Ok(()) }
    /// ```
    pub fn redirect_http(mut self, address: impl ToSocketAddrs) -> Self {
        if let Ok(addresses) = &mut self.redirects {
            match resolve(address) {
                Ok(more) => addresses.extend(more),
                Err(error) => self.redirects = Err(error),
            }
        }
        self
    }

    /// Disables HTTP/3, so that no UDP socket is opened.
    pub fn without_quic(mut self) -> Self {
        self.with_quic = false;
        self
    }

    /// Adds an [`h3::Interim`] to the extensions of each request, through which services send interim responses
    /// such as 103 (Early Hints) over every protocol except HTTP/1.0. Off by default, because it costs each request some
    /// allocations, and some old clients of HTTP/1.1 take an interim response for the final one (RFC 8297 §3).
    pub fn interim_responses(mut self, is_on: bool) -> Self {
        self.sends_interim = is_on;
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
        self.http2_connect = is_on;
        self
    }

    /// Sets the policy for client certificates for all protocols. None are requested by default.
    ///
    /// [`TlsFacts::client_certificates`](crate::TlsFacts::client_certificates) of each request's
    /// [`Peer`](crate::Peer) contains the chain of the client. If a certificate is required, a client without
    /// one is refused with the alert certificate_required, which [`Event::ClientCertificateRefused`] reports.
    /// Requests in early data are delayed until the handshake completes.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// use courser::rustls::RootCertStore;
    /// use courser::{ClientAuthentication, Identity};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut roots = RootCertStore::empty();
    /// roots.add(Identity::from_pem_files("ca.pem", "ca.key")?.certificate())?;
    /// let server = courser::serve("[::]:4433", Identity::dev()?)
    ///     .client_authentication(ClientAuthentication::Required(roots));
    /// # let _ = server;
    /// # Ok(()) }
    /// ```
    pub fn client_authentication(mut self, policy: ClientAuthentication) -> Self {
        self.tls.clients = policy;
        self
    }

    /// Sets cipher suites and key exchange groups for all protocols. See [`Cryptography`] for the default.
    pub fn cryptography(mut self, cryptography: Cryptography) -> Self {
        self.tls.cryptography = cryptography;
        self
    }

    /// Modifies the TLS configurations of QUIC and TCP before they are used, for example to log keys.
    /// Application protocols are set afterwards. With [`Certificates::asynchronous`], the resolver that `change`
    /// sets for TCP is replaced.
    pub fn tls(mut self, change: impl Fn(&mut rustls::ServerConfig) + Send + 'static) -> Self {
        self.tls.hook = Some(Box::new(change));
        self
    }

    /// Runs the TLS work of QUIC on threads that may block, like
    /// [`ServerConfig::offload_tls`](courser_quic::ServerConfig::offload_tls). Off by default.
    ///
    /// Enable it if a [resolver](Certificates::resolver), a signer or a verifier of client certificates may be
    /// slow, because it uses a network, a key store or a disk. Otherwise no QUIC connection of the same address
    /// sends or receives until it returns. Over TCP it runs in the task of its connection: it occupies a thread
    /// of the runtime, and cannot wait for async code with
    /// [`runtime::block_on`](courser_quic::runtime::block_on), which panics there.
    ///
    /// With [`Certificates::asynchronous`] it is always on, and TLS over TCP also runs on threads that may
    /// block.
    pub fn offload_tls(mut self, offloads: bool) -> Self {
        self.quic.offloads_tls = offloads;
        self
    }

    /// Drains the server when `signal` completes, for example [`shutdown_signal`](crate::shutdown_signal).
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?)
    ///     .drain(courser::server::shutdown_signal())
    ///     .deadline(Duration::from_secs(20));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn drain(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.drain = Some(Box::pin(signal));
        self
    }

    /// Sets how long a draining server continues as before but reports that it is not ready, so that load
    /// balancers can react. None by default.
    pub fn ready_delay(mut self, delay: Duration) -> Self {
        self.ready_delay = delay;
        self
    }

    /// Sets the time limit for requests in flight after the server has stopped accepting requests. Default 30 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Calls `listener` for each [event](Event). It should return quickly.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?)
    ///     .on_event(|event| eprintln!("{event:?}"));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn on_event(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.events = Events::to(listener);
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
        self.own_listener = OwnListener::to(listener);
        self
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

fn resolve(address: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        ));
    }
    Ok(addresses)
}

const DEADLINE: Duration = Duration::from_secs(30);
