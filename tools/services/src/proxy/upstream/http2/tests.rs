//! The upstream server here is scripted: its frames are written by hand.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http_body_util::BodyExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::body::boxed;

#[derive(Clone, Debug)]
struct RawFrame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const REFUSED_STREAM: u32 = 7;

/// `:status: 200`.
const OK: &[u8] = &[0x88];

/// A connection of the scripted server.
struct Peer {
    /// The number of the connection, from 0.
    number: usize,
    frames: mpsc::UnboundedReceiver<RawFrame>,
    out: OwnedWriteHalf,
}

impl Peer {
    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        let _ = self.out.write_all(&bytes).await;
    }

    async fn settings(&mut self, max_streams: u32) {
        let mut payload = vec![0, 3];
        payload.extend(max_streams.to_be_bytes());
        self.send(SETTINGS, 0, 0, &payload).await;
    }

    async fn reset(&mut self, stream: u32, code: u32) {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes()).await;
    }

    async fn go_away(&mut self, last: u32) {
        let payload = [last.to_be_bytes(), 0_u32.to_be_bytes()].concat();
        self.send(GOAWAY, 0, 0, &payload).await;
    }

    async fn respond(&mut self, stream: u32) {
        let flags = END_HEADERS | END_STREAM;
        self.send(HEADERS, flags, stream, OK).await;
    }

    /// Returns the stream of the next request and its content, or `None` at the end of the connection.
    async fn request(&mut self) -> Option<(u32, Vec<u8>)> {
        let mut content = Vec::new();
        loop {
            let frame = self.frames.recv().await?;
            match frame.kind {
                HEADERS => {}
                DATA => content.extend(&frame.payload),
                _ => continue,
            }
            if frame.flags & END_STREAM != 0 {
                return Some((frame.stream, content));
            }
        }
    }
}

/// Starts a server that runs `script` for each connection.
async fn server<F>(script: impl Fn(Peer) -> F + Send + Sync + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            tokio::spawn(script(peer(number, stream)));
        }
    });
    address
}

fn peer(number: usize, stream: TcpStream) -> Peer {
    let (mut read, out) = stream.into_split();
    let (send, frames) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut preface = [0; 24];
        read.read_exact(&mut preface).await.ok()?;
        loop {
            let mut head = [0; 9];
            read.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            read.read_exact(&mut payload).await.ok()?;
            let frame = RawFrame {
                kind: head[3],
                flags: head[4],
                stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
                payload,
            };
            send.send(frame).ok()?;
        }
        #[expect(unreachable_code, reason = "the type of the block")]
        Some(())
    });
    Peer {
        number,
        frames,
        out,
    }
}

type Pool = Arc<Http2<HttpConnector>>;

fn pool(server: SocketAddr, most: usize) -> Pool {
    let wait = Duration::from_secs(10);
    let admission = Arc::new(Admission::new(most, 1000, wait));
    let uri = format!("http://{server}/").parse().expect("a URL");
    let dialer = Dialer::new(HttpConnector::new(), uri, Duration::from_secs(2), most);
    Arc::new(Http2::new(dialer, admission, wait))
}

type Sent = Result<Response<Http2Content<StreamLease<HttpConnector>>>, Failure>;

async fn send(pool: &Pool, method: Method, body: Body) -> Sent {
    let request = Request::builder().method(method).uri("http://a.test/");
    let request = request.body(body).expect("a request");
    let permit = pool.admission.admit(None).await?;
    let mut facts = UpstreamFacts::default();
    let sent = pool.send(request, permit, None, &mut facts);
    within(sent).await
}

/// Sends a request in a task of its own, and waits until it has a stream of the first connection.
async fn begin(pool: &Pool) -> JoinHandle<Sent> {
    let sending = {
        let pool = pool.clone();
        tokio::spawn(async move { send(&pool, Method::GET, Body::empty()).await })
    };
    let has_stream = || {
        let table = pool.table.lock();
        table.connections.first().is_some_and(|it| it.in_use > 0)
    };
    while !has_stream() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sending
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    let limited = tokio::time::timeout(Duration::from_secs(20), work);
    limited.await.expect("in time")
}

async fn cause(pool: &Pool, method: Method, body: Body) -> Cause {
    let failure = send(pool, method, body).await.err();
    failure.expect("a failure").cause
}

