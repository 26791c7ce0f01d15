//! A server of sessions without a service of HTTP.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use courser_base::Side;
use courser_http3_tokio::{self as h3, ClaimError};
use courser_quic::runtime::{self, JoinHandle};
use courser_quic::{BindError, ConfigError, Endpoint, Identity, Incoming, ServerConfig};
use courser_webtransport::{Closed, Config, Dialect, NotOffered, Protocols};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use tokio::sync::{mpsc, oneshot, watch};

use crate::enable::enable;
use crate::error::SessionEnded;
use crate::incoming::IncomingSession;
use crate::monitor::Monitor;
use crate::session::Session;
use crate::upgrade::upgrade;

/// A server of sessions, for programs without other resources. A server with other resources accepts sessions in its service
/// with [`upgrade`].
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_webtransport_tokio as webtransport; }
/// use courser::{Identity, webtransport};
///
/// # type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// let identity = Identity::dev()?;
/// let mut listener = webtransport::Listener::bind("127.0.0.1:0", &identity)?;
/// let url = format!("https://localhost:{}/chat", listener.local_addr()?.port());
/// tokio::spawn(async move {
///     while let Some(request) = listener.accept().await {
///         if request.uri().path() != "/chat" {
///             request.reject(http::StatusCode::NOT_FOUND);
///             continue;
///         }
///         tokio::spawn(async move {
///             let session = request.accept().await?;
///             let mut send = session.open_uni().await?;
///             send.write_all(b"welcome").await?;
///             send.finish()?;
///             session.closed().await;
///             Result::Ok(())
///         });
///     }
/// });
///
/// let client = webtransport::Client::new().trust_roots([identity.certificate()])?;
/// let session = client.connect(&url).await?;
/// let welcome = session.accept_uni().await?.read_to_end(100).await?;
/// assert_eq!(welcome, b"welcome");
/// session.close(0, "thanks");
/// # Ok(()) }
/// ```
///
/// Dropping it refuses further clients and sessions; those that are open continue.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    requests: mpsc::Receiver<PendingSession>,
    monitor: Monitor,
    drain: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

/// The reason why a [`Listener`] cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is invalid, or its name cannot be resolved.
    #[error("cannot listen: {0}: use an address such as 127.0.0.1:4433 or [::]:443")]
    Address(io::Error),
    /// The certificate cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The socket cannot be opened.
    #[error("cannot listen on UDP {address}: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: BindError,
    },
    /// The extensions of HTTP/3 collide.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

impl Listener {
    /// Listens on the first address of `address`, such as `[::]:443`, with the default [`Config`]: pages of the same host
    /// may open sessions.
    ///
    /// # Errors
    /// Returns a [`ListenError`] if the certificate or the address cannot be used.
    ///
    /// # Panics
    /// Panics outside a runtime.
    #[track_caller]
    pub fn bind(address: impl ToSocketAddrs, identity: &Identity) -> Result<Self, ListenError> {
        Self::bind_with(address, identity, Config::new())
    }

    /// Listens like [`bind`](Self::bind), with other origins, dialects or limits.
    ///
    /// # Errors
    /// The errors of [`bind`](Self::bind).
    ///
    /// # Panics
    /// Panics outside a runtime.
    #[track_caller]
    pub fn bind_with(
        address: impl ToSocketAddrs,
        identity: &Identity,
        config: Config,
    ) -> Result<Self, ListenError> {
        let mut addresses = address.to_socket_addrs().map_err(ListenError::Address)?;
        let address = addresses.next().ok_or_else(|| {
            let error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            ListenError::Address(error)
        })?;
        let server = ServerConfig::with_identity(identity)?.alpn([h3::ALPN]);
        let endpoint = Endpoint::server(server, address);
        let endpoint = endpoint.map_err(|source| ListenError::Socket { address, source })?;
        Self::on(endpoint, config)
    }

    /// Accepts the clients of an endpoint, whose configuration must have the ALPN protocol [`h3::ALPN`].
    ///
    /// # Errors
    /// Returns an error if HTTP/3 cannot be configured.
    ///
    /// # Panics
    /// Panics outside a runtime.
    #[track_caller]
    pub fn on(endpoint: Endpoint, config: Config) -> Result<Self, ListenError> {
        let mut settings = h3::Config::new(Side::Server);
        let monitor = enable(&mut settings, Side::Server, config)?;
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let drain = watch::Sender::new(false);
        let site = Arc::new(Site {
            settings,
            requests: sender,
            drain: drain.subscribe(),
        });
        let accepting = runtime::spawn(accept_all(endpoint.clone(), site));
        Ok(Self {
            endpoint,
            requests,
            monitor,
            drain,
            accepting,
        })
    }

    /// Waits for the next request for a session that has passed all checks. At most 64 wait here, and others at their
    /// clients (limit K671). Returns `None` once the endpoint is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept(&mut self) -> Option<PendingSession> {
        self.requests.recv().await
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Returns the counts of the sessions.
    pub const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Returns the endpoint.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks the clients of all connections to end their sessions, refuses further ones, and closes each connection when its
    /// sessions are over.
    pub fn drain(&self) {
        self.drain.send_replace(true);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What the connections of a listener share.
struct Site {
    settings: h3::Config,
    requests: mpsc::Sender<PendingSession>,
    drain: watch::Receiver<bool>,
}

async fn accept_all(endpoint: Endpoint, site: Arc<Site>) {
    while let Some(incoming) = endpoint.accept().await {
        if *site.drain.borrow() {
            incoming.refuse();
            continue;
        }
        runtime::spawn(serve(incoming, site.clone()));
    }
}

async fn serve(incoming: Incoming, site: Arc<Site>) {
    // A client that does not complete the handshake has no session.
    let Ok(connection) = incoming.await else {
        return;
    };
    let mut drain = site.drain.clone();
    let settings = site.settings.clone();
    let requests = site.requests.clone();
    drop(site);
    let service = tower_service::service(move |request| answer(request, requests.clone()));
    let serving = h3::serve(connection, service).config(settings);
    let serving = serving.drain(async move {
        // The listener was dropped, and sessions continue.
        if drain.wait_for(|is_on| *is_on).await.is_err() {
            std::future::pending().await
        }
    });
    // The sessions know why the connection ends.
    let _ = serving.into_future().await;
}
