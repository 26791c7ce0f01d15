//! HTTP/2 connections to the upstream server.

mod upload;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use courser::server::Cause;
use courser_base::Mutex;
use h2::Reason;
use h2::client::{Builder, SendRequest};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, PROXY_AUTHENTICATE, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::upload::Upload;
use super::admission::{Admission, Permit};
use super::content::Http2Content;
use super::dial::{Dial, Dialer};
use super::pool::POOL_IDLE;
use super::socket::{ConnectionFacts, Counted};
use crate::body::Body;
use crate::proxy::facts::UpstreamFacts;
use crate::proxy::failure::Failure;
use crate::proxy::interim::InterimSender;

/// The HTTP/2 connections to one server.
///
/// A request takes a stream of the oldest connection that has one left. When none has, another connection is
/// opened, up to the maximum, and requests wait for a stream in the order of their arrival.
pub(in crate::proxy) struct Http2<C> {
    dialer: Dialer<C>,
    admission: Arc<Admission>,
    longest_wait: Duration,
    table: Mutex<Table>,
}

struct Table {
    /// The connections that take requests, oldest first.
    connections: Vec<Connection>,
    next_id: u64,
    /// Number of connections that are being opened.
    opening: usize,
    /// Number of streams that the next connection is expected to have.
    expected: usize,
    waiting: VecDeque<Waiting>,
    /// The length of `waiting` at which requests that have left are removed.
    clean_at: usize,
}

/// A request that waits for a stream.
type Waiting = oneshot::Sender<Result<Granted, Arc<Failure>>>;

struct Connection {
    id: u64,
    sender: SendRequest<Bytes>,
    facts: Arc<ConnectionFacts>,
    in_use: usize,
    limit: usize,
    idle_since: Instant,
}

/// A stream that a request may open.
struct Granted {
    id: u64,
    sender: SendRequest<Bytes>,
    facts: Arc<ConnectionFacts>,
    /// True for the first request of a connection.
    is_first: bool,
}

/// A stream in use, which is returned when this is dropped, and the permit of the request.
pub(in crate::proxy) struct StreamLease<C: Dial> {
    pool: Arc<Http2<C>>,
    id: u64,
    permit: Option<Permit>,
}

type Handshaken<C> = (
    SendRequest<Bytes>,
    h2::client::Connection<Counted<<C as Dial>::Io>, Bytes>,
    Arc<ConnectionFacts>,
);

impl<C: Dial> Http2<C> {
    pub(super) fn new(
        dialer: Dialer<C>,
        admission: Arc<Admission>,
        longest_wait: Duration,
    ) -> Self {
        Self {
            dialer,
            admission,
            longest_wait,
            table: Mutex::new(Table {
                connections: Vec::new(),
                next_id: 0,
                opening: 0,
                expected: MAX_STREAMS,
                waiting: VecDeque::new(),
                clean_at: MIN_CLEAN,
            }),
        }
    }

    pub(super) const fn dialer(&self) -> &Dialer<C> {
        &self.dialer
    }

    /// Sends a request, and repeats it if the server has certainly not processed it (RFC 9113 §8.7).
    pub(super) async fn send(
        self: &Arc<Self>,
        request: Request<Body>,
        permit: Permit,
        interim: Option<InterimSender>,
        facts: &mut UpstreamFacts,
    ) -> Result<Response<Http2Content<StreamLease<C>>>, Failure> {
        let (mut parts, body) = request.into_parts();
        let is_idempotent = parts.method.is_idempotent();
        prepare(&mut parts, &body);
        let mut upload = Upload::new(body);
        let mut attempt = 0;
        let (response, mut lease) = loop {
            attempt += 1;
            let (granted, lease) = self.stream().await?;
            facts.address = granted.facts.address;
            facts.connecting = Some(match granted.is_first {
                true => granted.facts.connecting,
                false => Duration::ZERO,
            });
            let request = Request::from_parts(parts.clone(), ());
            let sent = exchange(granted.sender, request, &mut upload, interim.as_ref()).await;
            let error = match sent {
                Ok(response) => break (response, lease),
                Err(Unanswered::Content(cause)) => return Err(cause.into()),
                Err(Unanswered::Switched) => return Err(Cause::UpstreamUnexpectedUpgrade.into()),
                Err(Unanswered::Stream(error)) => error,
            };
            let verdict = Verdict::of(&error);
            if verdict.is_connection_lost {
                self.remove(lease.id);
            }
            let is_safe = verdict.is_unprocessed
                || (verdict.is_connection_lost
                    && !granted.is_first
                    && attempt == 1
                    && is_idempotent
                    && !upload.has_content());
            if attempt == MAX_ATTEMPTS || !is_safe || !upload.rewind() {
                return Err(Failure::new(verdict.cause, error));
            }
            drop(lease);
            if verdict.cause == Cause::UpstreamRefusedStream && !verdict.is_connection_lost {
                // Its streams are in use, although this end has seen the ends of some.
                tokio::time::sleep(REFUSED_PAUSE * attempt * attempt).await;
            }
        };
        upload.finish_later();
        lease.permit = Some(permit);
        Ok(received(response, lease))
    }