/// Responds to each request after 20 ms, and refuses streams above the limit.
async fn limited(mut peer: Peer, limit: usize, refused: Arc<AtomicUsize>) {
    peer.settings(u32::try_from(limit).expect("small")).await;
    let mut open = VecDeque::new();
    loop {
        let due = open.front().map(|(_, due)| *due);
        tokio::select! {
            frame = peer.frames.recv() => match frame {
                None => return,
                Some(frame) if frame.kind == HEADERS && open.len() >= limit => {
                    refused.fetch_add(1, Relaxed);
                    peer.reset(frame.stream, REFUSED_STREAM).await;
                }
                Some(frame) if frame.kind == HEADERS => {
                    open.push_back((frame.stream, Instant::now() + Duration::from_millis(20)));
                }
                Some(_) => {}
            },
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let (stream, _) = open.pop_front().expect("one is due");
                peer.respond(stream).await;
            }
        }
    }
}

/// grpc-go waits for it: a stream of no messages has no end otherwise.
#[tokio::test]
async fn messages_of_grpc_end_in_a_data_frame() {
    let server = server(|mut peer: Peer| async move {
        peer.settings(100).await;
        let mut kinds = Vec::new();
        while let Some(frame) = peer.frames.recv().await {
            if frame.stream == 0 {
                continue;
            }
            kinds.push(frame.kind);
            if frame.flags & END_STREAM != 0 {
                peer.respond(frame.stream).await;
                let expected = match frame.stream {
                    1 => &[HEADERS, DATA][..],
                    _ => &[HEADERS],
                };
                assert_eq!(std::mem::take(&mut kinds), expected);
            }
        }
    });
    let pool = pool(server.await, 1);
    for media_type in [
        "application/grpc+proto",
        "application/grpc-web",
        "text/plain",
    ] {
        let request = Request::post("http://a.test/").header("content-type", media_type);
        let request = request.body(Body::empty()).expect("a request");
        let permit = pool
            .admission
            .admit(None)
            .await
            .unwrap_or_else(|_| panic!("admitted"));
        let mut facts = UpstreamFacts::default();
        let sent = within(pool.send(request, permit, None, &mut facts)).await;
        assert!(sent.is_ok(), "{media_type}");
    }
}

/// RFC 9113 §5.1.2.
#[tokio::test]
async fn further_connections_are_opened_up_to_the_maximum_when_streams_run_out() {
    for (most, limit, expected) in [(3, 5, 3), (1, 5, 1), (20, 5, 8), (2, 100, 1)] {
        let (refused, connections) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (count, of_server) = (connections.clone(), refused.clone());
        let address = server(move |peer| {
            count.fetch_add(1, Relaxed);
            limited(peer, limit, of_server.clone())
        });
        let pool = pool(address.await, most);
        let requests = (0..40).map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { send(&pool, Method::POST, Body::empty()).await })
        });
        for request in requests.collect::<Vec<_>>() {
            let response = request.await.expect("no panic").expect("a response");
            assert_eq!(response.status(), 200);
        }
        let opened = connections.load(Relaxed);
        assert!((1..=expected).contains(&opened), "{opened} of {expected}");
        assert!(opened > 1 || expected == 1);
        assert_eq!(refused.load(Relaxed), 0, "{most} {limit}");
        let table = pool.table.lock();
        assert!(table.connections.iter().all(|it| it.in_use == 0));
    }
}

/// RFC 9113 §8.7.
#[tokio::test]
async fn refused_request_is_repeated_with_its_content() {
    let address = server(|mut peer| async move {
        peer.settings(10).await;
        for attempt in 0.. {
            let Some((stream, content)) = peer.request().await else {
                return;
            };
            assert_eq!(content, b"content");
            match attempt {
                0 | 1 => peer.reset(stream, REFUSED_STREAM).await,
                _ => peer.respond(stream).await,
            }
        }
    });
    let pool = pool(address.await, 1);
    let response = send(&pool, Method::POST, Body::full("content")).await;
    assert_eq!(response.expect("a response").status(), 200);
    assert_eq!(pool.table.lock().connections[0].in_use, 0);
}

/// RFC 9113 §6.8: the server does not process streams above the last one of GOAWAY.
#[tokio::test]
async fn request_above_goaway_is_repeated_on_another_connection() {
    let address = server(|mut peer| async move {
        peer.settings(10).await;
        let (first, _) = peer.request().await.expect("a request");
        if peer.number > 0 {
            peer.respond(first).await;
            // Kept open.
            peer.request().await;
            return;
        }
        let (second, content) = peer.request().await.expect("another one");
        assert_eq!(content, b"content");
        peer.go_away(first).await;
        peer.respond(first).await;
        let _ = second;
        peer.request().await;
    });
    let pool = pool(address.await, 2);
    let first = begin(&pool).await;
    let second = send(&pool, Method::POST, Body::full("content")).await;
    assert_eq!(second.expect("a response").status(), 200);
    let first = first.await.expect("no panic");
    assert_eq!(first.expect("a response").status(), 200);
}

