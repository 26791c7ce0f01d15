//! A server of sessions without a service of HTTP.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::Side;
use courser_http3_tokio::{self as h3, ClaimError};
use courser_quic::runtime::{self, JoinHandle};
use courser_quic::{BindError, ConfigError, Endpoint, Identity, Incoming, ServerConfig};
use courser_webtransport::{Closed, Config, Dialect, NotOffered, Protocols};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use tokio::sync::{mpsc, oneshot, watch};
use tower_service::Service;

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
    let service = Answers(site.requests.clone());
    drop(site);
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

/// The service of all connections, which passes requests to the listener.
#[derive(Clone, Debug)]
struct Answers(mpsc::Sender<PendingSession>);

type Answering = Pin<Box<dyn Future<Output = Result<Response<h3::Empty>, Infallible>> + Send>>;

impl Service<Request<h3::Body>> for Answers {
    type Response = Response<h3::Empty>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<h3::Body>) -> Answering {
        let upgrade = upgrade(&mut request);
        let requests = self.0.clone();
        Box::pin(async move {
            let incoming = match upgrade.check().await {
                Ok(incoming) => incoming,
                Err(response) => return Ok(response),
            };
            let (answer, answered) = oneshot::channel();
            // The listener or the request may be dropped, and then nothing answers.
            let _ = requests.send(PendingSession { incoming, answer }).await;
            let unavailable = || {
                let mut response = Response::new(h3::Empty);
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
            };
            Ok(answered.await.unwrap_or_else(|_| unavailable()))
        })
    }
}

/// A request for a session at a [`Listener`]. Dropping it refuses the session with 503.
#[derive(Debug)]
#[must_use = "the session is refused when this is dropped"]
pub struct PendingSession {
    incoming: IncomingSession,
    answer: oneshot::Sender<Response<h3::Empty>>,
}

impl PendingSession {
    /// Returns the URI of the request, with the path of the resource.
    pub fn uri(&self) -> &Uri {
        self.incoming.uri()
    }

    /// Returns the fields of the request.
    pub fn headers(&self) -> &HeaderMap {
        self.incoming.headers()
    }

    /// Returns the origin of the page that requests the session, if there is one. It is allowed.
    pub const fn origin(&self) -> Option<&HeaderValue> {
        self.incoming.origin()
    }

    /// Returns the application protocols that the client offers, empty if it offers none.
    pub const fn protocols(&self) -> &Protocols {
        self.incoming.protocols()
    }

    /// Returns the dialect of the connection.
    pub const fn dialect(&self) -> Dialect {
        self.incoming.dialect()
    }

    /// Returns the current address of the client.
    pub fn remote_address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Chooses an application protocol.
    ///
    /// # Errors
    /// Returns an error for a protocol that the client has not offered.
    pub fn protocol(mut self, protocol: &str) -> Result<Self, NotOffered> {
        self.incoming.choose(protocol)?;
        Ok(self)
    }

    /// Accepts the session.
    ///
    /// # Errors
    /// Returns an error if the client has given up meanwhile.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready closes the session.
    pub async fn accept(self) -> Result<Session, SessionEnded> {
        let (sender, opened) = oneshot::channel();
        let response = self.incoming.accept(|session| async move {
            // The caller may be gone.
            let _ = sender.send(session);
        });
        let _ = self.answer.send(response);
        let lost = |_| SessionEnded(Closed::ConnectionLost);
        opened.await.map_err(lost)
    }

    /// Refuses the session with this status.
    pub fn reject(self, status: StatusCode) {
        // The client may be gone.
        let _ = self.answer.send(self.incoming.refuse(status));
    }
}

/// Requests that wait for the application (limit K671).
const MAX_WAITING: usize = 64;
