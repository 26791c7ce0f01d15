//! Moves to HTTP/3 in the background, while HTTP/2 serves.

use std::collections::HashSet;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use courser::Client;
use courser::client::HttpVersion;
use http::{Response, Version};
use tokio::sync::Notify;

use super::raw::{HEADERS, RawHttp2, frame};
use super::server::{Protocols, Server, Service, full, service};
use super::{builder, text, timing, until, within};

/// Starts a server whose responses have the `alt-svc` fields that `value` returns for the number of a request. `PORT`
/// in them is the port of the server.
pub async fn announcing(
    protocols: Protocols,
    value: impl Fn(usize) -> Option<String> + Send + Sync + 'static,
) -> Server {
    let (port, count) = (Arc::new(OnceLock::<u16>::new()), AtomicUsize::new(0));
    let shared = port.clone();
    let answer = service(move |request| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let mut response = Response::new(full(format!("{:?}", request.headers().get("alt-used"))));
        if let Some(value) = value(number) {
            let value = value.replace("PORT", &shared.get().expect("started").to_string());
            let value = value.parse().expect("a value");
            response.headers_mut().insert("alt-svc", value);
        }
        async move { response }
    });
    let server = Server::start(protocols, answer).await;
    port.set(server.address.port()).expect("not set yet");
    server
}

async fn version(client: &Client, server: &Server) -> Version {
    let response = within(client.get(server.url("/"))).await;
    let response = response.expect("answered");
    let version = response.version();
    text(response).await;
    version
}

/// Sends requests until one uses HTTP/3, and returns their versions.
async fn versions_until_http3(client: &Client, server: &Server) -> Vec<Version> {
    let mut versions = vec![version(client, server).await];
    while versions.last() != Some(&Version::HTTP_3) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        versions.push(version(client, server).await);
        assert!(versions.len() < 5000, "no request uses HTTP/3");
    }
    versions
}

