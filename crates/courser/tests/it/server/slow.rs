//! Clients that send or read very slowly.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use bytes::Bytes;
use courser::server::{BodyRate, Limits, Protocol, ReadRate};
use courser::{ClientConfig, Endpoint, TransportConfig, h3};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::client::{BoxBody, Client, request, text, tls};
use super::{Running, start_with, within};
use crate::common::until;

/// Returns the number of bytes received, or the error.
async fn count(body: Body) -> String {
    match body.collect().await {
        Ok(content) => format!("{} bytes", content.to_bytes().len()),
        Err(error) => error.to_string(),
    }
}

fn start(change: impl FnOnce(&mut Limits)) -> Running {
    let app = Router::new()
        .route("/count", post(count).put(count))
        .route("/small", get(|| async { "few bytes" }))
        .route(
            "/events",
            get(|| async { Body::new(drops(12, Duration::from_millis(50))) }),
        )
        .route("/large", get(|| async { vec![7; 1_000_000] }));
    let mut limits = Limits::default();
    change(&mut limits);
    start_with(app, |server| server.limits(limits))
}

/// Returns a body of so many bytes, one at a time and so far apart.
fn drops(count: u32, apart: Duration) -> BoxBody {
    let drops = futures_util::stream::unfold(0, move |sent| async move {
        if sent == count {
            return None;
        }
        tokio::time::sleep(apart).await;
        Some((Ok(Frame::data(Bytes::from_static(b"x"))), sent + 1))
    });
    StreamBody::new(drops).boxed_unsync()
}

const RATE: BodyRate = BodyRate {
    bytes_per_second: 100,
    grace: Duration::from_millis(500),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_request_bodies_time_out() {
    let running = start(|limits| limits.body_rate = Some(RATE));
    let address = running.handle.local_addr();
    for protocol in Protocol::ALL {
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let began = Instant::now();
        // Ten bytes a second, for longer than this test runs.
        let body = drops(10_000, Duration::from_millis(100));
        let answer = within(client.send(request("POST", "/count", body))).await;
        let body = within(text(answer.expect("an answer"))).await;
        assert!(body.contains("request body too slow"), "{protocol}: {body}");
        assert!(began.elapsed() >= RATE.grace, "{protocol}: {body}");
    }
}

/// Limit K360. Calls of gRPC exist over HTTP/2 and HTTP/3, with `te: trailers`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_silent_grpc_calls_do_not_time_out() {
    let grace = Duration::from_millis(50);
    let running = start(|limits| limits.body_rate = Some(BodyRate { grace, ..RATE }));
    let address = running.handle.local_addr();
    let cases = [("POST", true), ("POST", false), ("PUT", true)];
    for (protocol, (method, te)) in Protocol::ALL
        .into_iter()
        .flat_map(|it| cases.map(|case| (it, case)))
    {
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let mut request = request(method, "/count", drops(2, 2 * grace));
        let kind = "application/grpc+proto".parse().expect("a value");
        request.headers_mut().insert("content-type", kind);
        if te {
            let trailers = "trailers".parse().expect("a value");
            request.headers_mut().insert("te", trailers);
        }
        let answer = within(client.send(request)).await.expect("an answer");
        let body = within(text(answer)).await;
        let is_grpc = protocol != Protocol::Http1 && method == "POST" && te;
        assert_eq!(
            body == "2 bytes",
            is_grpc,
            "{protocol} {method} {te}: {body}"
        );
    }
}

/// Creates an HTTP/3 client that grants little credit, and keeps its connection alive.
async fn narrow(running: &Running) -> h3::Client {
    let transport = TransportConfig {
        stream_receive_window: 10_000,
        stream_receive_window_max: 10_000,
        keep_alive_interval: Some(Duration::from_millis(100)),
        ..TransportConfig::default()
    };
    let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let config = ClientConfig::with_roots([running.identity.certificate()]).expect("valid roots");
    let config = config.alpn([h3::ALPN]).transport_config(transport);
    let address = running.handle.local_addr();
    let connecting = endpoint.connect_with(config, address, "localhost");
    let connection = within(connecting.expect("configured")).await;
    h3::Client::new(connection.expect("a server"))
}

/// Creates an HTTP/2 client that grants this much credit for each response that it does not read.
async fn narrow_http2(running: &Running, window: u32) -> Client {
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let stream = tls(address, certificate, &[b"h2"]).await;
    let io = TokioIo::new(stream.expect("a server"));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (send, connection) = builder.handshake(io).await.expect("HTTP/2");
    crate::common::spawn(connection);
    Client::Http2(send)
}