    /// Waits for a stream.
    async fn stream(self: &Arc<Self>) -> Result<(Granted, StreamLease<C>), Failure> {
        let (granted, opened) = {
            let mut table = self.table.lock();
            if table.waiting.is_empty()
                && let Some(granted) = table.pick()
            {
                drop(table);
                let lease = self.lease(granted.id);
                return Ok((granted, lease));
            }
            let (grant, granted) = oneshot::channel();
            table.wait(grant);
            (granted, table.begin_opening(&self.dialer))
        };
        self.open(opened);
        let longest = self.longest_wait + self.dialer.timeout();
        match tokio::time::timeout(longest, Grant(self, Some(granted))).await {
            Ok(Ok(granted)) => {
                let lease = self.lease(granted.id);
                Ok((granted, lease))
            }
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Cause::UpstreamQueueTimeout.into()),
        }
    }

    fn lease(self: &Arc<Self>, id: u64) -> StreamLease<C> {
        StreamLease {
            pool: self.clone(),
            id,
            permit: None,
        }
    }

    /// Opens connections, each in a task, because other requests may use it if the first one leaves.
    fn open(self: &Arc<Self>, count: usize) {
        for _ in 0..count {
            let pool = self.clone();
            tokio::spawn(async move {
                match pool.connect().await {
                    Ok(connection) => pool.add(connection),
                    Err(failure) => pool.on_failed(failure),
                }
            });
        }
    }

    /// Opens a connection and waits for the SETTINGS of the server, which limit the number of streams.
    async fn connect(&self) -> Result<Handshaken<C>, Failure> {
        let (io, facts) = self.dialer.dial().await?;
        let handshake = async {
            let mut builder = Builder::new();
            builder
                .enable_push(false)
                .initial_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_header_list_size(MAX_HEADER_BYTES)
                .max_send_buffer_size(SEND_BUFFER)
                .initial_max_send_streams(UNKNOWN_LIMIT);
            let (sender, mut connection) = builder.handshake(io).await?;
            std::future::poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
                Poll::Ready(Ok(())) => {
                    let end = io::Error::from(io::ErrorKind::UnexpectedEof);
                    Poll::Ready(Err(HandshakeError::Io(end)))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
                Poll::Pending if connection.max_concurrent_send_streams() != UNKNOWN_LIMIT => {
                    Poll::Ready(Ok(()))
                }
                Poll::Pending => Poll::Pending,
            })
            .await?;
            Ok::<_, HandshakeError>((sender, connection))
        };
        match tokio::time::timeout(self.dialer.timeout(), handshake).await {
            Ok(Ok((sender, connection))) => Ok((sender, connection, facts)),
            Ok(Err(error)) => {
                let cause = match &error {
                    HandshakeError::Http2(error) if !error.is_io() => Cause::UpstreamNotHttp,
                    _ if facts.received() > 0 => Cause::UpstreamNotHttp,
                    _ => Cause::UpstreamClosed,
                };
                Err(Failure::new(cause, error))
            }
            Err(late) => Err(Failure::new(Cause::UpstreamConnectTimeout, late)),
        }
    }

    fn add(self: &Arc<Self>, (sender, connection, facts): Handshaken<C>) {
        let limit = connection.max_concurrent_send_streams();
        let id = {
            let mut table = self.table.lock();
            table.opening -= 1;
            table.expected = limit.min(MAX_STREAMS);
            let id = table.next_id;
            table.next_id += 1;
            table.connections.push(Connection {
                id,
                sender,
                facts,
                in_use: 0,
                limit,
                idle_since: Instant::now(),
            });
            id
        };
        tokio::spawn(drive(connection, Arc::downgrade(self), id));
        self.set_capacity();
        self.advance();
    }

    /// Reports the failure to the waiting requests if there is no connection on which they may be sent.
    fn on_failed(&self, failure: Failure) {
        let mut table = self.table.lock();
        table.opening -= 1;
        if !table.connections.is_empty() || table.opening > 0 {
            return;
        }
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        let failure = Arc::new(failure);
        for grant in waiting {
            let _ = grant.send(Err(failure.clone()));
        }
    }

    fn set_capacity(&self) {
        let expected = self.table.lock().expected;
        let most = self.dialer.most().saturating_mul(expected);
        self.admission.set_capacity(most);
    }

    /// Changes the number of streams that the server allows on a connection.
    fn on_limit(self: &Arc<Self>, id: u64, limit: usize) {
        let mut table = self.table.lock();
        table.expected = limit.min(MAX_STREAMS);
        if let Some(connection) = table.connection(id) {
            connection.limit = limit;
        }
        drop(table);
        self.set_capacity();
        self.advance();
    }

    /// Removes a connection that takes no more requests. It ends with its last stream.
    fn remove(self: &Arc<Self>, id: u64) {
        let removed = self.table.lock().remove(|connection| connection.id == id);
        drop(removed);
        self.advance();
    }

    fn remove_if_idle(&self, id: u64) {
        let now = Instant::now();
        let is_old =
            |it: &Connection| it.id == id && it.in_use == 0 && now - it.idle_since >= POOL_IDLE;
        let removed = self.table.lock().remove(is_old);
        drop(removed);
    }

    fn on_stream_end(self: &Arc<Self>, id: u64) {
        let mut table = self.table.lock();
        if let Some(connection) = table.connection(id) {
            connection.in_use -= 1;
            connection.idle_since = Instant::now();
        }
        let is_awaited = !table.waiting.is_empty();
        drop(table);
        if is_awaited {
            self.advance();
        }
    }

    /// Gives streams to waiting requests, and opens the connections that the others need.
    fn advance(self: &Arc<Self>) {
        loop {
            let mut table = self.table.lock();
            let Some(waiting) = table.first_waiting() else {
                return;
            };
            let Some(granted) = table.pick() else {
                table.waiting.push_front(waiting);
                let opened = table.begin_opening(&self.dialer);
                drop(table);
                return self.open(opened);
            };
            // Sent after the lock is released: the stream of a request that has just left returns at once.
            drop(table);
            if let Err(Ok(granted)) = waiting.send(Ok(granted)) {
                drop(self.lease(granted.id));
            }
        }
    }
}