/// Twenty requests in two seconds, as those of a service under steady load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_under_load_move_to_http3_without_waiting() {
    let announce = |_| Some("h3=\":PORT\"; ma=60".to_owned());
    let server = announcing(Protocols::Both, announce).await;
    let client = builder(&server).build().expect("a client");
    let mut versions = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for number in 0..20 {
        ticks.tick().await;
        let response = within(client.get(server.url("/"))).await;
        let response = response.expect("answered");
        versions.push(response.version());
        let seen = timing(&response);
        assert_eq!(seen.is_reused, number > 0, "no request opens a connection");
        assert_eq!(seen.attempts.len(), usize::from(number == 0));
    }
    assert_eq!(versions[..2], [Version::HTTP_2; 2], "{versions:?}");
    let moved = versions
        .iter()
        .position(|version| *version == Version::HTTP_3);
    let moved = moved.expect("one uses HTTP/3");
    assert!(
        versions[moved..]
            .iter()
            .all(|version| *version == Version::HTTP_3),
        "{versions:?}"
    );
    assert!(moved < 15, "{versions:?}");
    assert_eq!(server.connections.counts(), (1, 1));
    // The HTTP/2 connection remains for the case that UDP stops working.
    assert_eq!(server.connections.open.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_sends_one_request_opens_one_connection() {
    let announce = |_| Some("h3=\":PORT\"; ma=60".to_owned());
    let server = announcing(Protocols::Both, announce).await;
    let client = builder(&server).build().expect("a client");
    assert_eq!(version(&client, &server).await, Version::HTTP_2);
    drop(client);
    server.connections.closed().await;
    assert_eq!(server.connections.counts(), (0, 1));
}

/// A move in progress keeps neither connections nor the file of alternatives from their end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_end_with_their_client() {
    let hole = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let value = format!(
        "h3=\":{}\"; ma=60",
        hole.local_addr().expect("bound").port()
    );
    let server = announcing(Protocols::Tcp, move |_| Some(value.clone())).await;
    let file = std::env::temp_dir().join(format!("courser-moves-{}", std::process::id()));
    let client = builder(&server).alt_svc_file(&file);
    let client = client.build().expect("a client");
    for _ in 0..2 {
        assert_eq!(version(&client, &server).await, Version::HTTP_2);
    }
    until(|| !connections_at(&hole).is_empty()).await;
    let began = Instant::now();
    drop(client);
    server.connections.closed().await;
    until(|| file.exists()).await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    std::fs::remove_file(&file).expect("removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_http1_move_to_http3() {
    let announce = |_| Some("h3=\":PORT\"; ma=60".to_owned());
    let server = announcing(Protocols::Both, announce).await;
    let client = builder(&server).version(HttpVersion::Auto);
    let client = client.build().expect("a client");
    versions_until_http3(&client, &server).await;
    // The same beside a server that offers HTTP/1.1 only.
    let http3 = announcing(Protocols::Quic, |_| None).await;
    let value = format!("h3=\":{}\"; ma=60", http3.address.port());
    let server = announcing(Protocols::Http1, move |_| Some(value.clone())).await;
    let client = builder(&server).root(http3.identity.certificate());
    let client = client.build().expect("a client");
    let versions = versions_until_http3(&client, &server).await;
    assert_eq!(versions[..2], [Version::HTTP_11; 2]);
}

/// A response that began over HTTP/2 ends there, after later requests have moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_progress_end_where_they_began() {
    let (goes, port) = (Arc::new(Notify::new()), Arc::new(OnceLock::<u16>::new()));
    let (waits, shared) = (goes.clone(), port.clone());
    let slow: Service = service(move |request| {
        let waits = waits.clone();
        let value = format!("h3=\":{}\"; ma=60", shared.get().expect("started"));
        async move {
            if request.uri().path() == "/slow" {
                waits.notified().await;
            }
            let mut response = Response::new(full(format!("{:?}", request.version())));
            let value = value.parse().expect("a value");
            response.headers_mut().insert("alt-svc", value);
            response
        }
    });
    let server = Server::start(Protocols::Both, slow).await;
    port.set(server.address.port()).expect("not set yet");
    let client = builder(&server).build().expect("a client");
    assert_eq!(version(&client, &server).await, Version::HTTP_2);
    let (cloned, url) = (client.clone(), server.url("/slow"));
    let slow = crate::common::spawn(async move {
        let response = cloned.get(&url).await.expect("answered");
        text(response).await
    });
    versions_until_http3(&client, &server).await;
    goes.notify_one();
    assert_eq!(within(slow).await.expect("no panic"), "HTTP/2.0");
}

/// The port of the announcement is closed, or a network drops its datagrams: no request fails or waits, and QUIC is
/// tried once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_announce_http3_falsely_are_used_over_http2() {
    for is_silent in [false, true] {
        let hole = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let value = format!("h3=\":{}\"", hole.local_addr().expect("bound").port());
        let hole = is_silent.then_some(hole);
        let server = announcing(Protocols::Tcp, move |_| Some(value.clone())).await;
        let client = builder(&server).build().expect("a client");
        let began = Instant::now();
        // Longer than a move may take.
        while began.elapsed() < Duration::from_secs(if is_silent { 5 } else { 1 }) {
            let response = within(client.get(server.url("/"))).await;
            let response = response.expect("answered");
            assert_eq!(response.version(), Version::HTTP_2);
            let is_first = timing(&response).attempts.len() == 1;
            assert!(is_first || timing(&response).is_reused);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(server.connections.counts(), (0, 1));
        if let Some(hole) = hole {
            assert_eq!(connections_at(&hole).len(), 1, "QUIC is tried once");
        }
    }
}

