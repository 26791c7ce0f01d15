//! Responses that the server makes itself are reported, so that an access log is complete.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use courser::server::{Cause, Limits, OwnResponse, Protocol};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::tls;
use super::raw::{Fields, VALID, over_http1, status};
use super::{Running, start_with, within};
use crate::common::until;

/// A reported response: cause, status, protocol, and the target or first line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    cause: Cause,
    status: u16,
    protocol: Option<Protocol>,
    text: String,
}

impl Seen {
    fn of(own: &OwnResponse<'_>) -> Self {
        let line = || String::from_utf8_lossy(own.first_line).into_owned();
        assert!(own.client.ip().is_loopback());
        Self {
            cause: own.cause,
            status: own.status.as_u16(),
            protocol: own.peer.map(courser::server::Peer::protocol),
            text: own
                .head
                .map_or_else(line, |head| head.uri.path().to_owned()),
        }
    }
}

type Log = Arc<Mutex<Vec<Seen>>>;

/// Starts a server that serves its own names only, and returns what it reports.
fn start() -> (Running, Log) {
    let log = Log::default();
    let reported = log.clone();
    let app = Router::new().route("/", get(|| async { "served" }));
    let running = start_with(app, |server| {
        let mut limits = Limits::default();
        limits.header_read_timeout = Duration::from_millis(300);
        limits.max_header_bytes = 8 * 1024;
        server
            .only_names(true)
            .limits(limits)
            .on_own_response(move |own| reported.lock().expect("no panic").push(Seen::of(own)))
    });
    (running, log)
}

/// Waits for a report and takes it.
async fn next(log: &Log) -> Seen {
    until(|| !log.lock().expect("no panic").is_empty()).await;
    log.lock().expect("no panic").remove(0)
}

fn seen(cause: Cause, status: u16, protocol: impl Into<Option<Protocol>>, text: &str) -> Seen {
    Seen {
        cause,
        status,
        protocol: protocol.into(),
        text: text.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_over_http1_are_reported_with_their_first_line() {
    let (running, log) = start();
    let large = format!("GET /large HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(9000));
    for (request, status, expected) in [
        (
            "NONSENSE\r\n\r\n",
            "400",
            seen(Cause::InvalidRequest, 400, Protocol::Http1, "NONSENSE"),
        ),
        (
            &*large,
            "431",
            seen(
                Cause::FieldsTooLarge,
                431,
                Protocol::Http1,
                "GET /large HTTP/1.1",
            ),
        ),
        (
            "GET /other HTTP/1.1\r\nhost: other.example\r\nconnection: close\r\n\r\n",
            "421",
            seen(Cause::Misdirected, 421, Protocol::Http1, "/other"),
        ),
        (
            "GET /nameless HTTP/1.1\r\nconnection: close\r\n\r\n",
            "400",
            seen(Cause::InvalidRequest, 400, Protocol::Http1, "/nameless"),
        ),
        (
            "GET /later HTTP/3.0\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            "505",
            seen(Cause::UnsupportedVersion, 505, Protocol::Http1, "/later"),
        ),
        // The client is disconnected.
        (
            "GET /slow HTTP/1.1\r\nhost: loc",
            "",
            seen(
                Cause::HeaderTimeout,
                408,
                Protocol::Http1,
                "GET /slow HTTP/1.1",
            ),
        ),
        // The first line of the connection belongs to another request.
        (
            "GET / HTTP/1.1\r\nhost: localhost\r\n\r\nNONSENSE\r\n\r\n",
            "200",
            seen(Cause::InvalidRequest, 400, Protocol::Http1, ""),
        ),
    ] {
        let response = over_http1(&running, request.as_bytes()).await;
        let got = response.split(' ').nth(1).unwrap_or_default();
        assert_eq!(got, status, "{request:?}: {response:?}");
        assert_eq!(next(&log).await, expected, "{request:?}");
    }
    let by_cause = running.handle.stats().requests_by_cause;
    let count = |cause| by_cause.iter().find(|it| it.0 == cause).map(|it| it.1);
    assert_eq!(count(Cause::InvalidRequest), Some(3));
    assert_eq!(count(Cause::HeaderTimeout), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_no_refused_requests() {
    let (running, log) = start();
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    for requests in [0, 1] {
        let stream = tls(address, certificate.clone(), &[b"http/1.1"]).await;
        let mut stream = stream.expect("a server");
        for _ in 0..requests {
            let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
            within(stream.write_all(request)).await.expect("open");
        }
        let mut response = Vec::new();
        // The server closes the connection after 300 ms.
        let _ = within(stream.read_to_end(&mut response)).await;
        assert_eq!(response.is_empty(), requests == 0);
    }
    assert_eq!(running.handle.stats().requests_by_cause, []);
    assert_eq!(*log.lock().expect("no panic"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_over_http2_and_http3_are_reported() {
    let (running, log) = start();
    let other: Fields<'_> = &[
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "other.example"),
        (":path", "/other"),
    ];
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let outcome = status(&running, protocol, other).await;
        assert_eq!(outcome.status(), Some(421), "{protocol}");
        let expected = seen(Cause::Misdirected, 421, protocol, "/other");
        assert_eq!(next(&log).await, expected);
    }
    let long = "x".repeat(9000);
    let large = [VALID, &[("x", &*long)]].concat();
    let outcome = status(&running, Protocol::Http3, &large).await;
    assert_eq!(outcome.status(), Some(431));
    let expected = seen(Cause::FieldsTooLarge, 431, Protocol::Http3, "");
    assert_eq!(next(&log).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_is_reported_on_both_ports() {
    let (running, log) = start();
    let send = async |address, request: &str| {
        let mut stream = TcpStream::connect(address).await.expect("a server");
        stream.write_all(request.as_bytes()).await.expect("open");
        let mut response = String::new();
        let _ = within(stream.read_to_string(&mut response)).await;
        response
    };
    let request = "GET /plain HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let response = send(running.handle.local_addr(), request).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    let expected = seen(Cause::PlainHttp, 400, None, "GET /plain HTTP/1.1");
    assert_eq!(next(&log).await, expected);

    let reported = log.clone();
    let bound = courser::serve("127.0.0.1:0", &running.identity)
        .redirect_http("127.0.0.1:0")
        .on_own_response(move |own| reported.lock().expect("no panic").push(Seen::of(own)))
        .bind()
        .expect("a free port");
    let plain = bound.redirect_addrs()[0];
    tokio::spawn(bound.service(Router::new()).into_future());
    for (request, status, expected) in [
        (request, 301, seen(Cause::Redirected, 301, None, "/plain")),
        (
            "GET /nameless HTTP/1.0\r\n\r\n",
            400,
            seen(Cause::InvalidHost, 400, None, "/nameless"),
        ),
        (
            "NONSENSE\r\n\r\n",
            400,
            seen(Cause::InvalidRequest, 400, None, ""),
        ),
    ] {
        let response = send(plain, request).await;
        let expected_start = format!("HTTP/1.1 {status} ");
        let start = response.replace("HTTP/1.0", "HTTP/1.1");
        assert!(start.starts_with(&expected_start), "{response}");
        assert_eq!(next(&log).await, expected);
    }
}
