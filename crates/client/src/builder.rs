//! Settings of a client.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use courser_base::ScopedIp;
use courser_quic::hooks::ClientConfigHooks;
use courser_quic::rustls::client::danger::ServerCertVerifier;
use courser_quic::rustls::pki_types::CertificateDer;
use courser_quic::telemetry::SinkFactory;
use courser_quic::{Cryptography, Ech, Identity, QuicVersion, TokenStore, TransportConfig};
use http::{HeaderMap, HeaderValue};

use super::Client;
use super::cookies::CookieStore;
use super::core::{ConnectTo, Core, Settings, TcpSettings};
use super::error::{Error, ErrorKind};
use super::expectation;
use super::family::Family;
use super::pool::Limits;
use super::proxy::{Proxies, Proxy};
use super::race;
use super::redirect_policy::RedirectPolicy;
use super::resolve::{Resolve, SystemResolver};
use super::response;
use super::retry::RetryPolicy;
use super::tls::{Tls, TlsSettings, Trust};
use super::version::{HttpVersion, TlsVersions};

impl Client {
    /// Creates a client with the default settings: it uses the root certificates of the system, follows up to 10
    /// redirects, and limits only the time to connect.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the system's certificates cannot be loaded.
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// Returns a builder for a client with custom settings.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use courser::Client;
    /// use courser::client::HttpVersion;
    ///
    /// let client = Client::builder()
    ///     .version(HttpVersion::Http3) // HTTP/3 first with every server
    ///     .timeout(Duration::from_secs(30))
    ///     .redirects(3)
    ///     .build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

/// Builds a [`Client`]. Every setting has a default.
#[must_use = "call build"]
pub struct ClientBuilder {
    settings: Settings,
    tls: TlsSettings,
    transport: TransportConfig,
    quic_versions: Option<Vec<QuicVersion>>,
    follows_preferred: bool,
    tokens: Option<Arc<dyn TokenStore>>,
    sinks: Option<Arc<dyn SinkFactory>>,
    resolver: Option<Arc<dyn Resolve>>,
    /// The first error of a setting, for `build`.
    wrong: Option<Error>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let settings = Settings {
            version: HttpVersion::default(),
            connect_timeout: CONNECT_TIMEOUT,
            total_timeout: None,
            read_timeout: None,
            attempt_delay: race::DEFAULT_DELAY,
            redirects: RedirectPolicy::default(),
            retries: MAX_RETRIES,
            retry: None,
            moves_in_background: true,
            expect_wait: expectation::WAIT,
            expects_above: None,
            decompresses: true,
            user_agent: None,
            default_headers: HeaderMap::new(),
            cookies: None,
            content_limit: response::DEFAULT_LIMIT,
            https_only: false,
            overrides: std::collections::HashMap::new(),
            connect_to: Vec::new(),
            family: None,
            local_address: None,
            interface: None,
            proxy: Proxy::default(),
            proxies: None,
            limits: Limits::default(),
            alt_svc_file: None,
            early_data: false,
            greases_quic_bit: false,
            allows_tls13: true,
            tcp: TcpSettings::default(),
        };
        Self {
            settings,
            tls: TlsSettings::default(),
            transport: TransportConfig::default(),
            quic_versions: None,
            follows_preferred: true,
            tokens: None,
            sinks: None,
            resolver: None,
            wrong: None,
        }
    }
}

impl ClientBuilder {
    /// Sets the versions of HTTP that may be used. Default [`HttpVersion::Auto`].
    pub fn version(mut self, version: HttpVersion) -> Self {
        self.settings.version = version;
        self
    }

    /// Opens a QUIC connection in the background if HTTP/3 is announced while TCP serves the origin, with the second
    /// request to it, and uses it for requests as soon as it is connected. On by default. If it is off, QUIC is used
    /// when the next connection is opened.
    pub fn background_http3(mut self, is_on: bool) -> Self {
        self.settings.moves_in_background = is_on;
        self
    }

