//! A pool of HTTP/1.1 connections.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use courser_base::Mutex;
use http::{Request, Response, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::rt::{Read, Write};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use crate::body::{Body, BoxError};

/// Opens connections to a server.
pub trait Dial: Clone + Send + Sync + 'static {
    /// A byte stream to the server.
    type Io: Read + Write + Unpin + Send + 'static;

    /// Opens a connection to the authority of `server`.
    fn dial(&self, server: Uri) -> impl Future<Output = Result<Self::Io, BoxError>> + Send;
}

impl<S, T> Dial for S
where
    S: Service<Uri, Response = T> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    T: Read + Write + Unpin + Send + 'static,
{
    type Io = T;

    async fn dial(&self, server: Uri) -> Result<T, BoxError> {
        self.clone().oneshot(server).await.map_err(Into::into)
    }
}

/// The HTTP/1.1 connections to one server.
///
/// A request takes the connection that became idle most recently, so that surplus connections age and are
/// closed. hyper-util's pool serves many servers: it hashes the server twice per request and moves the request
/// 14 times, which was a tenth of the cost of a proxied request.
#[derive(Debug)]
pub(in crate::proxy) struct Pool<C> {
    connector: C,
    server: Uri,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// Sorted by the time at which they became idle, oldest first.
    connections: VecDeque<(SendRequest<Body>, Instant)>,
    /// True while a task closes old connections.
    is_watched: bool,
}

impl<C: Dial> Pool<C> {
    pub(super) fn new(connector: C, server: Uri) -> Self {
        Self {
            connector,
            server,
            idle: Mutex::default(),
        }
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
    ) -> Result<Response<Content<C>>, BoxError> {
        // The server may close an idle connection at any time.
        let mut idle = self.take();
        loop {
            let is_fresh = idle.is_none();
            let mut sender = match idle.take() {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            let copy = if is_fresh { None } else { repetition(&request) };
            let mut failure = match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.lend(sender, response)),
                Err(failure) => failure,
            };
            match (failure.take_message(), copy) {
                // The server closed the connection before it took the request.
                (Some(unsent), _) if !is_fresh => {
                    request = unsent;
                    idle = self.take();
                }
                // The server closed the connection while it received the request, which is repeated at most
                // once.
                (None, Some(copy)) if is_closed_meanwhile(failure.error()) => request = copy,
                _ => return Err(failure.into_error().into()),
            }
        }
    }

    fn take(&self) -> Option<SendRequest<Body>> {
        // Dropped after the lock is released, because dropping wakes their tasks.
        let mut old = Vec::new();
        self.idle.lock().take(Instant::now(), &mut old)
    }

    async fn connect(&self) -> Result<SendRequest<Body>, BoxError> {
        let io = self.connector.dial(self.server.clone()).await?;
        let mut settings = Builder::new();
        settings.max_buf_size(HTTP1_BUFFER);
        let (sender, connection) = settings.handshake(io).await?;
        // Its errors are reported to its requests.
        tokio::spawn(async move { drop(connection.with_upgrades().await) });
        Ok(sender)
    }

    /// Returns the response with a lease that returns the connection to the pool.
    fn lend(
        self: &Arc<Self>,
        sender: SendRequest<Body>,
        response: Response<Incoming>,
    ) -> Response<Content<C>> {
        // After an upgrade the connection has another protocol. CONNECT is refused earlier.
        let is_kept = response.status() != StatusCode::SWITCHING_PROTOCOLS;
        let lease = is_kept.then(|| Lease {
            pool: self.clone(),
            sender: Some(sender),
        });
        response.map(|body| Content::new(body, lease))
    }

    fn put(self: &Arc<Self>, sender: SendRequest<Body>) {
        if sender.is_closed() {
            return;
        }
        // Dropped after the lock is released, because dropping wakes its task.
        let _surplus;
        let mut idle = self.idle.lock();
        _surplus = idle.put(sender, Instant::now());
        // A response may be dropped on a thread without a runtime. The next one starts the task.
        if !idle.is_watched
            && let Ok(runtime) = Handle::try_current()
        {
            idle.is_watched = true;
            runtime.spawn(close_old(Arc::downgrade(self)));
        }
    }
}

