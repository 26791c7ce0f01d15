//! The proxy before upstream servers that are scripted with raw sockets.

use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

fn times() -> ProxyTimes {
    ProxyTimes {
        connect: Duration::from_secs(5),
        response: Duration::from_millis(500),
        body: Duration::from_millis(500),
    }
}

fn proxy(address: SocketAddr, limits: ProxyLimits) -> Proxy {
    let backend = Backend::parse(&format!("http://{address}")).expect("a backend");
    Proxy::with_limits(backend, times(), limits)
}

async fn get(proxy: &Proxy, facts: &mut UpstreamFacts) -> Response<Body> {
    let request = Request::get("https://a.test/").version(Version::HTTP_2);
    let request = request.body(server::Body::empty()).expect("a request");
    let answered = proxy.answer_recorded(request, facts);
    let limited = tokio::time::timeout(Duration::from_secs(20), answered);
    limited.await.expect("in time")
}

fn cause(response: &Response<Body>) -> Option<Cause> {
    response.extensions().get().copied()
}

/// Reads a header section.
async fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// Starts a server that sends these bytes to each request, and then closes the connection.
async fn server(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let answer = answer.into();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&answer).await;
                if answer.ends_with(STALLS) {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    address
}

/// Content after which the server sends nothing more.
const STALLS: &[u8] = b"stalls";

fn fields(count: usize) -> Vec<u8> {
    let fields: String = (0..count).map(|n| format!("x-{n}: 1\r\n")).collect();
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n").into_bytes()
}

/// RFC 9110 §15.6.3 and §15.6.5.
#[tokio::test]
async fn each_failure_of_the_upstream_server_has_a_cause() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(300_000));
    for (answer, status, expected) in [
        (&b""[..], 502, Cause::UpstreamClosed),
        (b"HTTP/1.1 200", 502, Cause::UpstreamClosed),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", 502, Cause::UpstreamNotHttp),
        (
            b"HTTP/1.1 abc OK\r\n\r\n",
            502,
            Cause::UpstreamInvalidResponse,
        ),
        (
            b"HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n",
            502,
            Cause::UpstreamInvalidResponse,
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            502,
            Cause::UpstreamUnexpectedUpgrade,
        ),
        (&fields(3000), 502, Cause::UpstreamFieldsTooLarge),
        (long.as_bytes(), 502, Cause::UpstreamFieldsTooLarge),
        (b"HTTP/1.1 200 OK\r\nx: stalls", 504, Cause::UpstreamTimeout),
    ] {
        let address = server(answer).await;
        let mut facts = UpstreamFacts::default();
        let response = get(&proxy(address, ProxyLimits::default()), &mut facts).await;
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(30)]);
        assert_eq!(response.status(), status, "{shown}");
        assert_eq!(cause(&response), Some(expected), "{shown}");
        assert_eq!(facts.address, Some(address));
        assert!(facts.connecting.is_some() && facts.responding.is_some());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let mut facts = UpstreamFacts::default();
    let response = get(&proxy(address, ProxyLimits::default()), &mut facts).await;
    assert_eq!(cause(&response), Some(Cause::UpstreamRefused));
    let backend = Backend::parse("http://name.invalid:1").expect("a backend");
    let unnamed = Proxy::new(backend, times());
    let response = get(&unnamed, &mut facts).await;
    let cause = cause(&response).expect("a cause");
    // A machine without a resolver may exceed the time limit instead.
    assert!(
        matches!(cause, Cause::UpstreamNameNotFound | Cause::UpstreamTimeout),
        "{cause:?}"
    );
}

#[tokio::test]
async fn responses_have_up_to_1000_fields() {
    for (count, expected) in [(300, 200), (999, 200), (1000, 502)] {
        let address = server(fields(count)).await;
        let mut facts = UpstreamFacts::default();
        let response = get(&proxy(address, ProxyLimits::default()), &mut facts).await;
        assert_eq!(response.status(), expected, "{count}");
    }
}

#[tokio::test]
async fn content_that_is_cut_or_stalls_has_a_cause() {
    for (answer, expected) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\ncut"[..],
            Cause::UpstreamContentCut,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nstalls",
            Cause::UpstreamContentTimeout,
        ),
    ] {
        let address = server(answer).await;
        let mut facts = UpstreamFacts::default();
        let response = get(&proxy(address, ProxyLimits::default()), &mut facts).await;
        assert_eq!(response.status(), 200);
        assert_eq!(facts.status, Some(StatusCode::OK));
        assert_eq!(cause(&response), None);
        let error = response.into_body().collect().await.expect_err("aborted");
        assert_eq!(ContentFailure::cause_of(&*error), Some(expected));
    }
}

/// RFC 9112 §9.4, RFC 9110 §15.6.4, limit K350.
#[tokio::test]
async fn requests_above_the_maximum_wait_and_are_then_refused_with_retry_after() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (accepted, mut streams) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_request(&mut stream).await;
            let _ = accepted.send(stream);
        }
    });
    let limits = ProxyLimits {
        connections: 2,
        queue: 2,
        queue_wait: Duration::from_secs(10),
        ..ProxyLimits::default()
    };
    let backend = Backend::parse(&format!("http://{address}")).expect("a backend");
    let patient = ProxyTimes {
        response: Duration::from_secs(20),
        ..times()
    };
    let proxy = Proxy::with_limits(backend, patient, limits);
    let start = || {
        let proxy = proxy.clone();
        tokio::spawn(async move { get(&proxy, &mut UpstreamFacts::default()).await })
    };
    let running = [start(), start()];
    let mut held = Vec::new();
    for _ in &running {
        held.push(streams.recv().await.expect("a connection"));
    }
    let waiting = [start(), start()];
    while proxy.stats().waiting < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let refused = get(&proxy, &mut UpstreamFacts::default()).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(cause(&refused), Some(Cause::UpstreamBusy));
    assert_eq!(refused.headers()["retry-after"], "5");
    // A request that leaves frees its place.
    let [left, stays] = waiting;
    left.abort();
    assert!(left.await.is_err());
    assert_eq!(proxy.stats().waiting, 1);
    assert_eq!(proxy.stats().connections_open, 2);
    assert!(streams.try_recv().is_err(), "no third connection");
    // A response ends, and its connection serves the request that waits.
    let mut first = held.remove(0);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    first.write_all(response).await.expect("open");
    read_request(&mut first).await;
    first.write_all(response).await.expect("open");
    assert_eq!(stays.await.expect("no panic").status(), 200);
    drop((first, held));
    for response in running {
        let status = response.await.expect("no panic").status();
        assert!(status == 200 || status == 502, "{status}");
    }
    let stats = proxy.stats();
    assert_eq!((stats.waiting, stats.requests, stats.refused), (0, 0, 1));
}

/// Attack A222: the process keeps file descriptors for clients.
#[test]
fn connections_leave_descriptors_for_clients() {
    for (descriptors, connections) in [(0, 1), (256, 85), (1024, 341), (1 << 20, 4096)] {
        let limits = ProxyLimits::for_descriptors(descriptors);
        assert_eq!(limits.connections, connections);
    }
}
