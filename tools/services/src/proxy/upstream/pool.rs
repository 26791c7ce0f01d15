//! A pool of HTTP/1.1 connections.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{fmt, io};

use courser::server::Cause;
use courser_base::Mutex;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::admission::Permit;
use super::content::Http1Content;
use super::dial::{Dial, Dialer};
use super::socket::{self, ConnectionFacts};
use crate::body::Body;
use crate::proxy::facts::UpstreamFacts;
use crate::proxy::failure::Failure;
use crate::proxy::interim::InterimSender;

/// The HTTP/1.1 connections to one server.
///
/// A request takes the connection that became idle most recently, so that surplus connections age and are
/// closed. hyper-util's pool serves many servers: it hashes the server twice per request and moves the request
/// 14 times, which was a tenth of the cost of a proxied request.
#[derive(Debug)]
pub(in crate::proxy) struct Pool<C> {
    dialer: Dialer<C>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// Sorted by the time at which they became idle, oldest first.
    connections: VecDeque<(Connection, Instant)>,
    /// True while a task closes old connections.
    is_watched: bool,
}

/// A connection that can send requests.
struct Connection {
    sender: SendRequest<Body>,
    facts: Arc<ConnectionFacts>,
}

impl<C: Dial> Pool<C> {
    pub(super) fn new(dialer: Dialer<C>) -> Self {
        Self {
            dialer,
            idle: Mutex::default(),
        }
    }

    pub(super) const fn dialer(&self) -> &Dialer<C> {
        &self.dialer
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
        permit: Permit,
        interim: Option<InterimSender>,
        facts: &mut UpstreamFacts,
    ) -> Result<Response<Http1Content<Lease<C>>>, Failure> {
        // The server may close an idle connection at any time.
        let mut idle = self.take();
        let mut is_repeated = false;
        loop {
            if idle.is_none() && !is_repeated {
                idle = self.take_almost_idle().await;
            }
            let is_fresh = idle.is_none();
            let mut connection = match idle.take() {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            facts.address = connection.facts.address;
            let connecting = if is_fresh {
                connection.facts.connecting
            } else {
                Duration::ZERO
            };
            facts.connecting = Some(connecting);
            let copy = if is_fresh { None } else { repetition(&request) };
            if let Some(interim) = &interim {
                interim.receive(&mut request);
            }
            let received = connection.facts.received();
            let mut failure = match connection.sender.try_send_request(request).await {
                Ok(response) => match copy {
                    // The server was about to close the idle connection (RFC 9110 §15.5.9).
                    Some(copy) if response.status() == StatusCode::REQUEST_TIMEOUT => {
                        request = copy;
                        is_repeated = true;
                        continue;
                    }
                    _ => return Ok(self.lend(connection, permit, response)),
                },
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
                (None, Some(copy))
                    if is_closed_meanwhile(failure.error())
                        && connection.facts.received() == received =>
                {
                    request = copy;
                    is_repeated = true;
                }
                _ => return Err(failed(failure.into_error(), &connection.facts)),
            }
        }
    }

    fn take(&self) -> Option<Connection> {
        // Dropped after the lock is released, because dropping wakes their tasks.
        let mut old = Vec::new();
        self.idle.lock().take(Instant::now(), &mut old)
    }

    /// Returns a connection that is about to become idle, if no other one may be opened: the request whose permit
    /// was returned has just ended, and its connection needs a moment.
    async fn take_almost_idle(&self) -> Option<Connection> {
        if self.dialer.open().count() < self.dialer.most() {
            return None;
        }
        let newest = self.idle.lock().connections.pop_back();
        let (mut connection, _) = newest?;
        let ready = tokio::time::timeout(ALMOST_IDLE, connection.sender.ready()).await;
        matches!(ready, Ok(Ok(()))).then_some(connection)
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        self.make_room();
        let (io, facts) = self.dialer.dial().await?;
        let mut settings = Builder::new();
        settings.max_buf_size(HTTP1_BUFFER).max_headers(MAX_FIELDS);
        let handshake = settings.handshake(TokioIo::new(io)).await;
        let (sender, connection) = handshake.map_err(|error| failed(error, &facts))?;
        // Its errors are reported to its requests.
        tokio::spawn(async move { drop(connection.with_upgrades().await) });
        Ok(Connection { sender, facts })
    }

    /// Closes the oldest idle connection if the maximum of open connections is reached. Requests in progress are
    /// fewer, because each has a permit.
    fn make_room(&self) {
        if self.dialer.open().count() >= self.dialer.most() {
            let oldest = self.idle.lock().connections.pop_front();
            drop(oldest);
        }
    }

    /// Returns the response with a lease that returns the connection to the pool.
    fn lend(
        self: &Arc<Self>,
        connection: Connection,
        permit: Permit,
        response: Response<Incoming>,
    ) -> Response<Http1Content<Lease<C>>> {
        // After an upgrade the connection has another protocol. CONNECT is refused earlier.
        let is_kept = response.status() != StatusCode::SWITCHING_PROTOCOLS;
        let lease = Lease {
            pool: self.clone(),
            connection: is_kept.then_some(connection),
            _permit: permit,
        };
        response.map(|body| match is_kept {
            true => Http1Content::new(body, lease),
            false => Http1Content::upgraded(body, lease),
        })
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        // Dropped after the lock is released, because dropping wakes its task.
        let _surplus;
        let mut idle = self.idle.lock();
        _surplus = idle.put(connection, Instant::now());
        // A response may be dropped on a thread without a runtime. The next one starts the task.
        if !idle.is_watched
            && let Ok(runtime) = Handle::try_current()
        {
            idle.is_watched = true;
            runtime.spawn(close_old(Arc::downgrade(self)));
        }
    }
}

/// Returns the failure of a request for an error of its connection.
fn failed(error: hyper::Error, facts: &ConnectionFacts) -> Failure {
    let cause = if let Some(cause) = Failure::of_content(&error) {
        cause
    } else if error.is_parse_too_large() {
        Cause::UpstreamFieldsTooLarge
    } else if error.is_parse() && facts.is_http1() {
        Cause::UpstreamInvalidResponse
    } else if error.is_parse() {
        Cause::UpstreamNotHttp
    } else if is_reset(&error) {
        Cause::UpstreamReset
    } else {
        Cause::UpstreamClosed
    };
    Failure::new(cause, error)
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
    Some(copy)
}

/// Returns true if the connection ended before the response (RFC 9112 §9.3.1).
fn is_closed_meanwhile(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || is_reset(error)
}

fn is_reset(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|error| error.downcast_ref::<io::Error>());
    io.is_some_and(socket::is_reset)
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
    fn put(&mut self, connection: Connection, now: Instant) -> Option<Connection> {
        self.connections.push_back((connection, now));
        if self.connections.len() <= MAX_IDLE {
            return None;
        }
        self.connections.pop_front().map(|(oldest, _)| oldest)
    }

