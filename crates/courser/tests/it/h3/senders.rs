//! Rules of senders, seen by a peer that writes and reads raw streams.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use courser::{Connection, ReadError, ReadToEndError, RecvStream, SendStream, TransportConfig, h3};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio::sync::Notify;

use super::{Pair, full, get, pair, within};
use crate::common::pair_between;

/// `:status: 200` in a HEADERS frame.
const OK: [u8; 5] = [0x01, 0x03, 0x00, 0x00, 0xd9];

/// `GET https://localhost/` in a HEADERS frame.
const GET: [u8; 16] = [
    0x01, 14, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9, b'l', b'o', b'c', b'a', b'l', b'h', b'o',
];

/// Returns the bytes of a whole GET.
fn request() -> Vec<u8> {
    let mut bytes = GET.to_vec();
    bytes[1] = 2 + 3 + 2 + 9;
    bytes.extend_from_slice(b"st");
    bytes
}

/// Creates an HTTP/3 client, and the raw connection of its server with an open control stream.
async fn client() -> (Pair, h3::Client, Connection, SendStream) {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut control = within(server.open_uni()).await.expect("allowed");
    control.write_all(&[0, 4, 0]).await.expect("open");
    (pair, h3::Client::new(client), server, control)
}

/// Creates a server that counts requests, and a raw connection to it.
async fn server() -> (Pair, Connection, Arc<AtomicUsize>, Arc<Notify>) {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let service = super::boxed(move |request: Request<h3::Body>| {
        seen.fetch_add(1, Ordering::SeqCst);
        async move {
            if request.uri().path() == "/" {
                // Nothing of the content is read.
                drop(request);
            }
            Ok::<_, Infallible>(Response::new(full("fine")))
        }
    });
    let leave = Arc::new(Notify::new());
    let leaves = leave.clone();
    let serving = h3::serve(server, service).drain(async move { leaves.notified().await });
    crate::common::spawn(serving.into_future());
    (pair, client, count, leave)
}

/// Returns the types of the frames in `bytes`, whose lengths must be below 64 or 16384.
fn frame_types(mut bytes: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let [kind, first, rest @ ..] = bytes {
        let (len, rest) = match first >> 6 {
            0 => (usize::from(*first), rest),
            1 => (
                usize::from(first & 0x3f) << 8 | usize::from(rest[0]),
                &rest[1..],
            ),
            _ => panic!("a frame of more than 16 KiB"),
        };
        types.push(*kind);
        bytes = &rest[len..];
    }
    types
}

/// RFC 9114 §4.1, §6.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_has_a_stream_that_ends_with_it() {
    let (_pair, client, server, _control) = client().await;
    let answering = crate::common::spawn(async move {
        let mut seen = Vec::new();
        for _ in 0..4 {
            let (mut send, mut receive) = server.accept_bi().await.expect("a request");
            // It returns when the client has closed its side.
            let bytes = receive.read_to_end(10_000).await.expect("a whole request");
            seen.push((send.id().value(), frame_types(&bytes)));
            send.write_all(&OK).await.expect("open");
            send.finish().expect("open");
        }
        (seen, server)
    });
    for number in 0..4 {
        let request = Request::post("https://localhost/").body(full(match number % 2 {
            0 => "",
            _ => "content",
        }));
        let response = within(client.send(request.expect("a request"))).await;
        let response = response.expect("answered");
        within(response.into_body().collect()).await.expect("empty");
    }
    let (seen, _server) = within(answering).await.expect("no panic");
    let streams: Vec<_> = seen.iter().map(|(stream, _)| *stream).collect();
    assert_eq!(streams, [0, 4, 8, 12]);
    for (stream, types) in seen {
        let has_content = stream % 8 == 4;
        let expected: &[u8] = if has_content { &[1, 0] } else { &[1] };
        assert_eq!(types, expected, "HEADERS and DATA on stream {stream}");
    }
}