impl Table {
    fn connection(&mut self, id: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|it| it.id == id)
    }

    fn remove(&mut self, is_unwanted: impl Fn(&Connection) -> bool) -> Option<Connection> {
        let index = self.connections.iter().position(is_unwanted)?;
        Some(self.connections.remove(index))
    }

    /// Takes a stream of the oldest connection that has one left. Connections that take no more requests, for
    /// example after GOAWAY, are removed.
    fn pick(&mut self) -> Option<Granted> {
        let mut cx = Context::from_waker(Waker::noop());
        self.connections
            .retain_mut(|it| !matches!(it.sender.poll_ready(&mut cx), Poll::Ready(Err(_))));
        let has_stream = |it: &&mut Connection| it.in_use < it.limit.min(MAX_STREAMS);
        let connection = self.connections.iter_mut().find(has_stream)?;
        connection.in_use += 1;
        Some(Granted {
            id: connection.id,
            sender: connection.sender.clone(),
            facts: connection.facts.clone(),
            is_first: connection.facts.begin_use(),
        })
    }

    fn wait(&mut self, grant: Waiting) {
        if self.waiting.len() >= self.clean_at {
            self.waiting.retain(|it| !it.is_closed());
            self.clean_at = MIN_CLEAN.max(2 * self.waiting.len());
        }
        self.waiting.push_back(grant);
    }

    fn first_waiting(&mut self) -> Option<Waiting> {
        loop {
            let waiting = self.waiting.pop_front()?;
            if !waiting.is_closed() {
                return Some(waiting);
            }
        }
    }

    /// Returns the number of connections to open for the waiting requests, and counts them as being opened.
    fn begin_opening<C: Dial>(&mut self, dialer: &Dialer<C>) -> usize {
        let needed = self.waiting.len().div_ceil(self.expected.max(1));
        // Connections that take no more requests are open until their last stream ends.
        let open = (self.connections.len() + self.opening).max(dialer.open().count());
        let left = dialer.most().saturating_sub(open);
        let count = needed.saturating_sub(self.opening).min(left);
        self.opening += count;
        count
    }
}