    /// Sets the time limit for connecting, including name lookup and handshakes. Default 30 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.settings.connect_timeout = limit;
        self
    }

    /// Sets the time limit for a request, including redirects and the response body. None by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.total_timeout = Some(limit);
        self
    }

    /// Sets the longest time between two frames of a response body. None by default.
    pub fn read_timeout(mut self, limit: Duration) -> Self {
        self.settings.read_timeout = Some(limit);
        self
    }

    /// Sets the delay between the starts of connection attempts, 10 ms to 2 s. HTTP/3 starts this much earlier
    /// than TCP. Default 250 ms (draft-ietf-happy-happyeyeballs-v3 §9).
    pub fn attempt_delay(mut self, delay: Duration) -> Self {
        self.settings.attempt_delay = delay;
        self
    }

    /// Sets the largest number of redirects to follow, 100 at most. With 0, redirects are returned as responses.
    /// Default 10.
    pub fn redirects(self, limit: usize) -> Self {
        self.redirect_policy(RedirectPolicy::limited(limit))
    }

    /// Sets which redirects are followed. Default: [ten](RedirectPolicy::limited).
    ///
    /// The fields `authorization`, `cookie` and `proxy-authorization`, and values that are marked as
    /// [sensitive](HeaderValue::set_sensitive), stay with the origin of the request. Methods change as in browsers:
    /// POST becomes GET after 301 and 302, and all methods but HEAD after 303.
    pub fn redirect_policy(mut self, policy: RedirectPolicy) -> Self {
        self.settings.redirects = policy;
        self
    }

    /// Sets the store of cookies, such as a `CookieJar` (feature `cookies`). Each response sets cookies in it, also
    /// each redirect, and each request has those that match its URL, after those of its own `cookie` field. None by
    /// default.
    pub fn cookie_store(mut self, store: Arc<dyn CookieStore>) -> Self {
        self.settings.cookies = Some(store);
        self
    }

    /// Sets header fields for all requests that do not have them.
    pub fn default_headers(mut self, headers: HeaderMap) -> Self {
        self.settings.default_headers = headers;
        self
    }

    /// Refuses URLs with the scheme `http`, also those of redirects. Off by default.
    pub fn https_only(mut self, refuses_http: bool) -> Self {
        self.settings.https_only = refuses_http;
        self
    }

    /// Sets the largest number of bytes that [`Response::bytes`](super::Response::bytes) and similar methods read.
    /// Default 64 MiB.
    pub fn content_limit(mut self, bytes: u64) -> Self {
        self.settings.content_limit = bytes;
        self
    }

    /// Sets how often a request that the server has not processed is repeated, on another connection if the
    /// first one ends. With 0, each request is sent once. Default 3 (RFC 9110 §9.2.2).
    pub fn retries(mut self, limit: u32) -> Self {
        self.settings.retries = limit;
        self
    }

    /// Repeats requests after failures that may pass, with delays. Off by default.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = Some(policy);
        self
    }

    /// Sets how long the content of a request with `expect: 100-continue` is held back. Default 1 s.
    ///
    /// The content is sent when the server responds with 100 (Continue), when this time has passed, or after a
    /// successful response. Another final response ends the request without its content, which over HTTP/1.1
    /// also ends the connection. Over HTTP/2, content is sent at once.
    pub fn expect_continue_timeout(mut self, limit: Duration) -> Self {
        self.settings.expect_wait = limit;
        self
    }

    /// Adds `expect: 100-continue` to HTTP/1.1 requests whose content has more than this number of bytes, or an
    /// unknown length. Off by default.
    pub fn expect_continue_above(mut self, bytes: u64) -> Self {
        self.settings.expects_above = Some(bytes);
        self
    }

    /// Enables the content codings gzip and deflate, and brotli and zstd with the features of these names. The
    /// client then requests them and decodes responses. On by default.
    pub fn decompress(mut self, decompresses: bool) -> Self {
        self.settings.decompresses = decompresses;
        self
    }

    /// Sets the `user-agent` field for requests without one, such as `"example/1.0"`. None by default. A value that
    /// cannot be sent is an error of [`build`](Self::build).
    pub fn user_agent<V>(mut self, name: V) -> Self
    where
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        match HeaderValue::try_from(name) {
            Ok(name) => self.settings.user_agent = Some(name),
            Err(error) => {
                let text = format!("the user agent cannot be sent: {}", error.into());
                self.wrong = Some(Error::new(ErrorKind::Config, text));
            }
        }
        self
    }

    /// Sets cipher suites and key exchange groups for all versions of HTTP. See [`Cryptography`] for the
    /// default.
    pub fn cryptography(mut self, cryptography: Cryptography) -> Self {
        self.tls.cryptography = cryptography;
        self
    }

    /// Sends an encrypted ClientHello (ECH, RFC 9849) or a GREASE extension ([`Ech::grease`]) with all versions
    /// of HTTP, which then require TLS 1.3. `None` sends neither and is the default.
    ///
    /// An ECHConfigList belongs to one server, so the client should be used only for that server. If the server
    /// rejects ECH, the error has the kind [`HandshakeFailureKind::EchRejected`], and [`Ech::rejection`] returns
    /// the list for another attempt. Requests are never repeated without ECH.
    ///
    /// [`HandshakeFailureKind::EchRejected`]: courser_quic::HandshakeFailureKind::EchRejected
    pub fn ech(mut self, ech: Option<Ech>) -> Self {
        self.tls.ech = ech;
        self
    }

    /// Trusts the root certificates of the system. On by default. If it is off, only
    /// [added](ClientBuilder::root) certificates are trusted.
    pub fn platform_roots(mut self, trusts: bool) -> Self {
        self.tls.trust = match (self.tls.trust, trusts) {
            (Trust::PlatformAnd(roots), false) => Trust::Only(roots),
            (Trust::Platform, false) => Trust::Only(Vec::new()),
            (Trust::Only(roots), true) => Trust::PlatformAnd(roots),
            (trust, _) => trust,
        };
        self
    }

    /// Trusts servers whose certificate is this one or chains to it.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::Identity::dev()?;
    /// let client = courser::Client::builder().root(server.certificate()).build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn root(mut self, certificate: CertificateDer<'static>) -> Self {
        self.tls.trust = match self.tls.trust {
            Trust::PlatformAnd(mut roots) => {
                roots.push(certificate);
                Trust::PlatformAnd(roots)
            }
            Trust::Only(mut roots) => {
                roots.push(certificate);
                Trust::Only(roots)
            }
            Trust::Platform => Trust::PlatformAnd(vec![certificate]),
            trust => trust,
        };
        self
    }

    /// Trusts servers whose certificates chain to one of the certificates in a PEM text, such as the bundle of a
    /// company. Keys and other blocks in it are ignored.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pem = std::fs::read("company.pem")?;
    /// let client = courser::Client::builder().root_pem(&pem)?.build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the text has no certificate, or one that cannot be read.
    pub fn root_pem(self, pem: &[u8]) -> Result<Self, Error> {
        self.root_pem_of(pem, "the PEM text")
    }

    /// Trusts servers like [`root_pem`](Self::root_pem), with the text of a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be read, has no certificate, or one that cannot be read.
    pub fn root_pem_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let pem = std::fs::read(path).map_err(|error| {
            let text = format!(
                "cannot read the root certificates {}: {error}",
                path.display()
            );
            Error::new(ErrorKind::Config, text)
        })?;
        self.root_pem_of(&pem, &path.display().to_string())
    }

    fn root_pem_of(mut self, pem: &[u8], place: &str) -> Result<Self, Error> {
        let certificates = courser_tls::pem_certificates(pem);
        let certificates = certificates
            .map_err(|error| Error::new(ErrorKind::Config, format!("{place}: {error}")))?;
        for certificate in certificates {
            self = self.root(certificate);
        }
        Ok(self)
    }

    /// Replaces the verification of server certificates with a custom verifier.
    ///
    /// In QUIC handshakes it runs on a thread that may block, so that it does not delay other connections; see
    /// [`ClientConfig::offload_tls`](courser_quic::ClientConfig::offload_tls). Over TCP, and for further origins
    /// of a connection, it runs in a task: it occupies a thread of the runtime, and
    /// [`runtime::block_on`](courser_quic::runtime::block_on) panics there.
    pub fn verifier(mut self, verifier: Arc<dyn ServerCertVerifier>) -> Self {
        self.tls.trust = Trust::Verifier(verifier);
        self
    }

    /// Requires servers to have one of these public keys, in addition to a trusted certificate: SHA-256 hashes of
    /// their SubjectPublicKeyInfo (RFC 7469 §2.4). Proxies are excepted.
    pub fn public_key_pins(mut self, hashes: impl IntoIterator<Item = [u8; 32]>) -> Self {
        self.tls.pins = hashes.into_iter().collect();
        self
    }

    /// Sets the versions of TLS over TCP. Default [`TlsVersions::All`].
    pub fn tls_versions(mut self, versions: TlsVersions) -> Self {
        self.tls.versions = versions;
        self.settings.allows_tls13 = versions != TlsVersions::Only12;
        self
    }

    /// Accepts any server certificate. **An attacker on the path can read and change all traffic.** Intended for
    /// tests and for tools that warn about it.
    pub fn dangerous_insecure(mut self) -> Self {
        self.tls.trust = Trust::Any;
        self
    }

    /// Sets the certificate and key for servers that request a client certificate.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.tls.identity = Some(identity);
        self
    }

    /// Writes TLS secrets to the file named by `SSLKEYLOGFILE` (RFC 9850), for the analysis of captures. Off by
    /// default. A thread writes them: call [`QueuedKeyLog::flush`](courser_quic::QueuedKeyLog::flush) of
    /// [`QueuedKeyLog::environment`](courser_quic::QueuedKeyLog::environment) before the process ends.
    pub fn key_log(mut self, logs_keys: bool) -> Self {
        self.tls.logs_keys = logs_keys;
        self
    }

    /// Sets the transport settings of QUIC connections.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let transport = courser::TransportConfig {
    ///     congestion: courser::Algorithm::Bbr,
    ///     ..Default::default()
    /// };
    /// let client = courser::Client::builder().transport_config(transport).build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn transport_config(mut self, transport: TransportConfig) -> Self {
        self.transport = transport;
        self
    }

    /// Sets the versions of QUIC in order of preference, like
    /// [`ClientConfig::versions`](courser_quic::ClientConfig::versions). Default version 1.
    pub fn quic_versions(mut self, versions: impl IntoIterator<Item = QuicVersion>) -> Self {
        self.quic_versions = Some(versions.into_iter().collect());
        self
    }

    /// Migrates HTTP/3 connections to the preferred address of a server if it is reachable, like
    /// [`ClientConfig::follow_preferred_address`](courser_quic::ClientConfig::follow_preferred_address). On by
    /// default.
    pub fn follow_preferred_address(mut self, follows: bool) -> Self {
        self.follows_preferred = follows;
        self
    }

    /// Accepts QUIC packets whose QUIC bit is 0, and clears the bit in half of the packets, at random, to
    /// servers that accept it, so that networks do not rely on it (RFC 9287). Off by default.
    pub fn grease_quic_bit(mut self, is_on: bool) -> Self {
        self.settings.greases_quic_bit = is_on;
        self
    }

    /// Sends requests with safe methods (GET, HEAD, OPTIONS, TRACE) in early data, which saves a round trip on
    /// connections that resume a session of this client. Other requests wait for the handshake. Off by default.
    ///
    /// Unless the server prevents it, an attacker can replay early requests (RFC 8470 §4). Requests are repeated
    /// if the server rejects early data or responds with `425 Too Early`.
    ///
    /// A request in early data is sent over QUIC without a race against TCP, because QUIC has worked with the
    /// server before. If the server does not answer within four [attempt delays](Self::attempt_delay), the
    /// request is repeated with a race. This setting has no effect with versions of HTTP over TCP alone.
    pub fn early_data(mut self, sends: bool) -> Self {
        self.settings.early_data = sends;
        self
    }

    /// Replaces the store of address validation tokens, which is in memory by default. See
    /// [`FileTokenStore`](super::FileTokenStore).
    pub fn token_store(mut self, tokens: Arc<dyn TokenStore>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Records all QUIC connections, like [`ClientConfig::sinks`](courser_quic::ClientConfig::sinks).
    pub fn sinks(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        self.sinks = Some(sinks);
        self
    }

    /// Replaces the [`SystemResolver`], which resolves all names by default.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Uses these addresses for a host and port. The host `*` matches all hosts, and port 0 all ports.
    ///
    /// Link-local addresses need a zone, which [`http::Uri`] cannot have. Write the address without its zone in
    /// the URL, and pass it with its zone here (RFC 6874).
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// use std::net::SocketAddr;
    ///
    /// use courser::Client;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // For URLs such as https://[fe80::1]:4433/, on the interface with the index 2.
    /// let server: SocketAddr = "[fe80::1%2]:4433".parse()?;
    /// let client = Client::builder().resolve("fe80::1", 0, [server]);
    /// # Ok(()) }
    /// ```
    pub fn resolve(
        mut self,
        host: &str,
        port: u16,
        addresses: impl IntoIterator<Item = impl Into<ScopedIp>>,
    ) -> Self {
        let key = (host.to_ascii_lowercase(), port);
        let addresses = addresses.into_iter().map(Into::into).collect();
        self.settings.overrides.insert(key, addresses);
        self
    }

    /// Connects to another host and port than those of the URL. The certificate must still be valid for the URL.
    /// `None` in `from` matches all values, and in `to` keeps the value. The first matching rule applies.
    pub fn connect_to(
        mut self,
        from: (Option<&str>, Option<u16>),
        to: (Option<&str>, Option<u16>),
    ) -> Self {
        let owned = |(host, port): (Option<&str>, _)| (host.map(str::to_ascii_lowercase), port);
        let rule = ConnectTo {
            from: owned(from),
            to: owned(to),
        };
        self.settings.connect_to.push(rule);
        self
    }

    /// Restricts the client to one address family.
    pub fn family(mut self, family: Family) -> Self {
        self.settings.family = Some(family);
        self
    }

    /// Binds connections to this local address. A link-local address without a zone gets the zone of the server.
    pub fn local_address(mut self, address: impl Into<ScopedIp>) -> Self {
        self.settings.local_address = Some(address.into());
        self
    }

    /// Binds connections to this interface, such as `eth0`. Supported only on Linux.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.settings.interface = Some(name.into());
        self
    }

    /// Selects the proxies. Default [`Proxy::Environment`].
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.settings.proxy = proxy;
        self
    }

    /// Connects to this Unix domain socket instead of the hosts of URLs, without HTTP/3. A path that begins with a
    /// NUL byte is the name of an abstract socket on Linux.
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.tcp.unix_socket = Some(path.into());
        self
    }

    /// Probes TCP connections that were idle for this time, and at this interval. Off by default.
    pub fn tcp_keepalive(mut self, time: Duration) -> Self {
        self.settings.tcp.keepalive = Some(time);
        self
    }

    /// Opens TCP connections from one of these local ports. Default: the system chooses.
    pub fn local_ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.settings.tcp.local_ports = Some(ports);
        self
    }

    /// Begins each TCP connection with a header of the PROXY protocol (version 1), which names its addresses. Off
    /// by default.
    pub fn proxy_protocol(mut self, sends: bool) -> Self {
        self.settings.tcp.sends_proxy_header = sends;
        self
    }

    /// Sets the time after which unused connections are closed. Default 90 s.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.idle_timeout = limit;
        self
    }

    /// Sets the largest number of unused HTTP/1.1 connections per origin. Default 32.
    pub fn idle_per_origin(mut self, connections: usize) -> Self {
        self.settings.limits.idle_per_origin = connections;
        self
    }

    /// Loads alternatives (RFC 7838) from this file if it exists, and saves them to it in curl's format when the
    /// client is dropped.
    pub fn alt_svc_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.alt_svc_file = Some(path.into());
        self
    }

    /// Builds the client. It can be used on any tokio runtime. Each UDP socket belongs to the runtime that first
    /// uses it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the system's certificates cannot be loaded, if certificate and key do not match,
    /// or if a file or setting cannot be used; [`ErrorKind::Unsupported`] for an unsupported kind of proxy.
    pub fn build(mut self) -> Result<Client, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        self.settings.proxies = Proxies::of(&self.settings.proxy)?;
        if self.settings.interface.is_some() && !cfg!(target_os = "linux") {
            let text = "connections can be bound to an interface on Linux only: use an address";
            return Err(Error::new(ErrorKind::Config, text));
        }
        let needs_quic = !self.settings.version.may_use_tcp();
        if needs_quic && (!self.settings.allows_tls13 || self.settings.tcp.unix_socket.is_some()) {
            let text =
                "only HTTP/3 is allowed, which needs UDP and TLS 1.3: allow other versions of HTTP";
            return Err(Error::new(ErrorKind::Config, text));
        }
        let mut tls = Tls::new(&self.tls, self.settings.version)?;
        let early_data = self.settings.early_data;
        tls.quic = tls
            .quic
            .transport_config(self.transport)
            .early_data(early_data)
            .follow_preferred_address(self.follows_preferred);
        if let Some(versions) = self.quic_versions {
            tls.quic = tls.quic.versions(versions);
        }
        if let Some(tokens) = self.tokens {
            tls.quic = tls.quic.token_store(Some(tokens));
        }
        if let Some(sinks) = self.sinks {
            tls.quic = tls.quic.sinks(sinks);
        }
        // Reports errors in the configuration now instead of for each connection.
        let checked = tls.quic.clone().check();
        checked.map_err(|error| Error::new(ErrorKind::Config, error.to_string()))?;
        let resolver = self
            .resolver
            .unwrap_or_else(|| Arc::new(SystemResolver::new()));
        let (core, alive) = Core::new(self.settings, tls, resolver)?;
        Ok(Client(Arc::new(core), Arc::new(alive)))
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("version", &self.settings.version)
            .finish_non_exhaustive()
    }
}

/// Default of the connect timeout, which allows three retransmissions of the first packet.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default number of retries: one for a stale connection, and two for connections that are going away.
const MAX_RETRIES: u32 = 3;
