//! Rules of RFC 9113 and RFC 7541 that a server of HTTP/2 keeps, tested by frames.

use axum::Router;
use courser::server::Cause;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::tls;
use super::http2::{HEADERS, REQUEST, RST_STREAM, SETTINGS, frame};
use super::raw::{DATA, END_HEADERS, END_STREAM, Http2, Outcome, VALID, hpack, with};
use super::{Running, start, within};

fn app() -> Running {
    start(Router::new().fallback(|| async { "served" }))
}

const PRIORITY: u8 = 2;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 8;

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;

/// Returns the code of the GOAWAY that ends the connection.
async fn code_of(http2: &mut Http2) -> Option<u32> {
    while let Some((kind, _, _, payload)) = http2.read_frame().await {
        if kind == GOAWAY {
            let code = u32::from_be_bytes(payload[4..8].try_into().expect("four bytes"));
            if code != 0 {
                return Some(code);
            }
        }
    }
    None
}

/// A setting in a SETTINGS frame.
fn setting(id: u16, value: u32) -> Vec<u8> {
    let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

/// Frames that are an error of the connection.
struct Case {
    name: &'static str,
    /// The type, flags, stream ID and payload of each frame.
    frames: &'static [(u8, u8, u32, &'static [u8])],
    /// The code that RFC 9113 names.
    code: u32,
}

const fn case(
    name: &'static str,
    code: u32,
    frames: &'static [(u8, u8, u32, &'static [u8])],
) -> Case {
    Case { name, frames, code }
}

const ENDED: u8 = END_STREAM | END_HEADERS;

const ERRORS: &[Case] = &[
    case(
        "frame above the maximum",
        FRAME_SIZE_ERROR,
        &[(DATA, 0, 1, &[0; 16_385])],
    ),
    case(
        "SETTINGS of five bytes",
        FRAME_SIZE_ERROR,
        &[(SETTINGS, 0, 0, &[0; 5])],
    ),
    case(
        "SETTINGS with ACK and payload",
        FRAME_SIZE_ERROR,
        &[(SETTINGS, 1, 0, &[0; 6])],
    ),
    case(
        "SETTINGS on a stream",
        PROTOCOL_ERROR,
        &[(SETTINGS, 0, 1, &[])],
    ),
    case(
        "PING of seven bytes",
        FRAME_SIZE_ERROR,
        &[(PING, 0, 0, &[0; 7])],
    ),
    case(
        "PRIORITY of four bytes",
        FRAME_SIZE_ERROR,
        &[(PRIORITY, 0, 1, &[0; 4])],
    ),
    case(
        "ENABLE_PUSH of 2",
        PROTOCOL_ERROR,
        &[(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2])],
    ),
    case(
        "INITIAL_WINDOW_SIZE",
        FLOW_CONTROL_ERROR,
        &[(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0])],
    ),
    case(
        "MAX_FRAME_SIZE",
        PROTOCOL_ERROR,
        &[(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 100])],
    ),
    case("DATA on stream 0", PROTOCOL_ERROR, &[(DATA, 0, 0, &[0])]),
    case(
        "HEADERS on stream 0",
        PROTOCOL_ERROR,
        &[(HEADERS, ENDED, 0, REQUEST)],
    ),
    case(
        "padding of the whole payload",
        PROTOCOL_ERROR,
        &[(HEADERS, ENDED | PADDED, 1, &[5, 0x82])],
    ),
    case(
        "DATA on an idle stream",
        PROTOCOL_ERROR,
        &[(DATA, 0, 1, &[0])],
    ),
    case(
        "RST_STREAM on an idle stream",
        PROTOCOL_ERROR,
        &[(RST_STREAM, 0, 1, &[0, 0, 0, 8])],
    ),
    case(
        "RST_STREAM on stream 0",
        PROTOCOL_ERROR,
        &[(RST_STREAM, 0, 0, &[0, 0, 0, 8])],
    ),
    case(
        "even stream",
        PROTOCOL_ERROR,
        &[(HEADERS, ENDED, 2, REQUEST)],
    ),
    case(
        "lower stream",
        PROTOCOL_ERROR,
        &[(HEADERS, ENDED, 5, REQUEST), (HEADERS, ENDED, 3, REQUEST)],
    ),
    case(
        "PUSH_PROMISE",
        PROTOCOL_ERROR,
        &[(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])],
    ),
    case(
        "CONTINUATION alone",
        PROTOCOL_ERROR,
        &[(CONTINUATION, END_HEADERS, 1, &[0x82])],
    ),
    case(
        "interrupted block",
        PROTOCOL_ERROR,
        &[(HEADERS, END_STREAM, 1, &[0x82]), (PING, 0, 0, &[0; 8])],
    ),
    case(
        "WINDOW_UPDATE of 0",
        PROTOCOL_ERROR,
        &[(WINDOW_UPDATE, 0, 0, &[0; 4])],
    ),
    case(
        "window above the maximum",
        FLOW_CONTROL_ERROR,
        &[(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])],
    ),
    case(
        "HPACK index 0",
        COMPRESSION_ERROR,
        &[(HEADERS, ENDED, 1, &[0x80])],
    ),
    case(
        "HPACK index beyond the tables",
        COMPRESSION_ERROR,
        &[(HEADERS, ENDED, 1, &[0xbf])],
    ),
    case(
        "HPACK integer that overflows",
        COMPRESSION_ERROR,
        &[(HEADERS, ENDED, 1, &[0xff; 7])],
    ),
    case(
        "HPACK padding of a string",
        COMPRESSION_ERROR,
        &[(HEADERS, ENDED, 1, &[0, 0x81, 0, 0])],
    ),
    case(
        "HPACK size above the setting",
        COMPRESSION_ERROR,
        &[(HEADERS, ENDED, 1, &[0x3f, 0xff, 0xff, 3])],
    ),
    case(
        "HPACK size after a field",
        COMPRESSION_ERROR,
        &[(HEADERS, ENDED, 1, &[0x82, 0x20])],
    ),
];