/// RFC 9114 §4.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_ends_its_stream() {
    let (_pair, client, count, _) = server().await;
    for _ in 0..3 {
        let (mut send, mut receive) = client.open_bi().await.expect("allowed");
        send.write_all(&request()).await.expect("open");
        send.finish().expect("open");
        // It returns when the server has closed its side.
        let bytes = within(receive.read_to_end(10_000)).await.expect("complete");
        assert_eq!(frame_types(&bytes), [1, 0]);
        assert!(bytes.ends_with(b"fine"));
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

/// RFC 9114 §4.1, §4.5: a service cannot end its stream with an interim response, nor switch
/// protocols.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_response_is_never_the_last_one() {
    for status in [100, 101, 103, 199] {
        let pair = pair();
        let (client, server) = pair.connect().await;
        let service = super::boxed(move |_| async move {
            let response = Response::builder()
                .status(status)
                .header("upgrade", "websocket");
            Ok::<_, Infallible>(response.body(full("content")).expect("a response"))
        });
        crate::common::spawn(h3::serve(server, service).into_future());
        let (mut send, mut receive) = client.open_bi().await.expect("allowed");
        send.write_all(&request()).await.expect("open");
        send.finish().expect("open");
        let bytes = within(receive.read_to_end(10_000)).await.expect("complete");
        assert_eq!(frame_types(&bytes), [1], "{status}");
        // `:status: 500` is entry 71 of the static table. Entry 6 names `date`, the only other field.
        let section = &bytes[2..];
        assert!(
            section.starts_with(&[0, 0, 0xff, 71 - 63, 0x56]),
            "{status}"
        );
    }
}

/// Reads `receive` until `len` bytes have arrived.
async fn read(receive: &mut RecvStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    within(receive.read_exact(&mut bytes)).await.expect("open");
    bytes
}

