//! The tasks of a connection that do not belong to a request.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use courser_http3::{self as http3, Code, Scope, UniFate};
use courser_quic::hooks::ConnectionHooks;
use courser_quic::{
    EarlyData, ReadError, RecvStream, SendStream, Side, StoppedError, VarInt, runtime,
};

use super::claimed::{ClaimedReceive, ClaimedStream, peek_varint};
use super::failure::var_int;
use super::shared::SharedConnection;

/// Starts the tasks, which end with the connection. A server waits for the client's SETTINGS for
/// `settings_timeout`.
pub(super) fn start(shared: &Arc<SharedConnection>, settings_timeout: Duration) {
    shared.grant_streams();
    runtime::spawn(send(shared.clone()));
    runtime::spawn(receive(Reader::of(shared.clone())));
    if shared.datagrams.is_enabled() {
        runtime::spawn(receive_datagrams(shared.clone()));
    }
    if shared.side().is_client() && shared.quic.early_data() == EarlyData::Offered {
        runtime::spawn(close_if_early_data_is_rejected(shared.clone()));
    }
    match shared.side() {
        Side::Client => runtime::spawn(accept_bidirectional(shared.clone())),
        Side::Server => runtime::spawn(expect_settings(shared.clone(), settings_timeout)),
    };
}

type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send>>;

/// Opens the unidirectional streams of this end and writes to them.
async fn send(shared: Arc<SharedConnection>) {
    let mut stopped: Vec<Stopped> = Vec::new();
    for index in 0..3 {
        let Ok(stream) = shared.quic.open_uni().await else {
            break;
        };
        stopped.push(Box::pin(stream.stopped()));
        shared.set_stream(index, stream);
    }
    let mut closed = pin!(shared.quic.closed());
    let mut next_update = None;
    poll_fn(|cx| {
        shared.write(cx);
        while let Some(wait) = shared.send_updates() {
            let sleep = next_update.get_or_insert_with(|| Box::pin(runtime::sleep(wait)));
            if sleep.as_mut().poll(cx).is_pending() {
                break;
            }
            next_update = None;
        }
        stopped.retain_mut(|stopped| match stopped.as_mut().poll(cx) {
            Poll::Ready(Ok(Some(_))) => {
                let _ = shared.drive(|state| Err::<(), _>(state.http.on_stopped()));
                false
            }
            poll => poll.is_pending(),
        });
        closed.as_mut().poll(cx)
    })
    .await;
    // A GOAWAY that arrived before the end is still processed.
    shared.all_read().await;
    shared.wake_all();
}

/// Reads the peer's unidirectional streams. Most have brought their type with them, and need no task.
async fn receive(reader: Reader) {
    let shared = &reader.0;
    while let Ok(mut stream) = shared.quic.accept_uni().await {
        let read = poll_fn(|cx| Poll::Ready(stream.poll_read_chunk(cx, usize::MAX))).await;
        let stream = match read {
            Poll::Ready(read) => {
                let limit = match &read {
                    // The limit matters to the control stream, and costs a lock.
                    Ok(Some(chunk)) if is_claimed(shared, chunk) => 0,
                    _ => request_limit(shared),
                };
                on_unidirectional(shared, stream, read, limit)
            }
            Poll::Pending => Some(stream),
        };
        if let Some(stream) = stream {
            runtime::spawn(receive_stream(Reader::of(shared.clone()), stream));
        }
    }
}

/// Counts a task that reads or accepts unidirectional streams. Requests of a closed connection wait for all of
/// them.
struct Reader(Arc<SharedConnection>);

impl Reader {
    fn of(shared: Arc<SharedConnection>) -> Self {
        shared.on_reader();
        Self(shared)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.on_reader_over();
    }
}

/// Reads a unidirectional stream of the peer to its end.
#[expect(
    clippy::manual_async_fn,
    reason = "an async function holds its arguments twice, and each connection has several"
)]
fn receive_stream(reader: Reader, mut stream: RecvStream) -> impl Future<Output = ()> + Send {
    async move {
        loop {
            let read = stream.read_chunk(usize::MAX).await;
            let limit = request_limit(&reader.0);
            match on_unidirectional(&reader.0, stream, read, limit) {
                Some(rest) => stream = rest,
                None => return,
            }
        }
    }
}

/// Returns true if a stream that begins with these bytes belongs to an extension.
fn is_claimed(shared: &SharedConnection, first: &[u8]) -> bool {
    let stream_type = peek_varint(first).map(|(stream_type, _)| stream_type);
    let group = stream_type.and_then(|it| shared.extensions().unidirectional(it));
    group.is_some()
}

/// Returns the number of requests to which PRIORITY_UPDATE may refer.
fn request_limit(shared: &SharedConnection) -> u64 {
    match shared.side() {
        Side::Server => shared.quic.granted_requests(),
        Side::Client => 0,
    }
}