#[tokio::test]
async fn requests_that_may_have_been_processed_are_not_repeated() {
    let requests = Arc::<AtomicUsize>::default();
    let count = requests.clone();
    let address = server(move |mut peer| {
        let count = count.clone();
        async move {
            peer.settings(10).await;
            while let Some((stream, content)) = peer.request().await {
                count.fetch_add(1, Relaxed);
                match content.as_slice() {
                    b"reset" => peer.reset(stream, 2).await,
                    b"close" => return,
                    _ => peer.respond(stream).await,
                }
            }
        }
    });
    let pool = pool(address.await, 1);
    assert!(send(&pool, Method::GET, Body::empty()).await.is_ok());
    let body = || Body::full("reset");
    assert_eq!(
        cause(&pool, Method::PUT, body()).await,
        Cause::UpstreamReset
    );
    let body = || Body::full("close");
    assert_eq!(
        cause(&pool, Method::PUT, body()).await,
        Cause::UpstreamClosed
    );
    assert_eq!(requests.load(Relaxed), 3);
    // The next one takes another connection.
    assert!(send(&pool, Method::GET, Body::empty()).await.is_ok());
}

#[tokio::test]
async fn content_that_is_too_long_to_keep_is_not_repeated() {
    let address = server(|mut peer| async move {
        peer.settings(10).await;
        let mut received = 0;
        while let Some(frame) = peer.frames.recv().await {
            received += frame.payload.len();
            if frame.kind == DATA && received > 60_000 {
                peer.reset(frame.stream, REFUSED_STREAM).await;
            }
        }
    });
    let pool = pool(address.await, 1);
    let pieces = (0..5).map(|_| Ok::<_, io::Error>(http_body::Frame::data(vec![0; 20_000].into())));
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(pieces));
    let cause = cause(&pool, Method::PUT, boxed(body)).await;
    assert_eq!(cause, Cause::UpstreamRefusedStream);
}

/// Limit K354.
#[tokio::test]
async fn request_that_is_always_refused_is_sent_five_times() {
    let requests = Arc::<AtomicUsize>::default();
    let count = requests.clone();
    let address = server(move |mut peer| {
        let count = count.clone();
        async move {
            peer.settings(10).await;
            while let Some((stream, _)) = peer.request().await {
                count.fetch_add(1, Relaxed);
                peer.reset(stream, REFUSED_STREAM).await;
            }
        }
    });
    let pool = pool(address.await, 1);
    let cause = cause(&pool, Method::GET, Body::empty()).await;
    assert_eq!(cause, Cause::UpstreamRefusedStream);
    assert_eq!(requests.load(Relaxed), 5);
}

/// Limit K353.
#[tokio::test]
async fn response_without_a_reader_gets_one_window() {
    let (granted, mut windows) = mpsc::unbounded_channel();
    let address = server(move |mut peer| {
        let granted = granted.clone();
        async move {
            peer.settings(10).await;
            let (mut credit, mut stream) = (65_535, 0);
            while let Some(frame) = peer.frames.recv().await {
                match frame.kind {
                    SETTINGS if frame.flags == 0 => {
                        let mut settings = frame.payload.chunks_exact(6);
                        // SETTINGS_INITIAL_WINDOW_SIZE.
                        let window = settings.rfind(|it| it[..2] == [0, 4]);
                        credit = window.map_or(credit, |it| {
                            u32::from_be_bytes([it[2], it[3], it[4], it[5]])
                        });
                    }
                    HEADERS => stream = frame.stream,
                    // WINDOW_UPDATE of the stream.
                    8 if frame.stream == stream && stream != 0 => {
                        let more = <[u8; 4]>::try_from(&frame.payload[..]);
                        let _ = granted.send(u32::from_be_bytes(more.expect("four bytes")));
                    }
                    _ => {}
                }
                if frame.kind == SETTINGS && frame.flags == 0 {
                    // The client counts with its own window once it is acknowledged.
                    peer.send(SETTINGS, 1, 0, &[]).await;
                }
                if frame.kind == HEADERS {
                    peer.send(HEADERS, END_HEADERS, stream, OK).await;
                    let _ = granted.send(credit);
                    for _ in 0..credit / 16_384 {
                        peer.send(DATA, 0, stream, &[0; 16_384]).await;
                    }
                }
            }
        }
    });
    let pool = pool(address.await, 1);
    let response = send(&pool, Method::GET, Body::empty()).await;
    let mut body = response.expect("a response").into_body();
    assert_eq!(windows.recv().await, Some(STREAM_WINDOW));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(windows.try_recv().is_err(), "credit without a reader");
    let mut taken = 0;
    while taken < STREAM_WINDOW as usize {
        let frame = within(body.frame())
            .await
            .expect("content")
            .expect("content");
        taken += frame.data_ref().map_or(0, Bytes::len);
    }
    assert!(
        within(windows.recv()).await.is_some(),
        "credit for a reader"
    );
}