/// RFC 9114 §6.2.1: it neither ends nor is reset, and the peer's is not stopped.
async fn expect_control(
    connection: &Connection,
    ours: &SendStream,
    busy: impl Future<Output = ()>,
) {
    let mut control = within(connection.accept_uni()).await.expect("immediate");
    assert_eq!(read(&mut control, 2).await, [0, 4], "type and SETTINGS");
    busy.await;
    // What has arrived is read; then there is neither an end nor an error.
    loop {
        let mut buffer = [0; 1000];
        tokio::select! {
            biased;
            read = control.read(&mut buffer) => match read {
                Ok(Some(_)) => {}
                end => panic!("the control stream ended: {end:?}"),
            },
            code = ours.stopped() => panic!("our control stream is stopped: {code:?}"),
            () = std::future::ready(()) => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_control_stream_of_a_client_opens_at_once_and_stays() {
    let (_pair, client, server, control) = client().await;
    let busy = async {
        for _ in 0..3 {
            let answering = async {
                let (mut send, _receive) = server.accept_bi().await.expect("a request");
                send.write_all(&OK).await.expect("open");
                send.finish().expect("open");
            };
            let (response, ()) =
                within(async { tokio::join!(client.send(get("/")), answering) }).await;
            response.expect("answered");
        }
    };
    expect_control(&server, &control, busy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_control_stream_of_a_server_opens_at_once_and_stays() {
    let (_pair, client, _, leave) = server().await;
    let mut control = within(client.open_uni()).await.expect("allowed");
    control.write_all(&[0, 4, 0]).await.expect("open");
    let busy = async {
        let (mut send, mut receive) = client.open_bi().await.expect("allowed");
        // The answer comes before the request is complete, and the server goes away meanwhile.
        send.write_all(&request()).await.expect("open");
        let head = read(&mut receive, 1).await;
        assert_eq!(head, [1], "HEADERS");
        leave.notify_one();
    };
    expect_control(&client, &control, busy).await;
}

/// RFC 9114 §4.1.1: clients cancel with H3_REQUEST_CANCELLED, never with H3_REQUEST_REJECTED.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_cancels_with_h3_request_cancelled() {
    let (_pair, client, server, _control) = client().await;
    let body = super::frames(futures_util::stream::pending());
    let request = Request::post("https://localhost/").body(body);
    let sender = client.clone();
    let sending =
        crate::common::spawn(async move { sender.send(request.expect("a request")).await });
    let (send, mut receive) = within(server.accept_bi()).await.expect("a request");
    assert_eq!(read(&mut receive, 1).await, [1], "HEADERS");
    sending.abort();
    let code = within(send.stopped()).await.expect("connected");
    let cancelled = h3::Code::REQUEST_CANCELLED.value();
    assert_eq!(code.map(courser::VarInt::into_inner), Some(cancelled));
    match within(receive.read_to_end(10_000)).await {
        Err(ReadToEndError::Read(ReadError::Reset(code))) => {
            assert_eq!(code.into_inner(), cancelled);
        }
        result => panic!("{result:?}"),
    }
    assert!(client.quic().close_reason().is_none());
}

/// RFC 9114 §4.1: a server that needs no more of a request asks for it to stop without an error, once
/// nothing more has come for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_answer_stops_the_request_without_an_error() {
    let (_pair, client, _, _) = server().await;
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    // The first of a hundred bytes of content, in one write: the answer may stop a second one.
    let begun = [&request()[..], &[0x00, 0x40, 100, 7]].concat();
    send.write_all(&begun).await.expect("open");
    let bytes = within(receive.read_to_end(10_000)).await.expect("complete");
    assert!(bytes.ends_with(b"fine"));
    let code = within(send.stopped()).await.expect("connected");
    let no_error = h3::Code::NO_ERROR.value();
    assert_eq!(code.map(courser::VarInt::into_inner), Some(no_error));
}

/// The beginning of a request with this much content, less than a GiB.
fn upload(len: u32) -> Vec<u8> {
    let len = (0x8000_0000 | len).to_be_bytes();
    [&request()[..], &[0x00], &len].concat()
}

/// Limit K311: clients that are stopped while they send may lose the response, or never end the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_of_a_request_answered_early_is_read() {
    let (_pair, client, _, _) = server().await;
    for len in [3, 100_000, 20_000_000] {
        let (mut send, mut receive) = client.open_bi().await.expect("allowed");
        send.write_all(&upload(len)).await.expect("open");
        let bytes = within(receive.read_to_end(10_000)).await.expect("complete");
        assert!(bytes.ends_with(b"fine"));
        let content = vec![7; len as usize];
        within(send.write_all(&content)).await.expect("not stopped");
        send.finish().expect("not stopped");
        let stopped = within(send.stopped()).await.expect("connected");
        assert_eq!(stopped, None, "{len}: all is received");
    }
}

/// Limit K311: the server does not read an unlimited amount.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_request_answered_early_is_stopped() {
    let (_pair, client, _, _) = server().await;
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    send.write_all(&upload(1 << 29)).await.expect("open");
    let content = vec![7; 1 << 20];
    let error = within(async {
        loop {
            if let Err(error) = send.write_all(&content).await {
                return error;
            }
        }
    })
    .await;
    let no_error = courser::VarInt::from_u64(h3::Code::NO_ERROR.value()).expect("fits");
    assert_eq!(error, courser::WriteError::Stopped(no_error));
    let bytes = within(receive.read_to_end(10_000)).await.expect("complete");
    assert!(bytes.ends_with(b"fine"));
    assert!(client.close_reason().is_none());
}

/// RFC 9114 §5.2, §4.1.1: H3_REQUEST_REJECTED says that the service did not see the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_after_goaway_are_rejected_before_the_service_sees_them() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (count, arrived) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (seen, arrives) = (count.clone(), arrived.clone());
    let service = super::boxed(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        arrives.notify_one();
        std::future::pending()
    });
    let leave = Arc::new(Notify::new());
    let leaves = leave.clone();
    let serving = h3::serve(server, service).drain(async move { leaves.notified().await });
    crate::common::spawn(serving.into_future());
    let (mut first, _answer) = client.open_bi().await.expect("allowed");
    first.write_all(&request()).await.expect("open");
    // It gets no answer, so that the connection stays.
    within(arrived.notified()).await;
    leave.notify_one();
    let mut control = within(client.accept_uni()).await.expect("a control stream");
    let mut bytes = Vec::new();
    // GOAWAY with 2^62 - 4, then with the next request.
    while !bytes.ends_with(&[0x07, 0x01, 0x04]) {
        bytes.extend(read(&mut control, 1).await);
    }
    let (mut late, mut refused) = client.open_bi().await.expect("allowed");
    late.write_all(&request()).await.expect("open");
    match within(refused.read_to_end(10_000)).await {
        Err(ReadToEndError::Read(ReadError::Reset(code))) => {
            assert_eq!(code.into_inner(), h3::Code::REQUEST_REJECTED.value());
        }
        result => panic!("{result:?}"),
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// RFC 9114 §5.2: what the client sends after a GOAWAY would have to be sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_opens_no_request_after_goaway() {
    let (_pair, client, server, mut control) = client().await;
    // GOAWAY before the second request.
    control.write_all(&[7, 1, 4]).await.expect("open");
    control.flush();
    while !client.goes_away() {
        tokio::task::yield_now().await;
    }
    for _ in 0..3 {
        let error = within(client.send(get("/"))).await.expect_err("refused");
        assert!(error.is_unprocessed(), "{error}");
    }
    drop(client);
    // The connection ends, and no stream of a request was opened before.
    let streams = within(server.accept_bi()).await;
    assert!(streams.is_err());
}