/// Processes what was read from a unidirectional stream, while the client may open `limit` requests. Returns the stream if
/// more must be read.
fn on_unidirectional(
    shared: &Arc<SharedConnection>,
    mut stream: RecvStream,
    read: Result<Option<Bytes>, ReadError>,
    limit: u64,
) -> Option<RecvStream> {
    let id = stream.id().value();
    let (chunk, fin) = match read {
        Ok(Some(chunk)) => (chunk, false),
        Ok(None) => (Bytes::new(), true),
        Err(ReadError::Reset(_)) => {
            let now = shared.now();
            // An error has closed the connection.
            let _ = shared.drive(|state| state.http.handle_uni_reset(now, id));
            return None;
        }
        Err(_) => return None,
    };
    let now = shared.now();
    let handled = shared.drive(|state| {
        state.http.set_request_limit(limit);
        state.http.handle_uni(now, id, chunk, fin)
    });
    match handled {
        Ok(UniFate::Read) => return Some(stream),
        Ok(UniFate::Stop(code)) => {
            let _ = stream.stop(var_int(code));
        }
        Ok(UniFate::Claimed {
            stream_type,
            len,
            first,
        }) => shared.on_claimed(ClaimedStream {
            stream_type,
            send: None,
            receive: ClaimedReceive::new(len, first, stream),
            is_in_session: false,
        }),
        Ok(UniFate::Ended) | Err(_) => {}
    }
    None
}

/// Delivers received QUIC datagrams to their requests, those that have arrived in one turn.
async fn receive_datagrams(shared: Arc<SharedConnection>) {
    let mut payloads = Vec::new();
    let mut woken = Vec::new();
    let quic = &shared.quic;
    while let Ok(()) = quic.read_datagrams(&mut payloads, DATAGRAM_BATCH).await {
        if shared.on_datagrams(&mut payloads, &mut woken).is_err() {
            return;
        }
    }
}

/// Largest number of datagrams that are delivered in one turn: those of the transport's queue (K27).
const DATAGRAM_BATCH: usize = 64;

/// Limits the wait for SETTINGS, which must be the first frame (RFC 9114 §6.2.1) but for which no time is
/// specified, because clients could hold idle connections otherwise (A79). The time is measured from the end of
/// the handshake, which has its own limit: a server starts before, and the client's SETTINGS cannot arrive while
/// its handshake packets are lost.
async fn expect_settings(shared: Arc<SharedConnection>, limit: Duration) {
    if shared.quic.authenticated().await.is_err() {
        return;
    }
    if runtime::timeout(limit, shared.peer_settings())
        .await
        .is_err()
    {
        let error = http3::Error {
            code: Code::MISSING_SETTINGS,
            scope: Scope::Connection,
            reason: "SETTINGS did not arrive in time",
        };
        // This closes the connection.
        let _ = shared.drive(|_| Err::<(), _>(error));
    }
}

/// Closes a connection whose early data the server rejects. The HTTP/3 state is lost with the early streams (RFC
/// 9001 §4.6.2), and requests fail as not processed.
async fn close_if_early_data_is_rejected(shared: Arc<SharedConnection>) {
    if let Ok(EarlyData::Rejected) = shared.quic.authenticated().await {
        let code = var_int(Code::NO_ERROR);
        shared.quic.close(code, b"the server rejected early data");
    }
}

/// Default time limit for SETTINGS (limit K52), equal to the idle timeout: on a path that loses a third of all
/// packets they can take more than ten seconds.
pub(super) const SETTINGS_TIMEOUT: Duration = Duration::from_secs(30);

/// Accepts bidirectional streams of a server, which require an extension (RFC 9114 §6.1). Most have brought their
/// first integer with them, and need no task.
async fn accept_bidirectional(shared: Arc<SharedConnection>) {
    while let Ok((send, mut receive)) = shared.quic.accept_bi().await {
        let checked = shared.drive(|state| state.http.check_bidirectional());
        if checked.is_err() {
            return;
        }
        let read = poll_fn(|cx| Poll::Ready(receive.poll_read_chunk(cx, usize::MAX))).await;
        let streams = match read {
            Poll::Ready(read) => on_bidirectional(&shared, (send, receive), read),
            Poll::Pending => Some((send, receive)),
        };
        if let Some((send, receive)) = streams {
            runtime::spawn(receive_bidirectional(shared.clone(), send, receive));
        }
    }
}

/// Reads the first integer of a bidirectional stream of the server.
async fn receive_bidirectional(
    shared: Arc<SharedConnection>,
    mut send: SendStream,
    mut receive: RecvStream,
) {
    loop {
        let read = receive.read_chunk(usize::MAX).await;
        match on_bidirectional(&shared, (send, receive), read) {
            Some(rest) => (send, receive) = rest,
            None => return,
        }
    }
}

/// Processes what was read from a bidirectional stream of the server. Returns the stream if more must be read.
fn on_bidirectional(
    shared: &Arc<SharedConnection>,
    (send, receive): (SendStream, RecvStream),
    read: Result<Option<Bytes>, ReadError>,
) -> Option<(SendStream, RecvStream)> {
    let id = receive.id().value();
    let (chunk, fin) = match read {
        Ok(Some(chunk)) => (chunk, false),
        Ok(None) => (Bytes::new(), true),
        Err(ReadError::Reset(_)) => {
            let now = shared.now();
            let _ = shared.drive(|state| state.http.handle_bidirectional_reset(now, id));
            return None;
        }
        Err(_) => return None,
    };
    let handled = shared.drive(|state| state.http.handle_bidirectional(id, chunk, fin));
    match handled {
        Ok(UniFate::Read) => return Some((send, receive)),
        Ok(UniFate::Claimed {
            stream_type,
            len,
            first,
        }) => shared.on_claimed(ClaimedStream {
            stream_type,
            send: Some(send),
            receive: ClaimedReceive::new(len, first, receive),
            is_in_session: false,
        }),
        Ok(_) | Err(_) => {}
    }
    None
}
