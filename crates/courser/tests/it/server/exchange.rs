use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Extension, Request};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, middleware};
use bytes::Bytes;
use courser::server::{AltSvc, Peer, Protocol, TooEarly};
use http::{HeaderMap, HeaderValue, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower_http::set_header::SetResponseHeaderLayer;

use super::client::{BoxBody, BoxError, Client, empty, full, request, text};
use super::{start, start_with, within};
use crate::common::relay::Relay;
use crate::common::until;

async fn who(Extension(peer): Extension<Peer>, version: Version) -> String {
    let name = peer.tls().server_name.clone().unwrap_or_default();
    let suite = peer.tls().cipher_suite.clone().unwrap_or_default();
    format!("{} {version:?} {name} {suite}", peer.protocol())
}

async fn moved(Extension(peer): Extension<Peer>) -> String {
    format!(
        "{} {}",
        peer.address().port(),
        peer.current_address().port()
    )
}

async fn connect_info(mut request: Request, next: middleware::Next) -> Response {
    let peer = request.extensions().get::<Peer>().cloned().expect("a peer");
    request.extensions_mut().insert(ConnectInfo(peer.address()));
    next.run(request).await
}

fn app() -> Router {
    let name = http::HeaderName::from_static("x-layer");
    let address = |ConnectInfo(address): ConnectInfo<std::net::SocketAddr>| async move {
        address.to_string()
    };
    Router::new()
        .route("/who", get(who))
        .route("/address", get(address))
        .route("/moved", get(moved))
        .route("/echo", post(|body: Body| async { body }))
        .route("/bytes/{count}", get(bytes))
        .route("/trailers", post(trailers))
        .route("/own", get(|| async { ([("alt-svc", "mine")], "") }))
        .layer(middleware::from_fn(connect_info))
        .layer(SetResponseHeaderLayer::overriding(
            name,
            HeaderValue::from_static("was here"),
        ))
}

/// Returns chunks of content that a receiver can check.
fn pattern(count: u64) -> impl futures_util::Stream<Item = Result<Frame<Bytes>, BoxError>> {
    let chunks = (0..count.div_ceil(CHUNK)).map(move |index| {
        let len = CHUNK.min(count - index * CHUNK);
        let fill = u8::try_from(index % 251).expect("fits");
        Ok(Frame::data(Bytes::from(vec![fill; len as usize])))
    });
    futures_util::stream::iter(chunks)
}

const CHUNK: u64 = 64 * 1024;

async fn bytes(axum::extract::Path(count): axum::extract::Path<u64>) -> Body {
    Body::new(StreamBody::new(pattern(count)))
}

async fn check_pattern(
    mut body: impl http_body::Body<Data = Bytes, Error = BoxError> + Unpin,
) -> u64 {
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let data = frame.expect("no error").into_data().expect("no trailers");
        for byte in data {
            assert_eq!(u64::from(byte), seen / CHUNK % 251, "at {seen}");
            seen += 1;
        }
    }
    seen
}