/// RFC 9114 §6.1, §6.2: what a server grants before it has seen a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_grants_a_hundred_requests_and_three_streams() {
    let (_pair, client, _, _) = server().await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(within(client.open_bi()).await.expect("allowed"));
    }
    let mut control = within(client.open_uni()).await.expect("allowed");
    control.write_all(&[0, 4, 0]).await.expect("open");
    for kind in [0x02, 0x03] {
        let mut send = within(client.open_uni()).await.expect("allowed");
        send.write_all(&[kind]).await.expect("open");
        std::mem::forget(send);
    }
    // A stream that means nothing has credit for 1024 bytes before the server has read any.
    // Its other half stays, because without it the server may stop the request first.
    let (mut send, _receive) = streams.pop().expect("one of them");
    within(send.write_all(&[0x21; 1024])).await.expect("open");
}

/// RFC 9114 §6.2: what a client grants before it has read anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_grants_three_streams_of_a_kilobyte() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    for _ in 0..3 {
        let mut send = within(server.open_uni()).await.expect("allowed");
        // Streams of a type that means nothing.
        send.write_all(&[0x21; 1024]).await.expect("open");
        send.finish().expect("open");
        let end = within(send.stopped()).await.expect("connected");
        assert_eq!(end, None, "all data has arrived, and nothing was read");
    }
    // The streams that such a server needs still fit.
    let mut control = within(server.open_uni()).await.expect("allowed");
    control.write_all(&[0, 4, 0]).await.expect("open");
    let client = h3::Client::new(client);
    let answering = async {
        let (mut send, _receive) = server.accept_bi().await.expect("a request");
        send.write_all(&OK).await.expect("open");
        send.finish().expect("open");
    };
    let (response, ()) = within(async { tokio::join!(client.send(get("/")), answering) }).await;
    response.expect("answered");
}

/// RFC 9114 §5.1: the server lets a connection end whose client is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_keep_idle_connections_alive() {
    let silent = TransportConfig {
        max_idle_timeout: None,
        ..TransportConfig::default()
    };
    let short = TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(2)),
        ..TransportConfig::default()
    };
    let pair = pair_between(silent, short, |config| config);
    let (client, server) = pair.connect().await;
    let quic = server.clone();
    let service = super::boxed(|_| async { Ok::<_, Infallible>(Response::new(full("fine"))) });
    crate::common::spawn(h3::serve(server, service).into_future());
    let client = h3::Client::new(client);
    let response = within(client.send(get("/"))).await.expect("answered");
    assert_eq!(super::text(response).await, "fine");
    let reason = within(quic.closed()).await;
    assert!(reason.is_timeout(), "{reason:?}");
}