/// The wait for a stream. A stream that was granted and not taken returns to its connection.
struct Grant<'a, C: Dial>(
    &'a Arc<Http2<C>>,
    Option<oneshot::Receiver<Result<Granted, Arc<Failure>>>>,
);

impl<C: Dial> Future for Grant<'_, C> {
    type Output = Result<Granted, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(receiver) = &mut self.1 else {
            return Poll::Pending;
        };
        Pin::new(receiver).poll(cx).map(|granted| {
            self.1 = None;
            match granted {
                Ok(Ok(granted)) => Ok(granted),
                Ok(Err(failure)) => Err(failure.shared()),
                Err(_) => Err(Cause::UpstreamClosed.into()),
            }
        })
    }
}

impl<C: Dial> Drop for Grant<'_, C> {
    fn drop(&mut self) {
        if let Some(receiver) = &mut self.1
            && let Ok(Ok(granted)) = {
                receiver.close();
                receiver.try_recv()
            }
        {
            drop(self.0.lease(granted.id));
        }
    }
}

impl<C: Dial> Drop for StreamLease<C> {
    fn drop(&mut self) {
        self.pool.on_stream_end(self.id);
    }
}

impl<C> fmt::Debug for Http2<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").finish_non_exhaustive()
    }
}

/// The reason why a handshake has failed.
#[derive(Debug, thiserror::Error)]
enum HandshakeError {
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error("the server closed the connection before its SETTINGS: {0}")]
    Io(io::Error),
}

/// The reason why there is no response.
enum Unanswered {
    /// The content of the request could not be received.
    Content(Cause),
    /// The server sent 101, which HTTP/2 does not have (RFC 9113 §8.6).
    Switched,
    Stream(h2::Error),
}

/// The meaning of an error.
struct Verdict {
    cause: Cause,
    /// True if the server has certainly not processed the request.
    is_unprocessed: bool,
    /// True if the connection takes no more requests.
    is_connection_lost: bool,
}

impl Verdict {
    fn of(error: &h2::Error) -> Self {
        let reason = error.reason();
        let is_refused = error.is_reset() && reason == Some(Reason::REFUSED_STREAM);
        // Streams up to the last one of a GOAWAY fail with the end of the connection instead.
        let is_above_last = error.is_go_away() && error.is_remote();
        let cause = if error.is_remote() && (is_refused || is_above_last) {
            Cause::UpstreamRefusedStream
        } else if is_refused {
            // h2 refuses header sections above its limit.
            Cause::UpstreamFieldsTooLarge
        } else if error.is_remote() {
            Cause::UpstreamReset
        } else if error.is_io() {
            Cause::UpstreamClosed
        } else {
            Cause::UpstreamInvalidResponse
        };
        Self {
            cause,
            is_unprocessed: cause == Cause::UpstreamRefusedStream,
            is_connection_lost: error.is_go_away() || error.is_io(),
        }
    }
}

/// Drives a connection to its end, and reports changes of its stream limit.
async fn drive<C: Dial>(
    mut connection: h2::client::Connection<Counted<C::Io>, Bytes>,
    pool: Weak<Http2<C>>,
    id: u64,
) {
    let mut limit = connection.max_concurrent_send_streams();
    let mut check = tokio::time::interval(POOL_IDLE / 2);
    std::future::poll_fn(|cx| {
        let polled = Pin::new(&mut connection).poll(cx).map(drop);
        let now = connection.max_concurrent_send_streams();
        if now != limit {
            limit = now;
            if let Some(pool) = pool.upgrade() {
                pool.on_limit(id, limit);
            }
        }
        while check.poll_tick(cx).is_ready() {
            if let Some(pool) = pool.upgrade() {
                pool.remove_if_idle(id);
            }
        }
        polled
    })
    .await;
    // The socket is closed before another one is opened.
    drop(connection);
    if let Some(pool) = pool.upgrade() {
        pool.remove(id);
    }
}