/// Returns the value of the trailer `x-sum` as a trailer.
async fn trailers(body: Body) -> Response {
    let collected = body.collect().await.expect("a body");
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let frames = [
        Ok::<_, BoxError>(Frame::data(collected.to_bytes())),
        Ok(Frame::trailers(trailers)),
    ];
    let body = Body::new(StreamBody::new(futures_util::stream::iter(frames)));
    // HTTP/1.1 requires the announcement in advance.
    Response::builder()
        .header("trailer", "x-sum")
        .body(body)
        .expect("a response")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_router_answers_all_protocols() {
    let running = start(app());
    let wanted = [
        (Protocol::Http1, "http/1.1 HTTP/1.1 localhost TLS13_AES_"),
        (Protocol::Http2, "h2 HTTP/2.0 localhost TLS13_AES_"),
        (Protocol::Http3, "h3 HTTP/3.0 localhost TLS13_AES_"),
    ];
    let mut clients = Vec::new();
    for (protocol, wanted) in wanted {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let response = within(client.get("/who")).await.expect("an answer");
        assert_eq!(response.headers()["x-layer"], "was here", "{protocol}");
        let seen = within(text(response)).await;
        assert!(seen.starts_with(wanted), "{seen}");
        let seen = within(client.text("/address")).await;
        assert!(seen.starts_with("127.0.0.1:"), "{seen}");
        let stats = running.handle.stats();
        assert_eq!(stats.of(protocol).requests, 2, "{protocol}");
        assert_eq!(stats.of(protocol).connections_open, 1, "{protocol}");
        clients.push(client);
    }
    let connections = running.handle.connections();
    let protocols: Vec<_> = connections.iter().map(|it| it.peer.protocol()).collect();
    assert!(
        connections.iter().all(|it| it.bytes_sent > 1000),
        "{connections:?}"
    );
    for protocol in Protocol::ALL {
        assert!(protocols.contains(&protocol), "{protocols:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alt_svc_is_sent_only_over_tcp() {
    let running = start(app());
    let address = running.handle.local_addr();
    // The clients name no port, as behind a port mapping.
    let announced = "h3=\":443\"; ma=86400";
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let response = within(client.get("/who")).await.expect("an answer");
        assert_eq!(response.headers()["alt-svc"], announced, "{protocol}");
        let response = within(client.get("/own")).await.expect("an answer");
        assert_eq!(response.headers()["alt-svc"], "mine", "{protocol}");
    }
    let client = Client::connect(Protocol::Http3, address, &running.identity).await;
    let response = within(client.expect("a server").get("/who")).await;
    let response = response.expect("an answer");
    assert!(!response.headers().contains_key("alt-svc"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alt_svc_can_be_changed_and_switched_off() {
    let mut other = AltSvc::default();
    other.port = Some(444);
    other.max_age = Duration::from_secs(60);
    for (alt_svc, wanted) in [(Some(other), Some("h3=\":444\"; ma=60")), (None, None)] {
        let running = start_with(app(), |server| server.alt_svc(alt_svc));
        let address = running.handle.local_addr();
        let client = Client::connect(Protocol::Http2, address, &running.identity).await;
        let response = within(client.expect("a server").get("/who")).await;
        let response = response.expect("an answer");
        let seen = response
            .headers()
            .get("alt-svc")
            .map(|it| it.to_str().expect("text"));
        assert_eq!(seen, wanted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_travel_in_both_directions() {
    const LEN: u64 = 20_000_000;
    let running = start(app());
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let response = within(client.get(&format!("/bytes/{LEN}"))).await;
        let body = response.expect("an answer").into_body();
        assert_eq!(within(check_pattern(body)).await, LEN, "{protocol} down");
        let upload: BoxBody = StreamBody::new(pattern(LEN)).boxed_unsync();
        let response = within(client.send(request("POST", "/echo", upload))).await;
        let body = response.expect("an answer").into_body();
        assert_eq!(
            within(check_pattern(body)).await,
            LEN,
            "{protocol} up and down"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_travel_in_both_directions() {
    let running = start(app());
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("42"));
        let frames = [
            Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"content"))),
            Ok(Frame::trailers(trailers)),
        ];
        let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        let mut upload = request("POST", "/trailers", body);
        upload
            .headers_mut()
            .insert("te", HeaderValue::from_static("trailers"));
        upload
            .headers_mut()
            .insert("trailer", HeaderValue::from_static("x-sum"));
        let response = within(client.send(upload)).await.expect("an answer");
        let collected = within(response.into_body().collect())
            .await
            .expect("a body");
        let seen = collected.trailers().and_then(|it| it.get("x-sum")).cloned();
        assert_eq!(seen, Some(HeaderValue::from_static("42")), "{protocol}");
        assert_eq!(collected.to_bytes(), "content", "{protocol}");
    }
}

/// An unread body is not sent, and does not fill the server's memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_delay_no_other_client() {
    let running = start(app());
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut slow = client.expect("a server");
        let unread = within(slow.get("/bytes/1000000000"))
            .await
            .expect("an answer");
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut quick = client.expect("a server");
        for _ in 0..20 {
            within(quick.text("/who")).await;
        }
        let connections = running.handle.connections();
        let sent = connections.iter().map(|it| it.bytes_sent).max();
        assert!(
            sent < Some(300_000_000),
            "{protocol}: {sent:?} bytes were taken"
        );
        // The last quick response may arrive before the server has released it.
        until(|| running.handle.stats().of(protocol).requests_in_flight == 1).await;
        drop(unread);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrades_work_over_http1() {
    async fn upgrade(mut request: Request) -> Response {
        let upgraded = hyper::upgrade::on(&mut request);
        crate::common::spawn(async move {
            let upgraded = upgraded.await.expect("upgraded");
            let mut io = hyper_util::rt::TokioIo::new(upgraded);
            let mut word = [0; 4];
            io.read_exact(&mut word).await.expect("four bytes");
            word.reverse();
            io.write_all(&word).await.expect("open");
            io.shutdown().await.expect("open");
        });
        let response = Response::builder().status(101).header("upgrade", "reverse");
        let response = response.header("connection", "upgrade");
        response.body(Body::empty()).expect("a response")
    }
    let running = start(Router::new().route("/up", get(upgrade)));
    let address = running.handle.local_addr();
    let client = Client::connect(Protocol::Http1, address, &running.identity).await;
    let mut client = client.expect("a server");
    let mut up = request("GET", "/up", empty());
    up.headers_mut()
        .insert("connection", HeaderValue::from_static("upgrade"));
    up.headers_mut()
        .insert("upgrade", HeaderValue::from_static("reverse"));
    let Client::Http1(send) = &mut client else {
        panic!("HTTP/1.1 was asked for")
    };
    up.headers_mut()
        .insert("host", HeaderValue::from_static("localhost"));
    let response = within(send.send_request(up)).await.expect("an answer");
    assert_eq!(response.status(), 101);
    let upgraded = within(hyper::upgrade::on(response))
        .await
        .expect("upgraded");
    let mut io = hyper_util::rt::TokioIo::new(upgraded);
    assert_eq!(running.handle.stats().http1.connections_open, 1);
    io.write_all(b"abcd").await.expect("open");
    let mut answer = String::new();
    within(io.read_to_string(&mut answer)).await.expect("open");
    assert_eq!(answer, "dcba");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsafe_early_requests_are_answered_with_425() {
    let app = Router::new()
        .route("/order", post(|| async { "ordered" }))
        .route("/search", get(|| async { "found" }))
        .layer(TooEarly::unless_safe());
    let running = start(app);
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let cases = [
            ("POST", "/order", Some("1"), 425),
            ("POST", "/order", Some("invalid"), 425),
            ("POST", "/order", None, 200),
            ("GET", "/search", Some("1"), 200),
        ];
        for (method, path, early, wanted) in cases {
            let mut asked = request(method, path, full(""));
            if let Some(early) = early {
                asked
                    .headers_mut()
                    .insert("early-data", HeaderValue::from_static(early));
            }
            let response = within(client.send(asked)).await.expect("an answer");
            assert_eq!(response.status(), wanted, "{protocol} {method} {early:?}");
        }
    }
}

/// Clients that expect 100 (Continue) before they send a body need not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_expect_100_continue_get_it() {
    let running = start(app());
    let address = running.handle.local_addr();
    let client = Client::connect(Protocol::Http3, address, &running.identity).await;
    let mut client = client.expect("a server");
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = seen.clone();
    let mut asked = request("POST", "/echo", full("content"));
    let expect = HeaderValue::from_static("100-continue");
    asked.headers_mut().insert("expect", expect);
    asked
        .extensions_mut()
        .insert(courser::h3::OnInterim::new(move |interim| {
            noted.lock().expect("no panic").push(interim.status());
        }));
    let response = within(client.send(asked)).await.expect("an answer");
    assert_eq!(within(text(response)).await, "content");
    assert_eq!(
        *seen.lock().expect("no panic"),
        [http::StatusCode::CONTINUE]
    );
}

/// A NAT rebinding gives the client another port, which counts when the client has answered from
/// there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_follows_a_client_that_moves() {
    let running = start(app());
    let mut relay = Relay::new(running.handle.local_addr());
    let connecting = Client::connect(Protocol::Http3, relay.address, &running.identity);
    let mut client = within(connecting).await.expect("connected");
    let mut ask = async || {
        let response = within(client.send(request("GET", "/moved", empty()))).await;
        let text = within(text(response.expect("answered"))).await;
        let (first, now) = text.split_once(' ').expect("two ports");
        (first.to_owned(), now.to_owned())
    };
    let (first, now) = ask().await;
    assert_eq!(first, now);
    let port = relay.rebind().to_string();
    within(async {
        // Each request is a round trip, after which the server may have validated the path.
        while ask().await != (first.clone(), port.clone()) {}
    })
    .await;
}
