//! A client of sessions without a client of HTTP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use courser_base::Side;
use courser_http3_tokio::{self as h3, ClaimError};
use courser_quic::runtime;
use courser_quic::{
    BindError, ClientConfig, ConfigError, Connection, ConnectionError, Endpoint, TransportConfig,
};
use courser_tls::rustls::pki_types::CertificateDer;
use courser_webtransport::{Config, InvalidProtocol, Protocols, SessionRequest};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};

use crate::connect::{ConnectError, connect};
use crate::enable::enable;
use crate::session::Session;

/// Opens sessions, each on a connection of its own, for programs that use nothing else of HTTP.
///
/// It trusts the servers that the operating system trusts, unless [`trust_hashes`](Self::trust_hashes) or
/// [`trust_roots`](Self::trust_roots) is called. [`connect`](crate::connect()) opens sessions on a connection that exists.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_webtransport_tokio as webtransport; }
/// # use courser::webtransport;
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let hash = [0x5a; 32]; // printed by `courser serve`
/// let client = webtransport::Client::new()
///     .trust_hashes([hash])?
///     .protocols(["chat.2", "chat.1"])?;
/// let session = client.connect("https://example.org/chat").await?;
/// println!("{:?} in {}", session.protocol(), session.dialect());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    /// `None` for the trust of the operating system.
    quic: Option<ClientConfig>,
    config: Config,
    headers: HeaderMap,
    protocols: Protocols,
    requires_protocol: bool,
    timeout: Duration,
}

/// The reason why a [`Client`] has not opened a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is invalid, or not one of a session.
    #[error("'{url}' {reason}: use a URL such as https://example.org/chat")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The name of the server has no address.
    #[error("the name '{name}' was not found: {source}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The extensions of HTTP/3 collide.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// No socket can be opened.
    #[error("cannot open a socket: {0}")]
    Socket(#[from] BindError),
    /// The connection was not established.
    #[error("cannot connect to {address}: {source}")]
    Connection {
        /// The last address that was tried.
        address: SocketAddr,
        /// The reason.
        source: ConnectionError,
    },
    /// No session was opened on the connection.
    #[error(transparent)]
    Session(#[from] ConnectError),
    /// The server has not answered in time.
    #[error(
        "no answer within {0:?}: does a server with HTTP/3 run there, and does UDP get through?"
    )]
    TimedOut(Duration),
}

impl Default for Client {
    fn default() -> Self {
        Self {
            quic: None,
            config: Config::new(),
            headers: HeaderMap::new(),
            protocols: Protocols::default(),
            requires_protocol: false,
            timeout: TIMEOUT,
        }
    }
}

impl Client {
    /// Creates a client that trusts what the operating system trusts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts servers by the SHA-256 of their certificate, like
    /// [`ClientConfig::with_certificate_hashes`], and no others.
    ///
    /// # Errors
    /// Returns an error if there are no hashes.
    pub fn trust_hashes(
        self,
        hashes: impl IntoIterator<Item = [u8; 32]>,
    ) -> Result<Self, ConfigError> {
        Ok(self.quic(ours(ClientConfig::with_certificate_hashes(hashes)?)))
    }