/// h2 uses PROTOCOL_ERROR where RFC 9113 has a special code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_connection_end_it() {
    let running = app();
    let mut general = 0;
    for Case { name, frames, code } in ERRORS {
        let mut http2 = Http2::connect(&running).await;
        let encode = |it: &(u8, u8, u32, &[u8])| frame(it.0, it.1, it.2, it.3);
        let bytes: Vec<_> = frames.iter().flat_map(encode).collect();
        http2.write(&bytes).await;
        let seen = code_of(&mut http2).await.expect(name);
        assert!([*code, PROTOCOL_ERROR].contains(&seen), "{name}: {seen}");
        general += u32::from(seen != *code);
    }
    assert_eq!(general, 11, "codes that differ from RFC 9113");
}

/// RFC 9113 §3.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_preface_ends_the_connection() {
    let running = app();
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let mut stream = tls(address, certificate, &[b"h2"]).await.expect("a server");
    within(stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"))
        .await
        .expect("open");
    within(stream.flush()).await.expect("open");
    let mut received = Vec::new();
    let _ = within(stream.read_to_end(&mut received)).await;
    assert!(!received.starts_with(b"HTTP/"), "{received:?}");
}

/// RFC 9113 §3.4, §4.1, §5.5, §6.5.3, §6.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_unknown_is_ignored() {
    let running = app();
    let mut http2 = Http2::connect(&running).await;
    let (kind, flags, ..) = http2.read_frame().await.expect("open");
    assert_eq!((kind, flags), (SETTINGS, 0), "the first frame");
    http2.write(&frame(0xfa, 0xff, 1, b"unknown")).await;
    http2.write(&setting(0xfafa, 7)).await;
    http2.write(&frame(PING, 0xfe, 0, b"12345678")).await;
    let (mut acked, mut answered) = (0, false);
    while !answered {
        let (kind, flags, _, payload) = http2.read_frame().await.expect("open");
        acked += u32::from((kind, flags) == (SETTINGS, 1));
        answered = kind == PING && flags == 1 && payload == b"12345678";
    }
    assert_eq!(acked, 2, "each SETTINGS is acknowledged");
    // Undefined flags of HEADERS, and the reserved bit of the stream ID.
    let request = frame(
        HEADERS,
        0xc0 | END_STREAM | END_HEADERS,
        0x8000_0001,
        &hpack(VALID),
    );
    http2.write(&request).await;
    assert_eq!(http2.outcome(1).await.status(), Some(200));
}

