//! Responses that are complete before their request: the rest of the request is read for a moment.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::post;
use courser::server::Protocol;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::tls;
use super::http2::{HEADERS, RST_STREAM, frame};
use super::raw::{DATA, END_HEADERS, END_STREAM, Http2, VALID, with};
use super::{Running, start_with, within};
use crate::common::until;

/// `/` is answered at once, and the content is never read. Other hosts are answered by the server itself.
fn start() -> Running {
    let app = Router::new()
        .route("/", post(|_: Request| async { "early" }))
        .route("/part", post(part));
    start_with(app, |server| server.only_names(true))
}

/// Reads only the first frame of the content.
async fn part(body: Body) -> &'static str {
    use http_body_util::BodyExt as _;
    let mut body = body;
    let _ = body.frame().await;
    "early"
}

/// RFC 9113 §8.1: clients of Debian 12 lose the response if the stream is reset while they send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_of_a_request_over_http2_is_read() {
    let running = start();
    for (path, host) in [("/", "localhost"), ("/part", "localhost"), ("/", "other")] {
        let mut http2 = Http2::connect(&running).await;
        let mut fields = with(":path", Some(path));
        fields.retain(|field| field.0 != ":authority" && field.0 != ":method");
        fields.extend([(":authority", host), (":method", "POST")]);
        let stream = http2.begin(&fields, END_HEADERS).await;
        http2.write(&frame(DATA, 0, stream, &[0; 10_000])).await;
        // The response arrives while the request is incomplete.
        let outcome = http2.outcome(stream).await;
        let expected = if host == "other" { 421 } else { 200 };
        assert_eq!(outcome.status(), Some(expected), "{path}");
        for _ in 0..10 {
            http2.write(&frame(DATA, 0, stream, &[0; 10_000])).await;
        }
        http2.write(&frame(DATA, END_STREAM, stream, &[0])).await;
        // Then the client repeats nothing, and its next request is answered on the connection.
        let next = http2.begin(VALID, END_HEADERS | END_STREAM).await;
        loop {
            let (kind, _, id, _) = http2.read_frame().await.expect("open");
            assert_ne!((kind, id), (RST_STREAM, stream), "{path}");
            if (kind, id) == (HEADERS, next) {
                break;
            }
        }
    }
}

/// Limit K311.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_of_a_request_over_http2_that_never_arrives_is_refused() {
    let running = start();
    let mut http2 = Http2::connect(&running).await;
    let fields = [with(":method", None), vec![]].concat();
    let fields: Vec<_> = [(":method", "POST")].into_iter().chain(fields).collect();
    let stream = http2.begin(&fields, END_HEADERS).await;
    assert_eq!(http2.outcome(stream).await.status(), Some(200));
    let began = Instant::now();
    loop {
        let (kind, _, id, payload) = http2.read_frame().await.expect("open");
        if (kind, id) == (RST_STREAM, stream) {
            assert_eq!(payload, [0; 4], "NO_ERROR");
            break;
        }
    }
    let waited = began.elapsed();
    assert!(
        waited > Duration::from_secs(4) && waited < Duration::from_secs(9),
        "{waited:?}"
    );
}

/// RFC 9112 §9.3, §9.6: after the rest has arrived, the connection goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_of_http1_goes_on_after_an_early_response() {
    let running = start();
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let mut stream = tls(address, certificate, &[b"http/1.1"])
        .await
        .expect("a server");
    let head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 300000\r\n\r\n";
    for round in 0..2 {
        within(stream.write_all(head)).await.expect("open");
        within(stream.write_all(&[0; 100_000])).await.expect("open");
        within(stream.flush()).await.expect("open");
        let mut response = Vec::new();
        while !response.ends_with(b"early") {
            let byte = within(stream.read_u8()).await.expect("a response");
            response.push(byte);
        }
        assert!(response.starts_with(b"HTTP/1.1 200 "), "round {round}");
        within(stream.write_all(&[0; 200_000])).await.expect("open");
        within(stream.flush()).await.expect("open");
    }
}

/// RFC 9110 §10.1.1: a final response that precedes the content is not followed by 100.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_that_the_client_withholds_is_not_requested() {
    let running = start();
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let mut stream = tls(address, certificate, &[b"http/1.1"])
        .await
        .expect("a server");
    let head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 300\r\n\
                 expect: 100-continue\r\n\r\n";
    within(stream.write_all(head)).await.expect("open");
    within(stream.flush()).await.expect("open");
    let mut response = Vec::new();
    within(stream.read_to_end(&mut response))
        .await
        .expect("closed");
    let response = String::from_utf8_lossy(&response);
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(!response.contains(" 100 "), "{response}");
    until(|| running.handle.stats().of(Protocol::Http1).connections_open == 0).await;
}