    /// Trusts servers whose certificates chain to, or are, these, and no others.
    ///
    /// # Errors
    /// Returns an error if there are no certificates, or one cannot be parsed.
    pub fn trust_roots(
        self,
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, ConfigError> {
        Ok(self.quic(ours(ClientConfig::with_roots(roots)?)))
    }

    /// Sets the configuration of QUIC, with its trust. Its protocols of ALPN are replaced.
    #[must_use]
    pub fn quic(mut self, config: ClientConfig) -> Self {
        self.quic = Some(config.alpn([h3::ALPN]));
        self
    }

    /// Sets dialects and limits.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Offers application protocols, the most preferred one first.
    ///
    /// # Errors
    /// Returns an error for more than 32 names, and for one that is not 1 to 256 printable characters of ASCII.
    pub fn protocols<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, InvalidProtocol> {
        self.protocols = Protocols::new(names)?;
        Ok(self)
    }

    /// Fails with [`ConnectError::WrongProtocol`] if the server chooses no protocol.
    #[must_use]
    pub const fn require_protocol(mut self) -> Self {
        self.requires_protocol = true;
        self
    }

    /// Adds fields to requests, such as `authorization`.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Adds an `Origin` field, which browsers send and other programs need not.
    #[must_use]
    pub fn origin(mut self, origin: HeaderValue) -> Self {
        self.headers.insert(http::header::ORIGIN, origin);
        self
    }

    /// Limits the time to open a session. Default 10 seconds.
    #[must_use]
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Connects to the server of a URL, and opens a session at its path. The addresses of a name are tried in order.
    ///
    /// # Errors
    /// Returns an [`OpenError`] if there is no session.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no session, or one that ends at once.
    ///
    /// # Panics
    /// Panics outside a runtime.
    pub async fn connect(&self, url: &str) -> Result<Session, OpenError> {
        let opening = runtime::timeout(self.timeout, self.open(url));
        let late = |_| OpenError::TimedOut(self.timeout);
        opening.await.map_err(late)?
    }

    async fn open(&self, url: &str) -> Result<Session, OpenError> {
        let uri = parse(url)?;
        let connection = self.connect_to(&uri).await?;
        let mut settings = h3::Config::new(Side::Client);
        enable(&mut settings, Side::Client, self.config.clone())?;
        let http3 = h3::Client::with_config(connection, settings);
        let mut request = SessionRequest::new(uri)
            .headers(self.headers.clone())
            .protocols(self.protocols.clone());
        if self.requires_protocol {
            request = request.require_protocol();
        }
        Ok(connect(&http3, request).await?)
    }

    /// Connects to the first address that answers.
    async fn connect_to(&self, uri: &Uri) -> Result<Connection, OpenError> {
        let quic = match &self.quic {
            Some(quic) => quic.clone(),
            None => ours(ClientConfig::with_platform_verifier()?),
        };
        let host = uri.host().unwrap_or_default();
        let name = host.trim_matches(['[', ']']).to_owned();
        let addresses = resolve(&name, uri.port_u16().unwrap_or(443)).await?;
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut failed = None;
        for address in addresses {
            let endpoint = Endpoint::client(any_of(address))?;
            let connecting = endpoint.connect_with(quic.clone(), address, &name);
            let connecting = connecting.map_err(|_| OpenError::Url {
                url: uri.to_string(),
                reason: "names an address that cannot be reached",
            })?;
            // A name with two addresses, of which one does not answer, must leave time for the other.
            let connected = runtime::timeout(self.timeout / count, connecting).await;
            let connected = connected.unwrap_or(Err(ConnectionError::HandshakeTimedOut));
            match connected {
                Ok(connection) => return Ok(connection),
                Err(source) => failed = Some(OpenError::Connection { address, source }),
            }
        }
        Err(failed.unwrap_or_else(|| {
            let source = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            OpenError::Name { name, source }
        }))
    }
}

/// Adds the settings of connections whose configuration is not the user's.
fn ours(config: ClientConfig) -> ClientConfig {
    let transport = TransportConfig {
        keep_alive_interval: Some(KEEP_ALIVE),
        ..TransportConfig::default()
    };
    config.alpn([h3::ALPN]).transport_config(transport)
}

fn parse(url: &str) -> Result<Uri, OpenError> {
    let wrong = |reason| OpenError::Url {
        url: url.to_owned(),
        reason,
    };
    let uri: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
    if uri.scheme() != Some(&Scheme::HTTPS) {
        return Err(wrong("has not the scheme https"));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(wrong("has no host"));
    }
    Ok(uri)
}

async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, OpenError> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let host = name.to_owned();
    let found = runtime::spawn_blocking(move || {
        let found = (host.as_str(), port).to_socket_addrs()?;
        Ok::<Vec<_>, io::Error>(found.take(MAX_ADDRESSES).collect())
    });
    let found = found
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)));
    found.map_err(|source| OpenError::Name {
        name: name.to_owned(),
        source,
    })
}

/// Returns the wildcard address of the same family.
fn any_of(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Time to open a session.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Less than the idle timeouts of usual servers, because sessions may be silent for long.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;