/// RFC 9113 §8.1.1: errors of one stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_messages_end_their_stream() {
    let running = app();
    let mut http2 = Http2::connect(&running).await;
    let tunnel = [
        (":method", "CONNECT"),
        (":authority", "a:1"),
        (":path", "/"),
    ];
    for fields in [
        with(":method", None),
        with(":scheme", None),
        with(":path", None),
        with(":path", Some("")),
        [with("x", Some("y")), vec![(":path", "/")]].concat(),
        [VALID, &[(":path", "/")]].concat(),
        with(":status", Some("200")),
        with(":protocol", Some("websocket")),
        with("connection", Some("close")),
        with("keep-alive", Some("1")),
        with("proxy-connection", Some("close")),
        with("transfer-encoding", Some("chunked")),
        with("upgrade", Some("h2c")),
        with("te", Some("gzip")),
        with("Upper", Some("v")),
        with("na me", Some("v")),
        with("na:me", Some("v")),
        with("", Some("v")),
        with("x", Some("a\r\nb")),
        with("x", Some("a\0b")),
        with("x", Some(" a")),
        with(":unknown", Some("v")),
        with(":path", Some("/a b")),
        with(":path", Some("/a#b")),
        with(":authority", Some("local host")),
        tunnel.to_vec(),
    ] {
        let (status, code) = answer_and_reset(&mut http2, &hpack(&fields)).await;
        assert_eq!((status, code), (Some(400), PROTOCOL_ERROR), "{fields:?}");
        assert_eq!(
            http2.exchange(VALID).await.status(),
            Some(200),
            "after {fields:?}"
        );
    }
    let causes = running.handle.stats().requests_by_cause;
    for (cause, expected) in [(Cause::InvalidTarget, 3), (Cause::InvalidHost, 1)] {
        let count = causes.iter().find(|(it, _)| *it == cause);
        assert_eq!(count, Some(&(cause, expected)), "{causes:?}");
    }
    // Content that does not come has no response.
    let outcome = http2.exchange(&with("content-length", Some("1"))).await;
    assert_eq!(outcome, Outcome::Reset(PROTOCOL_ERROR.into()));
    // Less content than announced, trailers without an end, and content after the end.
    for (frames, code) in [
        (vec![(DATA, END_STREAM)], PROTOCOL_ERROR),
        (vec![(HEADERS, END_HEADERS)], PROTOCOL_ERROR),
    ] {
        let mut http2 = Http2::connect(&running).await;
        let fields = [with("content-length", Some("9")), vec![]].concat();
        let stream = http2.begin(&fields, END_HEADERS).await;
        for (kind, flags) in frames {
            let payload: &[u8] = if kind == DATA { b"1" } else { &[] };
            http2.write(&frame(kind, flags, stream, payload)).await;
        }
        loop {
            let (kind, _, id, payload) = http2.read_frame().await.expect("open");
            if (kind, id) == (RST_STREAM, stream) {
                assert_eq!(payload, code.to_be_bytes());
                break;
            }
        }
        assert_eq!(http2.exchange(VALID).await.status(), Some(200));
    }
}

/// RFC 9113 §5.1: frames after the end of a stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_after_the_end_of_a_stream_are_errors() {
    let running = app();
    let fields = with(":method", Some("POST"));
    for (kind, payload) in [(DATA, b"late".to_vec()), (HEADERS, hpack(&fields))] {
        let mut http2 = Http2::connect(&running).await;
        let stream = http2.begin(&fields, END_STREAM | END_HEADERS).await;
        http2.write(&frame(kind, ENDED, stream, &payload)).await;
        loop {
            match http2.read_frame().await.expect("an error") {
                (RST_STREAM, _, id, payload) if id == stream => {
                    assert_eq!(payload, STREAM_CLOSED.to_be_bytes());
                    break;
                }
                (GOAWAY, _, _, payload) if payload[4..8] != [0; 4] => {
                    // h2 has forgotten the stream if its response is complete.
                    let codes = [STREAM_CLOSED, PROTOCOL_ERROR].map(u32::to_be_bytes);
                    assert!(
                        codes.iter().any(|code| payload[4..8] == *code),
                        "{payload:?}"
                    );
                    break;
                }
                _ => {}
            }
        }
    }
}

