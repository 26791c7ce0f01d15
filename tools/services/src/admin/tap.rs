//! The trace of a running connection, streamed while it is recorded: `/qlog`.

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

/// Attaches a sink to a connection, and answers with its records as they come (JSON-SEQ). `query` may
/// have `connection=NUMBER`; otherwise the newest connection over HTTP/3 is taken, for which all are looked at.
///
/// The sink is detached when the reader goes. `readers` has a permit for each reader that may still come.
pub(super) fn answer(
    handle: &ServerHandle,
    query: Option<&str>,
    readers: &Arc<Semaphore>,
) -> Response<Body> {
    let wanted = match number(query) {
        Ok(wanted) => wanted,
        Err(reason) => return explained(StatusCode::BAD_REQUEST, reason),
    };
    let Some(peer) = find(handle, wanted) else {
        let reason = "there is no such connection over HTTP/3";
        return explained(StatusCode::NOT_FOUND, reason);
    };
    let Ok(permit) = readers.clone().try_acquire_owned() else {
        let reason = "too many connections are followed at once";
        return explained(StatusCode::SERVICE_UNAVAILABLE, reason);
    };
    let queue = Arc::new(Queue::default());
    let id = peer.original_destination().unwrap_or(ConnectionId::EMPTY);
    let sink = sink(peer.connection_id(), id, Input(queue.clone()));
    if !peer.attach_sink(Box::new(sink)) {
        let reason = "another reader follows this connection, or it is over";
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

/// Returns the client of the wanted connection, or of the newest one over HTTP/3.
fn find(handle: &ServerHandle, wanted: Option<u64>) -> Option<Peer> {
    let over_http3 =
        |it: ConnectionSummary| Some(it.peer).filter(|peer| peer.protocol() == Protocol::Http3);
    if let Some(number) = wanted {
        return handle.connection(number).and_then(over_http3);
    }
    let mut newest = None;
    handle.for_each_connection(|it| newest = over_http3(it).or(newest.take()));
    newest
}

/// Returns the number of the connection in a query.
fn number(query: Option<&str>) -> Result<Option<u64>, &'static str> {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(None);
    };
    let number = query.strip_prefix("connection=");
    let number = number.and_then(|number| number.parse().ok());
    number
        .map(Some)
        .ok_or("the query may be connection=NUMBER, with a number of /status")
}

/// Makes the sink of a connection. The number names it on the page, and the ID in the trace of its client.
fn sink(number: u64, id: ConnectionId, input: Input) -> QlogSink<Input> {
    let header = TraceHeader {
        title: Some(format!("connection {number}")),
        ..TraceHeader::new(id, Side::Server)
    };
    QlogSink::new(input, &header).unbuffered()
}

/// Bytes of records between the sink and the reader.
#[derive(Debug, Default)]
struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    bytes: VecDeque<u8>,
    is_over: bool,
    reader: Option<Waker>,
}

/// The end of a queue that the sink writes to. Never waits: what does not fit is dropped, and the sink
/// marks the gap.
#[derive(Debug)]
struct Input(Arc<Queue>);

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.0.lock();
        if waiting.bytes.len() + bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        waiting.bytes.extend(bytes);
        let reader = waiting.reader.take();
        drop(waiting);
        reader.into_iter().for_each(Waker::wake);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connection is gone, and its sinks with it.
impl Drop for Input {
    fn drop(&mut self) {
        let mut waiting = self.0.0.lock();
        waiting.is_over = true;
        let reader = waiting.reader.take();
        drop(waiting);
        reader.into_iter().for_each(Waker::wake);
    }
}

/// The content of a response: the records of a connection.
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
        let mut waiting = self.queue.0.lock();
        if !waiting.bytes.is_empty() {
            let bytes: Vec<u8> = std::mem::take(&mut waiting.bytes).into();
            return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
        }
        if waiting.is_over {
            return Poll::Ready(None);
        }
        waiting.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The reader has gone.
impl Drop for Records {
    fn drop(&mut self) {
        if !self.queue.0.lock().is_over {
            self.peer.detach_sink();
        }
    }
}

/// The bytes of records that wait for a reader (limit K255): some five thousand packets.
const MOST_BYTES: usize = 1024 * 1024;
/// The connections that are followed at once (limit K255).
pub(super) const MOST_READERS: usize = 4;

#[cfg(test)]
mod tests;