/// Waits until so many HTTP/2 connections are open.
async fn http2_connections(running: &Running, count: u64) {
    until(|| running.handle.stats().http2.connections_open == count).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_clients_that_grant_no_credit_time_out() {
    let running = start(|limits| limits.write_timeout = Some(Duration::from_millis(1500)));
    let mut silent = narrow_http2(&running, 10_000).await;
    let mut slow = narrow_http2(&running, 10_000).await;
    let ask = || request("GET", "/large", super::client::empty());
    let began = Instant::now();
    let _unread = within(silent.send(ask())).await.expect("an answer");
    let answer = within(slow.send(ask())).await.expect("an answer");
    let mut read = answer.into_body();
    let mut received = 0;
    while let Some(frame) = within(read.frame()).await {
        let frame = frame.expect("continues");
        received += frame.data_ref().map_or(0, Bytes::len);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(received, 1_000_000);
    assert!(
        began.elapsed() > Duration::from_millis(2500),
        "the client was too fast"
    );
    http2_connections(&running, 1).await;
    assert_eq!(within(slow.text("/small")).await, "few bytes");
}

/// HTTP/2 already holds the whole response, and the request is over for the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_ends_of_responses_time_out() {
    let running = start(|limits| {
        limits.idle_timeout = Duration::from_millis(200);
        limits.write_timeout = Some(Duration::from_millis(400));
    });
    let mut silent = narrow_http2(&running, 1).await;
    let ask = request("GET", "/small", super::client::empty());
    let _unread = within(silent.send(ask)).await.expect("an answer");
    assert_eq!(running.handle.stats().http2.connections_open, 1);
    http2_connections(&running, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_clients_that_read_nothing_time_out() {
    let running = start(|limits| limits.write_timeout = Some(Duration::from_millis(1500)));
    let (silent, slow) = (narrow(&running).await, narrow(&running).await);
    let ask = || request("GET", "/large", super::client::empty());
    let began = Instant::now();
    let _unread = within(silent.send(ask())).await.expect("an answer");
    let mut read = within(slow.send(ask()))
        .await
        .expect("an answer")
        .into_body();
    // Slower than the network, but never silent, for longer than a silent client is tolerated.
    let mut received = 0;
    while let Some(frame) = within(read.frame()).await {
        let frame = frame.expect("continues");
        received += frame.data_ref().map_or(0, Bytes::len);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(received, 1_000_000);
    assert!(
        began.elapsed() > Duration::from_millis(2500),
        "the client was too fast"
    );
    let closed = within(silent.quic().closed()).await;
    let is_excess = matches!(&closed, courser::ConnectionError::ApplicationClosed { code, .. }
        if code.value() == 0x107);
    assert!(is_excess, "{closed:?}");
    assert!(slow.quic().close_reason().is_none());
}

/// Reads a large response to its end, with this pause after each frame.
async fn read_slowly<B>(mut body: B, pause: Duration) -> Result<usize, B::Error>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let mut received = 0;
    while let Some(frame) = within(body.frame()).await {
        received += frame?.data_ref().map_or(0, Bytes::len);
        tokio::time::sleep(pause).await;
    }
    Ok(received)
}

/// A reader that takes 10 kB at intervals is never silent for long.
const READ_RATE: ReadRate = ReadRate {
    bytes_per_second: 50_000,
    grace: Duration::from_secs(2),
};
const TOO_SLOW: Duration = Duration::from_millis(500);
const FAST_ENOUGH: Duration = Duration::from_millis(30);

/// Attack A88, limit K105.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_clients_that_read_too_slowly_time_out() {
    let running = start(|limits| limits.read_rate = Some(READ_RATE));
    let (dripping, steady) = (narrow(&running).await, narrow(&running).await);
    let ask = || request("GET", "/large", super::client::empty());
    let dripped = within(dripping.send(ask())).await.expect("an answer");
    let read = within(steady.send(ask())).await.expect("an answer");
    let (dripped, read) = tokio::join!(
        read_slowly(dripped.into_body(), TOO_SLOW),
        read_slowly(read.into_body(), FAST_ENOUGH),
    );
    assert!(dripped.is_err(), "{dripped:?}");
    let closed = within(dripping.quic().closed()).await;
    let is_excess = matches!(&closed, courser::ConnectionError::ApplicationClosed { code, .. }
        if code.value() == 0x107);
    assert!(is_excess, "{closed:?}");
    assert_eq!(read.expect("fast enough"), 1_000_000);
    assert!(steady.quic().close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_clients_that_read_too_slowly_time_out() {
    let running = start(|limits| limits.read_rate = Some(READ_RATE));
    let mut dripping = narrow_http2(&running, 10_000).await;
    let mut steady = narrow_http2(&running, 10_000).await;
    let ask = || request("GET", "/large", super::client::empty());
    let dripped = within(dripping.send(ask())).await.expect("an answer");
    let read = within(steady.send(ask())).await.expect("an answer");
    let (dripped, read) = tokio::join!(
        read_slowly(dripped.into_body(), TOO_SLOW),
        read_slowly(read.into_body(), FAST_ENOUGH),
    );
    assert!(dripped.is_err(), "{dripped:?}");
    assert_eq!(read.expect("fast enough"), 1_000_000);
    http2_connections(&running, 1).await;
}

/// The server has nothing to send most of the time, so the client is not slow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_events_do_not_count_as_slow_reading() {
    let rate = ReadRate {
        bytes_per_second: 1_000_000,
        grace: Duration::from_millis(400),
    };
    let running = start(|limits| limits.read_rate = Some(rate));
    let address = running.handle.local_addr();
    for protocol in Protocol::ALL {
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        assert_eq!(within(client.text("/events")).await.len(), 12, "{protocol}");
    }
}