/// Returns the source connection IDs of the packets that have arrived at a socket (RFC 8999 §5.1).
fn connections_at(hole: &UdpSocket) -> HashSet<Vec<u8>> {
    hole.set_nonblocking(true).expect("a socket");
    let (mut seen, mut datagram) = (HashSet::new(), [0; 2048]);
    while let Ok(length) = hole.recv(&mut datagram) {
        let bytes = &datagram[..length];
        let destination = usize::from(bytes[5]);
        let length = usize::from(bytes[6 + destination]);
        seen.insert(bytes[7 + destination..7 + destination + length].to_vec());
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_move_back_when_the_server_withdraws_http3() {
    let is_withdrawn = Arc::new(AtomicUsize::new(0));
    let shared = is_withdrawn.clone();
    let announce = move |_| match shared.load(Ordering::SeqCst) {
        0 => Some("h3=\":PORT\"; ma=60".to_owned()),
        _ => Some("clear".to_owned()),
    };
    let server = announcing(Protocols::Both, announce).await;
    let client = builder(&server).build().expect("a client");
    versions_until_http3(&client, &server).await;
    is_withdrawn.store(1, Ordering::SeqCst);
    assert_eq!(version(&client, &server).await, Version::HTTP_3);
    for _ in 0..20 {
        assert_eq!(version(&client, &server).await, Version::HTTP_2);
    }
    assert_eq!(server.connections.counts(), (1, 1));
    // HTTP/3 is announced again, and used again.
    is_withdrawn.store(0, Ordering::SeqCst);
    versions_until_http3(&client, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alternatives_elsewhere_need_a_certificate_of_the_origin() {
    for is_trusted in [true, false] {
        let elsewhere = announcing(Protocols::Quic, |_| None).await;
        let port = elsewhere.address.port();
        let value = format!("h3=\"example.test:{port}\"; ma=60");
        let server = announcing(Protocols::Tcp, move |_| Some(value.clone())).await;
        let mut builder = builder(&server);
        if is_trusted {
            builder = builder.root(elsewhere.identity.certificate());
        }
        let client = builder.build().expect("a client");
        if is_trusted {
            versions_until_http3(&client, &server).await;
            let response = within(client.get(server.url("/"))).await;
            let used = text(response.expect("answered")).await;
            assert_eq!(used, format!("Some(\"example.test:{port}\")"));
            continue;
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            assert_eq!(version(&client, &server).await, Version::HTTP_2);
        }
        assert_eq!(elsewhere.connections.counts(), (0, 0));
        // A server that can be reached says nothing about UDP in this network.
        let other = announcing(Protocols::Both, |_| Some("h3=\":PORT\"".to_owned())).await;
        let client_of_other = super::builder(&other).build().expect("a client");
        versions_until_http3(&client_of_other, &other).await;
    }
}

/// A server whose HTTP/3 on the announced port of the origin itself refuses it, because its configuration is
/// incomplete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announced_http3_that_refuses_the_origin_is_avoided() {
    let port = Arc::new(OnceLock::<u16>::new());
    let shared = port.clone();
    let answer = service(move |request| {
        let value = format!("h3=\":{}\"; ma=60", shared.get().expect("started"));
        let mut response = Response::new(full(""));
        if request.version() == Version::HTTP_3 {
            *response.status_mut() = http::StatusCode::MISDIRECTED_REQUEST;
        } else {
            let value = value.parse().expect("a value");
            response.headers_mut().insert("alt-svc", value);
        }
        async move { response }
    });
    let server = Server::start(Protocols::Both, answer).await;
    port.set(server.address.port()).expect("not set yet");
    let client = builder(&server).build().expect("a client");
    let (mut retries, began) = (0, Instant::now());
    while began.elapsed() < Duration::from_secs(1) {
        let response = within(client.get(server.url("/"))).await;
        let response = response.expect("answered");
        assert_eq!(response.status(), http::StatusCode::OK);
        retries += timing(&response).retries;
    }
    assert_eq!(retries, 1);
    assert_eq!(server.connections.counts().0, 1);
}

/// A server that serves HTTP/3 for another origin only. Requests return to HTTP/2, and HTTP/3 is not tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alternative_that_does_not_serve_the_origin_is_avoided() {
    let refusing = Server::start(
        Protocols::Quic,
        service(|_| async {
            let mut response = Response::new(full("not mine"));
            *response.status_mut() = http::StatusCode::MISDIRECTED_REQUEST;
            response
        }),
    )
    .await;
    let value = format!("h3=\":{}\"; ma=60", refusing.address.port());
    let server = announcing(Protocols::Tcp, move |_| Some(value.clone())).await;
    let client = builder(&server).root(refusing.identity.certificate());
    let client = client.build().expect("a client");
    let mut retries = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        let response = within(client.get(server.url("/"))).await;
        let response = response.expect("answered");
        assert_eq!(response.version(), Version::HTTP_2);
        retries += timing(&response).retries;
    }
    assert_eq!(retries, 1);
    assert_eq!(refusing.connections.counts(), (1, 0));
}

/// Limit K530: many origins announce HTTP/3 at a place that does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_of_all_origins_are_limited() {
    let hole = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let value = format!("h3=\":{}\"", hole.local_addr().expect("bound").port());
    let server = announcing(Protocols::Tcp, move |_| Some(value.clone())).await;
    let client = builder(&server)
        .dangerous_insecure()
        .resolve("*", 0, [server.address.ip()])
        .build()
        .expect("a client");
    let began = Instant::now();
    for number in 0..40 {
        let url = format!("https://o{number}.test:{}/", server.address.port());
        for _ in 0..2 {
            let response = within(client.get(&url)).await.expect("answered");
            assert_eq!(response.version(), Version::HTTP_2);
        }
    }
    let mut seen = HashSet::new();
    until(|| {
        seen.extend(connections_at(&hole));
        seen.len() >= 16
    })
    .await;
    if began.elapsed() < Duration::from_secs(3) {
        seen.extend(connections_at(&hole));
        assert_eq!(seen.len(), 16);
    }
}

