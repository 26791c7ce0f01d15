//! Settings of a client.

mod network;
mod quic;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use courser_quic::hooks::ClientConfigHooks;
use courser_quic::telemetry::SinkFactory;
use courser_quic::{QuicVersion, TokenStore, TransportConfig};
use http::{HeaderMap, HeaderValue};

use super::Client;
use super::cookies::CookieStore;
use super::core::{Core, Settings, TcpSettings};
use super::error::{Error, ErrorKind};
use super::expectation;
use super::pool::Limits;
use super::proxy::{Proxies, Proxy};
use super::race;
use super::redirect_policy::RedirectPolicy;
use super::resolve::{Resolve, SystemResolver};
use super::response;
use super::retry::RetryPolicy;
use super::tls::{Tls, TlsSettings};
use super::version::HttpVersion;

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
            proxy_headers: HeaderMap::new(),
            proxies: None,
            limits: Limits::default(),
            alt_svc_file: None,
            early_data: false,
            greases_quic_bit: false,
            on_quic: None,
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
