//! Settings of a channel.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_client::hooks::{parse_url, setting_error};
use courser_client::{Client, ClientBuilder, Error, HttpVersion, Origin, Proxy, Resolve};
use courser_quic::rustls::pki_types::CertificateDer;
use courser_quic::{Identity, TransportConfig};
use http::{HeaderValue, Uri};
use tokio::sync::{Notify, Semaphore};

use super::Channel;
use super::balancer::Balancer;
use super::shared::{Settings, Shared, Target};

impl Channel {
    /// Creates a channel with the default settings. It connects when it is first used.
    ///
    /// # Errors
    /// Those of [`ChannelBuilder::build`].
    pub fn from_uri(uri: impl AsRef<str>) -> Result<Self, Error> {
        Self::builder(uri).build()
    }

    /// Returns a builder for a channel to the servers of `uri`: `https` or `http`, a host and a port.
    pub fn builder(uri: impl AsRef<str>) -> ChannelBuilder {
        ChannelBuilder::new(uri.as_ref())
    }
}

/// Builds a [`Channel`]. Every setting has a default.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_grpc as grpc; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use courser::grpc::Channel;
///
/// let channel = Channel::builder("https://one.example.org:50051")
///     .endpoint("https://two.example.org:50051") // calls take turns
///     .timeout(Duration::from_secs(5))
///     .keep_alive(Duration::from_secs(10))
///     .build()?;
/// # drop(channel);
/// # Ok(()) }
/// ```
#[must_use = "call build"]
pub struct ChannelBuilder {
    uris: Vec<String>,
    origin: Option<String>,
    client: ClientBuilder,
    version: HttpVersion,
    transport: Option<TransportConfig>,
    keep_alive: Option<Duration>,
    timeout: Option<Duration>,
    refresh: Duration,
    probe_after: Duration,
    waits_for_ready: bool,
    user_agent: Option<String>,
    concurrency: Option<usize>,
}

impl ChannelBuilder {
    pub(super) fn new(uri: &str) -> Self {
        let client = Client::builder()
            .proxy(Proxy::Direct)
            .redirects(0)
            .retries(0)
            .decompress(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .idle_timeout(IDLE_TIMEOUT);
        Self {
            uris: vec![uri.to_owned()],
            origin: None,
            client,
            version: HttpVersion::Http3Or2,
            transport: None,
            keep_alive: None,
            timeout: None,
            refresh: REFRESH,
            probe_after: PROBE_AFTER,
            waits_for_ready: false,
            user_agent: None,
            concurrency: None,
        }
    }

    /// Adds a server. Calls take turns over the addresses of all servers, and each call has the authority of the server
    /// that receives it.
    pub fn endpoint(mut self, uri: impl AsRef<str>) -> Self {
        self.uris.push(uri.as_ref().to_owned());
        self
    }

    /// Sets the versions of HTTP: [`HttpVersion::Http3Or2`], which is the default and tries HTTP/3 a quarter of a second
    /// earlier than HTTP/2, [`HttpVersion::Http3Only`] or [`HttpVersion::Http2PriorKnowledge`]. With `http` URIs, which
    /// have no encryption, HTTP/2 is used.
    pub fn version(mut self, version: HttpVersion) -> Self {
        self.version = version;
        self
    }

    /// Uses the scheme and authority of this URI in calls, and its host for the certificate, instead of those of the
    /// servers.
    pub fn origin(mut self, uri: impl AsRef<str>) -> Self {
        self.origin = Some(uri.as_ref().to_owned());
        self
    }

    /// Sets the longest time until the response begins, for calls that set no timeout themselves. None by default.
    ///
    /// It is a default only: the timeout of a call, from [`tonic::Request::set_timeout`], takes its place whether it is
    /// shorter or longer. The time includes connecting, and ends with the header section of the response. A stream of
    /// responses that has begun may last, as with `Endpoint::timeout` of tonic; a call that sends a stream and receives
    /// one message must have sent it by then. It is not sent to the server. When it has passed, the call ends with
    /// `DeadlineExceeded` and is cancelled, so that the server drops the handler.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the longest time to connect to one address. Default 20 s, as in other implementations of gRPC.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.client = self.client.connect_timeout(timeout);
        self
    }