static ALTERNATIVE: OnceLock<u16> = OnceLock::new();

/// Answers with 204, after an ALTSVC frame on stream 0 if it is the first request (RFC 7838 §4).
fn with_alt_svc_frame(_: usize, id: u32) -> Vec<u8> {
    const ALTSVC: u8 = 10;
    let mut frames = Vec::new();
    if id == 1 {
        let port = ALTERNATIVE.get().expect("set before");
        let value = format!("h3=\":{port}\"; ma=60");
        let payload = |origin: &str, value: &str| {
            let length = u16::try_from(origin.len()).expect("short").to_be_bytes();
            [&length, origin.as_bytes(), value.as_bytes()].concat()
        };
        // That of another origin is ignored, and so is one that names an origin on the stream of a request.
        frames.extend(frame(ALTSVC, 0, 0, &payload("https://other.test", "clear")));
        frames.extend(frame(ALTSVC, 0, 1, &payload("", &value)));
        frames.extend(frame(ALTSVC, 0, 1, &payload("https://other.test", "clear")));
    }
    // The static table of HPACK has 204 at index 9. END_STREAM and END_HEADERS.
    frames.extend(frame(HEADERS, 5, id, &[0x80 | 9]));
    frames
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alt_svc_frames_of_http2_announce_http3() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let http3 = service(move |request| {
        log.lock().expect("no panic").push(request.version());
        async { Response::new(full("over HTTP/3")) }
    });
    let http3 = Server::start(Protocols::Quic, http3).await;
    ALTERNATIVE.set(http3.address.port()).expect("one test");
    let raw = RawHttp2::start(with_alt_svc_frame).await;
    let client = builder(&http3).root(raw.certificate.clone());
    let client = client.build().expect("a client");
    let mut versions = Vec::new();
    while versions.last() != Some(&Version::HTTP_3) {
        let response = within(client.get(raw.url("/"))).await.expect("answered");
        versions.push(response.version());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(versions.len() < 5000, "no request uses HTTP/3");
    }
    assert_eq!(versions[..2], [Version::HTTP_2; 2]);
    assert_eq!(seen.lock().expect("no panic").len(), 1);
}