/// Returns a copy of a request that may be sent twice because it is idempotent and has no content (RFC 9110
/// §9.2.2).
fn repetition(request: &Request<Body>) -> Option<Request<Body>> {
    let is_empty = http_body::Body::is_end_stream(request.body());
    if !request.method().is_idempotent() || !is_empty {
        return None;
    }
    let mut copy = Request::new(Body::empty());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

/// Returns true if the connection ended before the header section of the response (RFC 9112 §9.3.1). Interim
/// responses may have arrived before, and may arrive again.
fn is_closed_meanwhile(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|error| error.downcast_ref::<io::Error>());
    let is_reset = io.is_some_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
        )
    });
    error.is_incomplete_message() || is_reset
}

/// Closes connections that have been idle for too long, until none is idle.
async fn close_old<C>(pool: Weak<Pool<C>>) {
    loop {
        tokio::time::sleep(POOL_IDLE / 2).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut idle = pool.idle.lock();
        let old = idle.take_old(Instant::now());
        idle.is_watched = !idle.connections.is_empty();
        let is_over = !idle.is_watched;
        drop(idle);
        drop(old);
        if is_over {
            return;
        }
    }
}

impl Idle {
    /// Adds a connection, and returns the oldest one if there are too many.
    fn put(&mut self, sender: SendRequest<Body>, now: Instant) -> Option<SendRequest<Body>> {
        self.connections.push_back((sender, now));
        if self.connections.len() <= MAX_IDLE {
            return None;
        }
        self.connections.pop_front().map(|(oldest, _)| oldest)
    }

    /// Returns a connection that can send a request now, and moves those that have been idle for too long to
    /// `old`.
    fn take(
        &mut self,
        now: Instant,
        old: &mut Vec<SendRequest<Body>>,
    ) -> Option<SendRequest<Body>> {
        let (mut index, mut examined) = (self.connections.len(), 0);
        while examined < MAX_EXAMINED {
            index = index.checked_sub(1)?;
            let (sender, since) = &self.connections[index];
            if now - *since >= POOL_IDLE {
                // All connections before it have been idle for longer.
                old.extend(self.connections.drain(..=index).map(|(sender, _)| sender));
                return None;
            }
            if sender.is_ready() {
                return self.connections.remove(index).map(|(sender, _)| sender);
            }
            if sender.is_closed() {
                self.connections.remove(index);
            } else {
                // It still receives the rest of a response that was dropped.
                examined += 1;
            }
        }
        None
    }

    /// Returns the connections that have been idle for too long.
    fn take_old(&mut self, now: Instant) -> Vec<SendRequest<Body>> {
        let is_old = |(_, since): &(_, Instant)| now - *since >= POOL_IDLE;
        let count = self.connections.partition_point(is_old);
        let old = self.connections.drain(..count);
        old.map(|(sender, _)| sender).collect()
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

/// A connection in use by a response, which returns to the pool when this is dropped.
struct Lease<C: Dial> {
    pool: Arc<Pool<C>>,
    sender: Option<SendRequest<Body>>,
}

impl<C: Dial> Drop for Lease<C> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.pool.put(sender);
        }
    }
}

/// The content of a response, with the connection on which it arrives.
pub struct Content<C: Dial> {
    body: Incoming,
    lease: Option<Lease<C>>,
}

impl<C: Dial> Content<C> {
    fn new(body: Incoming, lease: Option<Lease<C>>) -> Self {
        // Without content the connection returns at once.
        let lease = lease.filter(|_| !http_body::Body::is_end_stream(&body));
        Self { body, lease }
    }

    /// Wraps content that arrives on a connection shared with other requests.
    pub(super) fn unpooled(body: Incoming) -> Self {
        Self { body, lease: None }
    }
}

impl<C: Dial> http_body::Body for Content<C> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let is_over = match &polled {
            Poll::Ready(Some(Ok(_))) => http_body::Body::is_end_stream(&self.body),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        if is_over {
            self.lease = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Largest number of buffered bytes of a message from the upstream server (limit K118).
const HTTP1_BUFFER: usize = 64 * 1024;

/// Shorter than the idle timeouts of common servers, which would otherwise close a connection during a request.
pub(super) const POOL_IDLE: Duration = Duration::from_secs(15);

/// Largest number of idle connections (limit K216).
const MAX_IDLE: usize = 1024;

/// Number of busy connections that a request examines before it opens another one.
const MAX_EXAMINED: usize = 8;

#[cfg(test)]
mod tests;