    /// Keeps connections open while there are no calls, by a PING after this time without packets. It must be less
    /// than the idle timeout of both ends, which is 30 s by default. Off by default: a connection with an open call
    /// is always kept.
    ///
    /// Over HTTP/2 it is the interval of TCP keep-alive.
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = Some(interval);
        self
    }

    /// Limits the number of calls that are open at a time; further ones wait. A call is open until its last message was
    /// read or its stream was dropped. No limit by default.
    pub fn concurrency_limit(mut self, calls: usize) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// Puts this name before that of the library in the field `user-agent`.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }

    /// Sets the age of addresses after which calls resolve the name again in the background. Default 30 s.
    pub fn refresh(mut self, age: Duration) -> Self {
        self.refresh = age;
        self
    }

    /// Sets the time without an answer of a server after which the next call first asks whether the server still knows
    /// its connection. Default 5 s; [`Duration::MAX`] never asks.
    ///
    /// A server that has crashed and was started again knows none of its connections. It says so only in answer to a
    /// packet. If that packet carried a call, the call would fail, because nothing proves that the server that crashed has
    /// not processed it. So a PING goes first, over HTTP/3, and the call uses a new connection if the old one is lost or
    /// does not answer. It costs such a call one round trip, and up to 25 ms if the server delays acknowledgements. Over
    /// HTTP/2 the system of the server reports the crash itself.
    ///
    /// A crash within this time after an answer still costs a call: it fails with `Unavailable`.
    pub fn probe_after(mut self, silence: Duration) -> Self {
        self.probe_after = silence;
        self
    }

    /// Lets calls wait, until their deadline, while no server can be reached. By default they fail with the reason.
    pub fn wait_for_ready(mut self, waits: bool) -> Self {
        self.waits_for_ready = waits;
        self
    }

    /// Trusts servers whose certificate is this one or chains to it, in addition to the roots of the system.
    pub fn root(mut self, certificate: CertificateDer<'static>) -> Self {
        self.client = self.client.root(certificate);
        self
    }

    /// Trusts servers whose certificates chain to one of the certificates in a PEM text, such as the bundle of a
    /// company, in addition to the roots of the system. Keys and other blocks in it are ignored.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_grpc as grpc; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::grpc::Channel;
    ///
    /// let pem = std::fs::read("company.pem")?;
    /// let channel = Channel::builder("https://words.example.org").root_pem(&pem)?.build()?;
    /// # drop(channel);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`](courser_client::ErrorKind::Config) if the text has no certificate, or one that cannot be
    /// read.
    pub fn root_pem(mut self, pem: &[u8]) -> Result<Self, Error> {
        self.client = self.client.root_pem(pem)?;
        Ok(self)
    }

    /// Trusts servers like [`root_pem`](Self::root_pem), with the text of a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](courser_client::ErrorKind::Config) if the file cannot be read, has no certificate, or one
    /// that cannot be read.
    pub fn root_pem_file(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        self.client = self.client.root_pem_file(path)?;
        Ok(self)
    }

    /// Presents this certificate to servers that request one.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.client = self.client.identity(identity);
        self
    }

    /// Replaces the resolver of names, which is that of the system by default.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.client = self.client.resolver(resolver);
        self
    }

    /// Sets the transport settings of QUIC connections.
    pub fn transport_config(mut self, transport: TransportConfig) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Changes the settings of the client that opens the connections: verification, pins, ECH, local address, records.
    /// Those for redirects, retries and content codings do not apply to calls.
    pub fn configure(mut self, change: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        self.client = change(self.client);
        self
    }

    /// Builds the channel, without connecting.
    ///
    /// # Errors
    /// [`ErrorKind::Url`](courser_client::ErrorKind::Url) if a URI has no scheme or host, or has more than these and a
    /// port; [`ErrorKind::Config`](courser_client::ErrorKind::Config) for a setting that cannot be used, as with
    /// [`ClientBuilder::build`].
    pub fn build(self) -> Result<Channel, Error> {
        let targets = self.targets()?;
        let name = self
            .user_agent
            .map_or(String::new(), |name| format!("{name} "));
        let user_agent = HeaderValue::try_from(format!("{name}{USER_AGENT}"));
        let user_agent = user_agent.map_err(|_| {
            setting_error(format!(
                "the user agent '{name}' has characters that no field can have"
            ))
        })?;
        if self
            .concurrency
            .is_some_and(|calls| calls == 0 || calls > Semaphore::MAX_PERMITS)
        {
            return Err(setting_error(format!(
                "the limit of open calls must be 1 to {}",
                Semaphore::MAX_PERMITS
            )));
        }
        let mut client = self.client.version(self.version);
        if self.transport.is_some() || self.keep_alive.is_some() {
            let mut transport = self.transport.unwrap_or_default();
            transport.keep_alive_interval = self.keep_alive.or(transport.keep_alive_interval);
            client = client.transport_config(transport);
        }
        if let Some(interval) = self.keep_alive {
            client = client.tcp_keepalive(interval);
        }
        let shared = Shared {
            client: client.build()?,
            targets,
            settings: Settings {
                timeout: self.timeout,
                refresh: self.refresh,
                probe_after: self.probe_after,
                waits_for_ready: self.waits_for_ready,
                user_agent,
            },
            balancer: Mutex::new(Balancer::default()),
            changed: Notify::new(),
            calls: self
                .concurrency
                .map(|calls| Arc::new(Semaphore::new(calls))),
        };
        Ok(Channel(Arc::new(shared)))
    }

    fn targets(&self) -> Result<Vec<Target>, Error> {
        let origin = self.origin.as_deref().map(parse_target).transpose()?;
        let target = |uri: &String| {
            let (server, own) = parse_target(uri)?;
            if self.version == HttpVersion::Http3Only && !server.is_secure() {
                return Err(setting_error(format!(
                    "'{uri}' has no encryption, and only HTTP/3 is allowed: use https://"
                )));
            }
            let (origin, uri) = origin.clone().unwrap_or((server.clone(), own));
            if origin.is_secure() != server.is_secure() {
                return Err(setting_error(format!(
                    "'{server}' and the origin '{origin}' must have the same scheme"
                )));
            }
            Ok(Target {
                server,
                origin,
                uri,
            })
        };
        self.uris.iter().map(target).collect()
    }
}

/// Parses a URI that consists of scheme, host and port.
fn parse_target(text: &str) -> Result<(Origin, Uri), Error> {
    let uri = parse_url(text)?;
    let origin = Origin::of(&uri)?;
    let has_user = uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    if uri
        .path_and_query()
        .is_some_and(|path| path.as_str() != "/")
        || has_user
    {
        return Err(setting_error(format!(
            "'{text}' must have a scheme, a host and a port only: the paths are those of the methods"
        )));
    }
    Ok((origin, uri))
}

impl fmt::Debug for ChannelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelBuilder")
            .field("uris", &self.uris)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

const USER_AGENT: &str = concat!("grpc-rust-courser/", env!("CARGO_PKG_VERSION"));
/// The shortest time that other implementations allow for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time after which other implementations close connections without calls.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const REFRESH: Duration = Duration::from_secs(30);
/// Restarts take seconds, and calls in between mostly come more often.
const PROBE_AFTER: Duration = Duration::from_secs(5);
