//! Rules of RFC 9113 about streams, windows and the end of connections.

use std::sync::{Arc, Mutex};

use courser_oracle::h2::{self, Frame};
use courser_oracle::{Content, Request, field};

use crate::frames::{
    ACK, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, answer, connect, credit, data, get, number,
    post, receive, receive_until, settings, settle,
};
use crate::serving;

const REFUSED_STREAM: u32 = 7;
const PROTOCOL_ERROR: u32 = 1;
const CANCEL: u32 = 8;
/// The window of a connection and of streams before SETTINGS and WINDOW_UPDATE (RFC 9113 §6.9.2).
const FIRST_WINDOW: usize = 65_535;

/// Waits for this many bytes of DATA on a stream, and checks that no more arrive.
async fn expect_data(connection: &mut h2::Connection, stream: u32, expected: usize) {
    let mut seen = 0;
    while seen < expected {
        seen += data(&[receive(connection).await], stream);
    }
    seen += data(&settle(connection).await, stream);
    assert_eq!(seen, expected);
}

/// RFC 9113 §5.2.1 and §6.9.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_stays_within_the_window_of_its_stream() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    connection
        .send(&[settings(&[(INITIAL_WINDOW_SIZE, 10)])])
        .await;
    let stream = connection.open();
    connection.send(&get("/100", stream)).await;
    expect_data(&mut connection, stream, 10).await;
    // Other frames do not wait.
    let other = connection.open();
    connection.send(&get("/0", other)).await;
    receive_until(&mut connection, h2::HEADERS, other).await;
    // The window becomes -7, and 0 with this credit.
    let lower = settings(&[(INITIAL_WINDOW_SIZE, 3)]);
    connection.send(&[lower, credit(stream, 7)]).await;
    expect_data(&mut connection, stream, 0).await;
    connection.send(&[credit(stream, 5)]).await;
    expect_data(&mut connection, stream, 5).await;
    let higher = settings(&[(INITIAL_WINDOW_SIZE, 8)]);
    connection.send(&[higher]).await;
    expect_data(&mut connection, stream, 5).await;
    connection.send(&[credit(stream, 1000)]).await;
    expect_data(&mut connection, stream, 80).await;
}

/// RFC 9113 §5.2.1: DATA of all streams shares the window of the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_stays_within_the_window_of_the_connection() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    let large = settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)]);
    connection.send(&[large]).await;
    let stream = connection.open();
    connection.send(&get("/100000", stream)).await;
    expect_data(&mut connection, stream, FIRST_WINDOW).await;
    let other = connection.open();
    connection.send(&get("/10", other)).await;
    let frames = receive_until(&mut connection, h2::HEADERS, other).await;
    assert_eq!(data(&frames, other), 0);
    let mut seen = settle(&mut connection).await;
    assert_eq!(data(&seen, stream) + data(&seen, other), 0);
    connection.send(&[credit(0, 100)]).await;
    while data(&seen, stream) + data(&seen, other) < 100 {
        seen.push(receive(&mut connection).await);
    }
    seen.extend(settle(&mut connection).await);
    assert_eq!(data(&seen, stream) + data(&seen, other), 100);
}

/// RFC 9113 §5.1, §5.2.2: the client has sent these frames before it knew of the reset.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_behind_a_reset_are_ignored_and_counted() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    let credits = |frames: &[Frame]| -> usize {
        let updates = frames
            .iter()
            .filter(|frame| frame.kind == h2::WINDOW_UPDATE && frame.stream == 0);
        updates
            .map(|frame| number(&frame.payload, 0) as usize)
            .sum()
    };
    let window = FIRST_WINDOW + credits(&settle(&mut connection).await);
    let (mut sent, mut returned) = (0, 0);
    let last = loop {
        let stream = connection.open();
        let malformed = Request::new("POST", "/content").with("connection", "close");
        let mut head = h2::request(&malformed, stream).remove(0);
        head.flags &= !h2::END_STREAM;
        connection.send(&[head]).await;
        let frames = receive_until(&mut connection, h2::RST_STREAM, stream).await;
        let reset = frames.last().expect("a reset");
        assert_eq!(number(&reset.payload, 0), PROTOCOL_ERROR);
        returned += credits(&frames);
        if returned > 0 {
            break stream;
        }
        let piece = Frame::new(h2::DATA, 0, stream, vec![b'x'; 16_384]);
        connection
            .send(&[piece.clone(), piece.clone(), piece])
            .await;
        sent += 3 * 16_384;
        assert!(sent <= window, "no credit for {sent} bytes of {window}");
        returned += credits(&settle(&mut connection).await);
    };
    // A field section behind the reset changes the dynamic table: `x: 1` becomes entry 62.
    let trailers = [0x40, 1, b'x', 1, b'1'];
    let flags = h2::END_STREAM | h2::END_HEADERS;
    connection
        .send(&[Frame::new(h2::HEADERS, flags, last, trailers)])
        .await;
    let stream = connection.open();
    let mut request = get("/fields", stream).remove(0);
    request.payload.push(0x80 | 62);
    connection.send(&[request]).await;
    // The responses before were not decoded, so only entries of the static table are known: 8 is `:status: 200`.
    let frames = receive_until(&mut connection, h2::DATA, stream).await;
    let head = frames
        .iter()
        .find(|frame| frame.kind == h2::HEADERS && frame.stream == stream);
    assert_eq!(head.map(|head| head.payload[0]), Some(0x80 | 8));
    assert_eq!(frames.last().expect("content").payload, b"1");
    // And the rest of the window can be used.
    let upload = Request::new("POST", "/content").content(Content::length("abc"));
    let stream = connection.open();
    connection.send(&h2::request(&upload, stream)).await;
    let frames = receive_until(&mut connection, h2::DATA, stream).await;
    assert_eq!(frames.last().expect("content").payload, b"3");
}