/// Returns true if the content of a request is messages of gRPC, with any encoding.
fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get(http::header::CONTENT_TYPE);
    let rest = media_type.and_then(|it| it.as_bytes().strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// Sends a request on a stream and waits for its response, while the content of the request is sent.
async fn exchange(
    mut sender: SendRequest<Bytes>,
    request: Request<()>,
    upload: &mut Upload,
    interim: Option<&InterimSender>,
) -> Result<Response<h2::RecvStream>, Unanswered> {
    let is_empty = upload.is_empty();
    // A client of gRPC ends its messages in a DATA frame, and there are servers that wait for that.
    let ends_in_data = is_empty && is_grpc(request.headers());
    let sent = sender.send_request(request, is_empty && !ends_in_data);
    let (mut response, mut stream) = sent.map_err(Unanswered::Stream)?;
    if ends_in_data {
        stream
            .send_data(Bytes::new(), true)
            .map_err(Unanswered::Stream)?;
    }
    upload.begin(stream);
    std::future::poll_fn(|cx| {
        while let Poll::Ready(Some(Ok(arrived))) = response.poll_informational(cx) {
            if arrived.status() == StatusCode::SWITCHING_PROTOCOLS {
                return Poll::Ready(Err(Unanswered::Switched));
            }
            if let Some(interim) = interim {
                interim.push(&arrived);
            }
        }
        if let Poll::Ready(response) = Pin::new(&mut response).poll(cx) {
            return Poll::Ready(response.map_err(Unanswered::Stream));
        }
        match upload.poll_send(cx) {
            Poll::Ready(Err(cause)) => Poll::Ready(Err(Unanswered::Content(cause))),
            _ => Poll::Pending,
        }
    })
    .await
}

/// Wraps the content of a response.
fn received<C: Dial>(
    response: Response<h2::RecvStream>,
    lease: StreamLease<C>,
) -> Response<Http2Content<StreamLease<C>>> {
    let length = response.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    response.map(|stream| Http2Content::new(stream, length, lease))
}

/// Removes fields that HTTP/2 does not have (RFC 9113 §8.2.2), and sets the length of the content if it is known.
fn prepare(parts: &mut http::request::Parts, body: &Body) {
    const UNWANTED: [HeaderName; 4] = [CONNECTION, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE];
    for name in UNWANTED {
        parts.headers.remove(name);
    }
    if parts.headers.get(TE).is_some_and(|te| te != "trailers") {
        parts.headers.remove(TE);
    }
    let length = http_body::Body::size_hint(body).exact();
    let is_expected = !matches!(
        parts.method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE | Method::TRACE
    );
    if let Some(length) = length
        && (length > 0 || is_expected)
        && !parts.headers.contains_key(CONTENT_LENGTH)
    {
        parts
            .headers
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

/// Largest number of streams on one connection (limit K352), whatever the server allows.
const MAX_STREAMS: usize = 100;

/// Credit for the content of one response (limit K353).
const STREAM_WINDOW: u32 = 256 * 1024;
/// Credit of a connection: that of all its streams, so that a client that reads nothing does not stop the others.
#[expect(clippy::cast_possible_truncation, reason = "100 streams")]
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;

/// Largest header section of a response (limit K118).
const MAX_HEADER_BYTES: u32 = 64 * 1024;

/// Largest number of bytes of the content of a request that h2 buffers (limit K118).
const SEND_BUFFER: usize = 64 * 1024;

/// The stream limit before the first SETTINGS frame. No server sets this one.
const UNKNOWN_LIMIT: usize = usize::MAX - 1;

/// Number of times that a request is sent at most (limit K354).
const MAX_ATTEMPTS: u32 = 5;

/// Pause before a refused request is sent again, times the square of the number of attempts.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);

/// Least number of waiting requests at which those that have left are removed.
const MIN_CLEAN: usize = 64;

#[cfg(test)]
mod tests;
