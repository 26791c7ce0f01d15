//! `/qlog`: streams the trace of a running connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use courser::server::{ConnectionSummary, Peer, Protocol, ServerHandle};
use courser::{ConnectionId, Side};
use courser_base::Mutex;
use courser_qlog::{QlogSink, TraceHeader};
use http::{Response, StatusCode};
use http_body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::body::{Body, boxed, explained, typed};

/// Attaches a sink to a connection, and responds with its records as they occur (JSON-SEQ). `query` is
/// `connection=NUMBER` or empty; if empty, all connections are examined to find the newest HTTP/3 connection.
///
/// The sink is detached when the reader disconnects. `readers` holds a permit for each further reader.
pub(super) fn answer(
    handle: &ServerHandle,
    query: Option<&str>,
    readers: &Arc<Semaphore>,
) -> Response<Body> {
    let requested = match number(query) {
        Ok(requested) => requested,
        Err(reason) => return explained(StatusCode::BAD_REQUEST, reason),
    };
    let Some(peer) = find(handle, requested) else {
        let reason = "there is no such connection over HTTP/3";
        return explained(StatusCode::NOT_FOUND, reason);
    };
    let Ok(permit) = readers.clone().try_acquire_owned() else {
        let reason = "4 connections are traced already: end one of these traces first";
        return explained(StatusCode::SERVICE_UNAVAILABLE, reason);
    };
    let queue = Arc::new(Queue::default());
    let id = peer.original_destination().unwrap_or(ConnectionId::EMPTY);
    let sink = sink(peer.connection_id(), id, QueueWriter(queue.clone()));
    if !peer.attach_sink(Box::new(sink)) {
        let reason = "another reader traces this connection, or it has ended";
        return explained(StatusCode::CONFLICT, reason);
    }
    let records = Records {
        queue,
        peer,
        _permit: permit,
    };
    let mut response = typed(StatusCode::OK, courser_qlog::SERIALIZATION, Bytes::new());
    *response.body_mut() = boxed(records);
    response
}

/// Returns the client of the connection with this number, or of the newest HTTP/3 connection.
fn find(handle: &ServerHandle, requested: Option<u64>) -> Option<Peer> {
    let over_http3 =
        |it: ConnectionSummary| Some(it.peer).filter(|peer| peer.protocol() == Protocol::Http3);
    if let Some(number) = requested {
        return handle.connection(number).and_then(over_http3);
    }
    let mut newest = None;
    handle.for_each_connection(|it| newest = over_http3(it).or(newest.take()));
    newest
}

/// Parses the connection number from a query.
fn number(query: Option<&str>) -> Result<Option<u64>, &'static str> {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(None);
    };
    let number = query.strip_prefix("connection=");
    let number = number.and_then(|number| number.parse().ok());
    number
        .map(Some)
        .ok_or("the query must be empty or connection=NUMBER, with a number from /status")
}

/// Creates the sink of a connection. The title has the number that the live page displays, and the ID that of
/// the client's trace.
fn sink(number: u64, id: ConnectionId, input: QueueWriter) -> QlogSink<QueueWriter> {
    let header = TraceHeader {
        title: Some(format!("connection {number}")),
        ..TraceHeader::new(id, Side::Server)
    };
    QlogSink::new(input, &header).unbuffered()
}

/// Bytes of records that the reader has not taken yet.
#[derive(Debug, Default)]
struct Queue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    bytes: VecDeque<u8>,
    is_over: bool,
    reader: Option<Waker>,
}

/// The writing end of a queue. Never blocks: records that do not fit are dropped, and the sink marks the gap.
#[derive(Debug)]
struct QueueWriter(Arc<Queue>);

impl Write for QueueWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.0.lock();
        if state.bytes.len() + bytes.len() > MAX_BYTES {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.bytes.extend(bytes);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends the trace, because the connection has dropped its sinks.
impl Drop for QueueWriter {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.is_over = true;
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }
}

/// The body of a response: the records of a connection.
#[derive(Debug)]
struct Records {
    queue: Arc<Queue>,
    peer: Peer,
    _permit: OwnedSemaphorePermit,
}

impl http_body::Body for Records {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.queue.0.lock();
        if !state.bytes.is_empty() {
            let bytes: Vec<u8> = std::mem::take(&mut state.bytes).into();
            return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
        }
        if state.is_over {
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Detaches the sink when the reader disconnects.
impl Drop for Records {
    fn drop(&mut self) {
        if !self.queue.0.lock().is_over {
            self.peer.detach_sink();
        }
    }
}

/// Largest size of the queued records in bytes (limit K255): about five thousand packets.
const MAX_BYTES: usize = 1024 * 1024;
/// Largest number of connections that are traced at once (limit K255).
pub(super) const MAX_READERS: usize = 4;

#[cfg(test)]
mod tests;