/// Sends a request and returns the status of its response, and the code with which its stream is reset after it.
async fn answer_and_reset(http2: &mut Http2, block: &[u8]) -> (Option<u16>, u32) {
    let stream = http2.begin_with(block, ENDED).await;
    let status = http2.outcome(stream).await.status();
    loop {
        let (kind, _, id, payload) = http2.read_frame().await.expect("open");
        if (kind, id) == (RST_STREAM, stream) {
            let code = payload[..].try_into().expect("four bytes");
            return (status, u32::from_be_bytes(code));
        }
    }
}

/// RFC 9113 §8.1.1: later requests refer to entries of the dynamic table that malformed ones have inserted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_leave_the_dynamic_table_intact() {
    let running = start(
        Router::new().fallback(|request: axum::extract::Request| async move {
            let header = |name: &str| {
                let value = request.headers().get(name)?.to_str().ok()?;
                Some(format!("{name}={value} "))
            };
            let fields: String = ["good", "bad"].into_iter().filter_map(header).collect();
            format!("{fields}{} {}", request.method(), request.uri())
        }),
    );
    let mut http2 = Http2::connect(&running).await;
    // Entries, each of which becomes 62: `:path: /a?"`, `:authority: localhost`, `Bad: 1`, `good: 2` and `bad: a\0`.
    let malformed = b"\x82\x87\x44\x04/a?\"\x41\x09localhost\x40\x03Bad\x011\x40\x04good\x012\x40\x03bad\x02a\0";
    let (status, _) = answer_and_reset(&mut http2, malformed).await;
    assert_eq!(status, Some(400));
    for (block, expected) in [
        // Path, authority and `good`.
        (
            &b"\x82\x87\xc2\xc1\xbf"[..],
            "good=2 GET https://localhost/a?%22",
        ),
        // The name of `bad` with another value, and that of the path.
        (
            b"\x82\x87\x0f\x33\x02/b\xc1\x0f\x2f\x013",
            "bad=3 GET https://localhost/b",
        ),
        // POST.
        (b"\x83\x87\xc2\xc1", "POST https://localhost/a?%22"),
    ] {
        let stream = http2.begin_with(block, ENDED).await;
        let expected = Outcome::Status(200, expected.to_owned());
        assert_eq!(http2.outcome(stream).await, expected, "{block:x?}");
    }
    for block in [
        // `Bad: 1`, its name with another value, and `bad: a\0`.
        &b"\x82\x87\x84\xc1\xc0"[..],
        b"\x82\x87\x84\xc1\x0f\x31\x01v",
        b"\x82\x87\x84\xc1\xbe",
    ] {
        let (status, _) = answer_and_reset(&mut http2, block).await;
        assert_eq!(status, Some(400), "{block:x?}");
    }
    assert_eq!(http2.exchange(VALID).await.status(), Some(200));
}

/// RFC 9113 §8.3: pseudo-header fields in trailers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_trailers_reset_their_stream() {
    let running = start(Router::new().fallback(|body: String| async { body }));
    let mut http2 = Http2::connect(&running).await;
    for trailers in [
        (":path", "/"),
        (":status", "200"),
        ("Upper", "v"),
        ("connection", "close"),
    ] {
        let stream = http2
            .begin(&with(":method", Some("POST")), END_HEADERS)
            .await;
        http2.write(&frame(DATA, 0, stream, b"content")).await;
        let trailers = frame(HEADERS, ENDED, stream, &hpack(&[trailers]));
        http2.write(&trailers).await;
        let outcome = http2.outcome(stream).await;
        assert_eq!(outcome, Outcome::Reset(PROTOCOL_ERROR.into()));
        assert_eq!(http2.exchange(VALID).await.status(), Some(200));
    }
}