/// RFC 9113 §5.4.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_are_not_answered_with_resets() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    let open = connection.open();
    connection.send(&[post("/content", open)]).await;
    let complete = connection.open();
    connection.send(&get("/0", complete)).await;
    let mut frames = receive_until(&mut connection, h2::HEADERS, complete).await;
    for stream in [open, open, complete] {
        connection.send(&[Frame::reset(stream, CANCEL)]).await;
        frames.extend(settle(&mut connection).await);
    }
    let is_end = |frame: &Frame| matches!(frame.kind, h2::RST_STREAM | h2::GOAWAY);
    assert!(!frames.iter().any(is_end), "{frames:?}");
    let next = connection.open();
    connection.send(&get("/1", next)).await;
    receive_until(&mut connection, h2::DATA, next).await;
}

/// RFC 9113 §5.1.2, §8.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_above_the_limit_are_refused_before_they_are_processed() {
    let processed: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = {
        let processed = processed.clone();
        move |request: http::Request<courser::server::Body>| {
            let target = request.uri().to_string();
            processed.lock().expect("no panic").push(target);
            answer(request)
        }
    };
    let (gateway, _) = serving::start_function(record, |server| server);
    let mut connection = connect(&gateway).await;
    let first = receive(&mut connection).await;
    assert_eq!(first.kind, h2::SETTINGS);
    let mut pairs = first.payload.chunks(6);
    let id = MAX_CONCURRENT_STREAMS.to_be_bytes();
    let limit = pairs.find(|pair| pair[..2] == id).expect("a limit");
    let limit = number(limit, 2);
    let streams: Vec<u32> = (0..limit).map(|_| connection.open()).collect();
    for stream in &streams {
        connection.send(&[post("/content", *stream)]).await;
    }
    let late = connection.open();
    connection.send(&get("/1?late", late)).await;
    let mut frames = receive_until(&mut connection, h2::RST_STREAM, late).await;
    frames.extend(settle(&mut connection).await);
    let resets: Vec<_> = frames
        .iter()
        .filter(|frame| frame.kind == h2::RST_STREAM)
        .map(|frame| (frame.stream, number(&frame.payload, 0)))
        .collect();
    assert_eq!(resets, [(late, REFUSED_STREAM)]);
    for stream in &streams {
        let end = Frame::new(h2::DATA, h2::END_STREAM, *stream, []);
        connection.send(&[end]).await;
        assert_eq!(connection.answer(*stream).await.status(), 200);
    }
    let seen = connection.exchange(&Request::new("GET", "/2?later")).await;
    assert_eq!(seen.status(), 200, "{seen}");
    let processed = processed.lock().expect("no panic");
    assert_eq!(processed.len(), limit as usize + 1);
    let is_late = |target: &String| target.ends_with("?late");
    assert!(!processed.iter().any(is_late), "{processed:?}");
}

/// RFC 9113 §6.8: requests that were on their way when the server began to drain are processed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_announces_the_end_before_it_names_the_last_stream() {
    let (gateway, handle) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    let open = connection.open();
    connection.send(&[post("/content", open)]).await;
    settle(&mut connection).await;
    handle.drain();
    let mut frames = loop {
        // The PING of the server stays without an acknowledgement for now.
        let frame = connection.receive().await.expect("a frame");
        if frame.kind == h2::GOAWAY {
            break vec![frame];
        }
    };
    let late = connection.open();
    connection.send(&get("/1", late)).await;
    frames.extend(receive_until(&mut connection, h2::GOAWAY, 0).await);
    while frames.iter().all(|frame| frame.stream != late) {
        frames.push(receive(&mut connection).await);
    }
    let end = Frame::new(h2::DATA, h2::END_STREAM, open, []);
    connection.send(&[end]).await;
    while let Some(frame) = connection.receive().await {
        frames.push(frame);
    }
    let goaways: Vec<_> = frames
        .iter()
        .filter(|frame| frame.kind == h2::GOAWAY)
        .map(|frame| (number(&frame.payload, 0), number(&frame.payload, 4)))
        .collect();
    assert_eq!(goaways[..2], [(0x7fff_ffff, 0), (late, 0)], "{goaways:?}");
    assert!(
        goaways.is_sorted_by(|one, next| one.0 >= next.0),
        "{goaways:?}"
    );
    for stream in [open, late] {
        let is_complete =
            |frame: &Frame| frame.stream == stream && frame.flags & h2::END_STREAM != 0;
        assert!(
            frames.iter().any(is_complete),
            "stream {stream}: {frames:?}"
        );
    }
}

/// RFC 8441 §3, RFC 9220 §3: neither version announces WebSocket, because no server here accepts it over them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extended_connect_is_not_announced_and_ends_its_stream() {
    const ENABLE_CONNECT_PROTOCOL: [u8; 2] = [0, 8];
    let (gateway, _) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    let stream = connection.open();
    let fields = [
        field(":method", "CONNECT"),
        field(":protocol", "websocket"),
        field(":scheme", "https"),
        field(":authority", "localhost"),
        field(":path", "/1"),
    ];
    connection.send(&h2::headers(stream, &fields, false)).await;
    let frames = receive_until(&mut connection, h2::RST_STREAM, stream).await;
    let announced = frames
        .iter()
        .filter(|frame| frame.kind == h2::SETTINGS && frame.flags & ACK == 0)
        .flat_map(|frame| frame.payload.chunks(6))
        .any(|pair| pair[..2] == ENABLE_CONNECT_PROTOCOL);
    assert!(!announced, "{frames:?}");
    let seen = connection.exchange(&Request::new("GET", "/1")).await;
    assert_eq!(seen.status(), 200, "{seen}");
}