#[tokio::test]
async fn interim_responses_and_content_arrive() {
    let address = server(|mut peer| async move {
        peer.settings(10).await;
        let (stream, _) = peer.request().await.expect("a request");
        for status in [b"103", b"100", b"102"] {
            let block = [&[0x08, 3][..], status].concat();
            peer.send(HEADERS, END_HEADERS, stream, &block).await;
        }
        peer.send(HEADERS, END_HEADERS, stream, OK).await;
        peer.send(DATA, 0, stream, b"hello").await;
        // A trailer: a literal field `a: b`.
        let flags = END_HEADERS | END_STREAM;
        peer.send(HEADERS, flags, stream, &[0, 1, b'a', 1, b'b'])
            .await;
        peer.request().await;
    });
    let pool = pool(address.await, 1);
    let request = Request::get("http://a.test/").body(Body::empty());
    let permit = pool.admission.admit(None).await.expect("the first");
    let (sender, arrived) = InterimSender::for_tests();
    let mut facts = UpstreamFacts::default();
    let sent = pool.send(
        request.expect("a request"),
        permit,
        Some(sender),
        &mut facts,
    );
    let response = within(sent).await.expect("a response");
    assert_eq!(arrived(), [103, 102]);
    let collected = within(response.into_body().collect())
        .await
        .expect("content");
    assert_eq!(collected.trailers().expect("trailers")["a"], "b");
    assert_eq!(collected.to_bytes(), "hello");
    assert_eq!(pool.table.lock().connections[0].in_use, 0);
}

#[tokio::test]
async fn servers_without_http2_have_their_causes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let one = pool(address, 1);
    let (silent, ()) = tokio::join!(cause(&one, Method::GET, Body::empty()), async {
        let (_stream, _) = listener.accept().await.expect("a connection");
        tokio::time::sleep(Duration::from_secs(3)).await;
    });
    assert_eq!(silent, Cause::UpstreamConnectTimeout);
    let one = pool(address, 1);
    let (other, ()) = tokio::join!(cause(&one, Method::GET, Body::empty()), async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        // Unread bytes would become a reset of the connection.
        let mut preface = [0; 1024];
        let _ = stream.read(&mut preface).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    assert_eq!(other, Cause::UpstreamNotHttp);
    drop(listener);
    let refused = cause(&pool(address, 1), Method::GET, Body::empty()).await;
    assert_eq!(refused, Cause::UpstreamRefused);
}

/// Attack A221.
#[tokio::test]
async fn requests_that_leave_while_they_wait_hold_nothing() {
    let address = server(|mut peer| async move {
        peer.settings(1).await;
        // Responds to nothing.
        while peer.frames.recv().await.is_some() {}
    });
    let pool = pool(address.await, 1);
    pool.admission.set_capacity(1000);
    let first = begin(&pool).await;
    for _ in 0..500 {
        let request = send(&pool, Method::GET, Body::empty());
        let left = tokio::time::timeout(Duration::ZERO, request).await;
        assert!(left.is_err());
    }
    assert!(pool.table.lock().waiting.len() <= MIN_CLEAN);
    first.abort();
    let _ = first.await;
    assert_eq!(pool.admission.stats().admitted, 0);
    assert_eq!(pool.table.lock().connections[0].in_use, 0);
}

/// RFC 9113 §8.6: HTTP/2 has no 101. A final response never follows.
#[tokio::test]
async fn switching_protocols_is_refused_at_once() {
    let address = server(|mut peer| async move {
        peer.settings(10).await;
        let (stream, _) = peer.request().await.expect("a request");
        // `:status: 101` as a literal.
        let status = [0x08, 3, b'1', b'0', b'1'];
        peer.send(HEADERS, END_HEADERS, stream, &status).await;
        // Kept open until the proxy resets the stream.
        while peer.frames.recv().await.is_some() {}
    });
    let pool = pool(address.await, 1);
    let seen = cause(&pool, Method::GET, Body::empty()).await;
    assert_eq!(seen, Cause::UpstreamUnexpectedUpgrade);
    assert_eq!(pool.table.lock().connections[0].in_use, 0);
}
