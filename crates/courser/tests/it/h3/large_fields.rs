//! Header sections of tens of kilobytes: within the limits they are served, beyond them only their
//! request fails.

use std::convert::Infallible;

use courser::{TransportConfig, h3};
use futures_util::future::join_all;
use http::{Request, Response, StatusCode};

use super::{full, get, pair, serve, text, within};
use crate::common::{pair_between, until};

/// A request with one cookie of this length.
fn with_cookie(len: usize) -> Request<h3::Empty> {
    let mut request = get("/");
    let value = "c".repeat(len).parse().expect("a value");
    request.headers_mut().insert("cookie", value);
    request
}

/// The lines of a request: GET, https, `/` and an authority.
const REQUEST: &[u8] = b"\xd1\xd7\xc1\x50\x09localhost";
/// The line of a response: `:status` 200.
const RESPONSE: &[u8] = b"\xd9";

/// A HEADERS frame that begins with these lines and whose section has this length, without the dynamic
/// table.
fn frame_of(lines: &[u8], len: usize) -> Vec<u8> {
    // Then a literal name and the length of its value.
    let mut section = [b"\0\0", lines, b"\x21x\x7f"].concat();
    let mut value = len - section.len() - 3 - 127;
    for _ in 0..2 {
        section.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    section.push(u8::try_from(value).expect("a section of less than 2 MiB"));
    section.resize(len, b'v');
    let mut frame = vec![0x01];
    frame.extend(
        u32::try_from(len | 0x8000_0000)
            .expect("30 bits")
            .to_be_bytes(),
    );
    frame.extend(section);
    frame
}

/// Limit K24. Browsers send each cookie in a field line of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sections_of_64_kib_are_served() {
    let (_pair, client) = serve(|request| async move {
        let cookie = request.headers().get("cookie").map_or(0, |it| it.len());
        Response::new(full(format!("{} {cookie}", request.headers().len())))
    })
    .await;
    for len in [12_000, 17_000, 33_000, 65_000] {
        let response = within(client.send(with_cookie(len))).await;
        let seen = text(response.expect("answered")).await;
        assert_eq!(seen, format!("1 {len}"));
    }
    let mut request = get("/");
    for number in 0..180 {
        let value = format!("name-{number}={}", "c".repeat(300));
        let value = value.parse().expect("a value");
        request.headers_mut().append("cookie", value);
    }
    let response = within(client.send(request)).await.expect("answered");
    assert!(
        text(response).await.starts_with("1 5"),
        "one field of more than 50 kB"
    );
}

/// RFC 9114 §4.2.2, RFC 6585 §5. A peer that ignores our settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_sections_are_answered_with_431_on_their_stream() {
    let pair = pair();
    let (raw, server) = pair.connect().await;
    let service = super::boxed(|_: Request<h3::Body>| async move {
        Ok::<_, Infallible>(Response::new(full("fine")))
    });
    crate::common::spawn(h3::serve(server, service).into_future());
    let client = h3::Client::new(raw.clone());
    within(client.settings()).await.expect("settings");
    for len in [66_000, 90_000, 1_000_000] {
        for ends in [true, false] {
            let (mut send, mut receive) = raw.open_bi().await.expect("allowed");
            let frame = frame_of(REQUEST, len);
            let writing = async {
                // The server may stop the stream of a client that does not end.
                let _ = send.write_all(&frame).await;
                if ends {
                    let _ = send.finish();
                }
            };
            let ((), response) = tokio::join!(writing, within(receive.read_to_end(1000)));
            let response = response.expect("a response");
            // HEADERS with an indexed or literal `:status`; the digits are in no table.
            let section = &response[2..2 + usize::from(response[1])];
            assert_eq!(response[0], 0x01, "{response:x?}");
            assert!(section.len() > 2, "{section:x?}");
            let response = within(client.send(with_cookie(65_000))).await;
            let response = response.expect("the connection goes on");
            assert_eq!(text(response).await, "fine", "{len}, ends: {ends}");
        }
    }
    assert!(raw.close_reason().is_none());
    let response = within(client.send(with_cookie(65_600))).await;
    let error = response.expect_err("more than the settings allow");
    assert!(error.to_string().contains("65536"), "{error}");
}

/// A response with too many fields fails alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_responses_end_their_stream() {
    let pair = pair();
    let (client, raw) = pair.connect().await;
    let client = h3::Client::new(client);
    let requests = async {
        for len in [310_000, 1_000_000] {
            let error = client.send(get("/large")).await.expect_err("too large");
            assert_eq!(
                error.code(),
                Some(h3::Code::EXCESSIVE_LOAD),
                "{len}: {error}"
            );
        }
        client.send(get("/")).await.expect("a response").status()
    };
    let responses = async {
        for len in [310_000, 1_000_000] {
            let (mut send, _receive) = raw.accept_bi().await.expect("a request");
            let _ = send.write_all(&frame_of(RESPONSE, len)).await;
            let _ = send.finish();
        }
        let (mut send, _receive) = raw.accept_bi().await.expect("a request");
        send.write_all(b"\x01\x03\0\0\xd9").await.expect("open");
        send.finish().expect("open");
        send
    };
    let (status, _stream) = within(async { tokio::join!(requests, responses) }).await;
    assert_eq!(status, StatusCode::OK);
}

/// Limits K81, K115, K116: parts of sections count for the memory budget while they are incomplete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_large_sections_count_for_the_memory_budget() {
    const STREAMS: u64 = 80;
    const PART: usize = 60_000;
    let pair = pair();
    let (raw, server) = pair.connect().await;
    let service = super::boxed(|_: Request<h3::Body>| async move {
        Ok::<_, Infallible>(Response::new(full("fine")))
    });
    crate::common::spawn(h3::serve(server, service).into_future());
    let before = pair.server.stats().memory_used;
    let frame = frame_of(REQUEST, 65_000);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let (mut send, receive) = within(raw.open_bi()).await.expect("allowed");
        within(send.write_all(&frame[..PART])).await.expect("open");
        streams.push((send, receive));
    }
    let held = || pair.server.stats().memory_used.saturating_sub(before);
    // All of it, but for the last steps of buffers that grow.
    until(|| held() >= STREAMS * PART as u64 * 9 / 10).await;
    // The rest arrives, which releases the credit and the memory.
    for (send, receive) in &mut streams {
        within(send.write_all(&frame[PART..])).await.expect("open");
        send.finish().expect("open");
        let response = within(receive.read_to_end(1000)).await;
        assert!(!response.expect("a response").is_empty());
    }
    until(|| held() < STREAMS * PART as u64 / 10).await;
}

/// Sections that are larger than both windows arrive, many at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_sections_pass_small_windows() {
    let window = 4000;
    let small = TransportConfig {
        receive_window: window,
        receive_window_max: window,
        stream_receive_window: window,
        stream_receive_window_max: window,
        ..TransportConfig::default()
    };
    let pair = pair_between(TransportConfig::default(), small, |config| config);
    let (client, server) = pair.connect().await;
    let service = super::boxed(|_: Request<h3::Body>| async move {
        Ok::<_, Infallible>(Response::new(full("fine")))
    });
    crate::common::spawn(h3::serve(server, service).into_future());
    let client = h3::Client::new(client);
    let requests = (0..20).map(|_| async {
        let response = client.send(with_cookie(20_000)).await.expect("answered");
        assert_eq!(text(response).await, "fine");
    });
    within(join_all(requests)).await;
}