    /// Returns a connection that can send a request now, and moves those that have been idle for too long to
    /// `old`.
    fn take(&mut self, now: Instant, old: &mut Vec<Connection>) -> Option<Connection> {
        let (mut index, mut examined) = (self.connections.len(), 0);
        while examined < MAX_EXAMINED {
            index = index.checked_sub(1)?;
            let (Connection { sender, .. }, since) = &self.connections[index];
            if now - *since >= POOL_IDLE {
                // All connections before it have been idle for longer.
                old.extend(self.connections.drain(..=index).map(|(it, _)| it));
                return None;
            }
            if sender.is_ready() {
                return self.connections.remove(index).map(|(it, _)| it);
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
    fn take_old(&mut self, now: Instant) -> Vec<Connection> {
        let is_old = |(_, since): &(_, Instant)| now - *since >= POOL_IDLE;
        let count = self.connections.partition_point(is_old);
        let old = self.connections.drain(..count);
        old.map(|(it, _)| it).collect()
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

/// A connection in use by a response, which returns to the pool when this is dropped, and the permit of the
/// request.
pub(in crate::proxy) struct Lease<C: Dial> {
    pool: Arc<Pool<C>>,
    /// `None` after an upgrade.
    connection: Option<Connection>,
    _permit: Permit,
}

impl<C: Dial> Drop for Lease<C> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection);
        }
    }
}

/// Largest number of buffered bytes of a message from the upstream server (limit K118).
const HTTP1_BUFFER: usize = 64 * 1024;

/// Largest number of fields in a response (limit K118). hyper allows 100 otherwise, and applications send more.
const MAX_FIELDS: usize = 1000;

/// Longest wait for a connection that has just received the end of a response.
const ALMOST_IDLE: Duration = Duration::from_millis(50);

/// Shorter than the idle timeouts of common servers, which would otherwise close a connection during a request.
pub(super) const POOL_IDLE: Duration = Duration::from_secs(15);

/// Largest number of idle connections (limit K216).
const MAX_IDLE: usize = 1024;

/// Number of busy connections that a request examines before it opens another one.
const MAX_EXAMINED: usize = 8;

#[cfg(test)]
mod tests;
