//! Requests of the client in early data. RFC 8470.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use courser::client::{ClientBuilder, EarlyRequest, ErrorKind, HttpVersion, Prepared, Proxy};
use courser::server::{EarlyData, ServerHandle, TooEarly};
use courser::{Client, EarlyDataOptions, Endpoint, Identity, h3, serve};
use http::{Method, StatusCode};
use http_body_util::Full;
use tokio::net::TcpStream;

use super::{text, timing, within};
use crate::common::relay::Relay;
use crate::common::{loopback, until};

/// A server that answers whether the request arrived in early data, and its client.
struct Pair {
    client: Client,
    server: ServerHandle,
    relay: Relay,
    url: String,
}

/// The response to a request: its status and body, the number of repetitions, and the fate of early
/// data.
type Answer = (StatusCode, String, u32, Option<EarlyRequest>);

fn answer(text: &str, retries: u32, early: impl Into<Option<EarlyRequest>>) -> Answer {
    (StatusCode::OK, text.to_owned(), retries, early.into())
}

impl Pair {
    async fn new(policy: TooEarly) -> Self {
        Self::with(policy, EarlyDataOptions::default()).await
    }

    async fn with(policy: TooEarly, options: EarlyDataOptions) -> Self {
        Self::configured(policy, options, |client| {
            client.version(HttpVersion::Http3Only)
        })
        .await
    }

    /// Creates a pair whose client races HTTP/3 against TCP. Nothing listens on TCP yet.
    async fn racing(delay: Duration) -> Self {
        let (policy, options) = (TooEarly::unless_safe(), EarlyDataOptions::default());
        Self::configured(policy, options, |client| {
            client.version(HttpVersion::Http3).attempt_delay(delay)
        })
        .await
    }

    async fn configured(
        policy: TooEarly,
        options: EarlyDataOptions,
        change: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        let respond = |request: Request| async move {
            match request.extensions().get::<EarlyData>() {
                Some(EarlyData) => "early",
                None => "late",
            }
        };
        let identity = Identity::dev().expect("random numbers");
        let server = serve("127.0.0.1:0", &identity)
            .early_data(options)
            .early_requests(policy);
        let bound = server.bind().expect("a free port");
        let server = bound.handle();
        let relay = Relay::new(server.local_addr());
        let address = relay.address;
        let serving = bound
            .service(Router::new().fallback(any(respond)))
            .into_future();
        crate::common::spawn(async move { serving.await.map(drop) });
        let client = change(Client::builder())
            .platform_roots(false)
            .root(identity.certificate())
            .proxy(Proxy::Direct)
            .resolve("localhost", 0, [address.ip()])
            .early_data(true)
            // Each request of these tests opens another connection. A repetition must not find its own
            // closed because the machine is busy.
            .idle_timeout(Duration::from_millis(250))
            .build()
            .expect("a client");
        let url = format!("https://localhost:{}/", address.port());
        let pair = Self {
            client,
            server,
            relay,
            url,
        };
        assert_eq!(pair.ask(Method::GET).await, answer("late", 0, None));
        pair
    }

    /// Lets the client reach the server over TCP.
    fn open_tcp(&self) {
        let to = self.server.local_addr();
        let listener = self.relay.listen_on_tcp();
        crate::common::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                crate::common::spawn(async move {
                    let mut far = TcpStream::connect(to).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        });
    }

    /// Sends a request whose handshake is complete once `arrived` returns true.
    async fn ask_early(&self, method: Method, arrived: impl Fn(&Self) -> bool) -> Answer {
        self.relay.hold_answers();
        let release = async {
            until(|| arrived(self)).await;
            self.relay.release().await;
        };
        tokio::join!(self.ask(method), release).0
    }

    /// Sends a request on a connection of its own.
    async fn ask(&self, method: Method) -> Answer {
        let request = http::Request::builder()
            .method(method)
            .uri(&self.url)
            .body(Full::<Bytes>::default())
            .expect("a valid request");
        let response = within(self.client.send(request)).await.expect("answered");
        let timing = timing(&response);
        let (status, retries, early) = (response.status(), timing.retries, timing.early_data);
        let body = text(response).await;
        until(|| self.server.stats().http3.connections_open == 0).await;
        (status, body, retries, early)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn safe_requests_leave_early_and_others_wait() {
    let pair = Pair::new(TooEarly::unless_safe()).await;
    let early = answer("early", 0, EarlyRequest::Accepted);
    let asked = pair.ask_early(Method::GET, |pair| pair.server.stats().early_requests == 1);
    assert_eq!(asked.await, early);
    assert_eq!(pair.ask(Method::POST).await, answer("late", 0, None));
    let asked = pair.ask_early(Method::GET, |pair| pair.server.stats().early_requests == 2);
    assert_eq!(asked.await, early, "the POST request has brought tickets");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_early_is_sent_again() {
    let pair = Pair::new(TooEarly::always()).await;
    let refused = |pair: &Pair| pair.server.stats().requests_too_early == 1;
    let asked = pair.ask_early(Method::GET, refused).await;
    assert_eq!(asked, answer("late", 1, EarlyRequest::TooEarly));
}

/// A filter that treats every ticket as used.
#[derive(Debug)]
struct RejectsAll;

impl courser::ReplayFilter for RejectsAll {
    fn is_first_use(&self, _ticket: &[u8], _now: Duration) -> bool {
        false
    }
}

// One thread, so that the request leaves before the answers are released.
#[tokio::test]
async fn a_request_in_rejected_early_data_is_sent_again() {
    let options = EarlyDataOptions {
        filter: Arc::new(RejectsAll),
        ..EarlyDataOptions::default()
    };
    let pair = Pair::with(TooEarly::unless_safe(), options).await;
    let left = |pair: &Pair| pair.relay.early_datagrams() > 0;
    let asked = pair.ask_early(Method::GET, left).await;
    assert_eq!(asked, answer("late", 1, EarlyRequest::Rejected));
    assert_eq!(pair.server.stats().early_requests, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_before_the_first_request_makes_it_early() {
    let pair = Pair::new(TooEarly::unless_safe()).await;
    let uri: http::Uri = pair.url.parse().expect("a URL");
    let other = Client::builder()
        .platform_roots(false)
        .dangerous_insecure()
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http3Only);
    let off = other.build().expect("a client");
    let prepared = within(off.prepare_early_data(&uri)).await;
    assert_eq!(prepared.expect("nothing to do"), Prepared::Off);
    let before = pair.server.stats().http3.connections;
    let prepared = within(pair.client.prepare_early_data(&uri)).await;
    assert_eq!(prepared.expect("it connects"), Prepared::Ready);
    assert_eq!(pair.server.stats().http3.connections, before + 1);
    let asked = pair.ask_early(Method::GET, |pair| pair.server.stats().early_requests == 1);
    assert_eq!(asked.await, answer("early", 0, EarlyRequest::Accepted));
    let nowhere = http::Uri::from_static("/path");
    let error = within(pair.client.prepare_early_data(&nowhere)).await;
    let error = error.expect_err("no host");
    assert_eq!(error.kind(), ErrorKind::Url);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_may_use_tcp_sends_early_requests_too() {
    let pair = Pair::racing(Duration::from_secs(2)).await;
    let asked = pair.ask_early(Method::GET, |pair| pair.server.stats().early_requests == 1);
    let early = answer("early", 0, EarlyRequest::Accepted);
    assert_eq!(asked.await, early);
    assert_eq!(pair.ask(Method::POST).await, answer("late", 0, None));
}

/// The datagrams of the server are lost. Requests with unsafe methods have not been sent by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_an_answer_to_early_data_falls_back_to_tcp() {
    for method in [Method::GET, Method::POST] {
        let pair = Pair::racing(Duration::from_millis(50)).await;
        pair.open_tcp();
        pair.relay.hold_answers();
        let request = http::Request::builder()
            .method(method.clone())
            .uri(&pair.url)
            .body(Full::<Bytes>::default());
        let request = request.expect("a valid request");
        let response = within(pair.client.send(request)).await.expect("answered");
        assert_eq!(response.version(), http::Version::HTTP_2, "{method}");
        let timing = timing(&response);
        assert_eq!((timing.retries, timing.early_data), (1, None), "{method}");
        assert_eq!(text(response).await, "late", "{method}");
        let early = u64::from(method == Method::GET);
        assert_eq!(pair.server.stats().early_requests, early, "{method}");
    }
}

/// The server is gone, and its port is closed. Without the fallback the attempt takes ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_tcp_notices_that_the_server_of_its_session_is_gone() {
    for method in [Method::GET, Method::POST] {
        let pair = Pair::configured(
            TooEarly::unless_safe(),
            EarlyDataOptions::default(),
            |client| {
                let client = client.version(HttpVersion::Http3Only);
                client.attempt_delay(Duration::from_millis(50))
            },
        )
        .await;
        let Pair {
            client, url, relay, ..
        } = pair;
        let address = relay.address;
        drop(relay);
        until(|| std::net::UdpSocket::bind(address).is_ok()).await;
        let request = http::Request::builder()
            .method(method.clone())
            .uri(&url)
            .body(Full::<Bytes>::default());
        let request = request.expect("a valid request");
        let error = within(client.send(request)).await.expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::Connect, "{method}: {error}");
        assert!(error.to_string().contains("nothing listens"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preparation_that_ends_on_tcp_is_reported() {
    let pair = Pair::racing(Duration::from_millis(50)).await;
    pair.open_tcp();
    pair.relay.hold_answers();
    let uri: http::Uri = pair.url.parse().expect("a URL");
    // A client that has met no server yet.
    let other = Client::builder()
        .platform_roots(false)
        .dangerous_insecure()
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http3)
        .attempt_delay(Duration::from_millis(50))
        .early_data(true);
    let other = other.build().expect("a client");
    let prepared = within(other.prepare_early_data(&uri)).await;
    assert_eq!(prepared.expect("it connects"), Prepared::NotHttp3);
}

/// Serves HTTP/3, on the first connection with datagrams, later without them. The first early connection
/// gets no answers, so that its requests wait for the settings.
async fn serve_with_fewer_settings(endpoint: Endpoint) {
    let mut has_failed = false;
    for index in 0.. {
        let Some(incoming) = endpoint.accept().await else {
            return;
        };
        let connection = incoming.accept().expect("configured").early();
        let connection = connection.await.expect("a handshake");
        let is_early = connection.early_data() == courser::EarlyData::Accepted;
        let is_silent = is_early && !has_failed;
        has_failed |= is_early;
        let mut config = h3::Config::new(courser::Side::Server);
        config.datagrams = index == 0;
        let service = tower::service_fn(move |_: http::Request<h3::Body>| async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            Ok::<_, h3::Error>(http::Response::new(Full::new(Bytes::new())))
        });
        crate::common::spawn(h3::serve(connection, service).config(config).into_future());
    }
}

/// RFC 9114 §7.2.4.2: a server that accepts early data must not lower its settings.
// One thread: the client uses each connection before it takes note of the end of the handshake.
#[tokio::test]
async fn settings_that_a_server_has_lowered_are_forgotten() {
    let identity = Identity::dev().expect("random numbers");
    let config = courser::ServerConfig::with_identity(&identity).expect("matching key");
    let config = config
        .alpn([h3::ALPN])
        .early_data(EarlyDataOptions::default());
    let endpoint = Endpoint::server(config, loopback()).expect("a port");
    let address = endpoint.local_addr().expect("bound");
    crate::common::spawn(serve_with_fewer_settings(endpoint.clone()));
    let client = Client::builder()
        .platform_roots(false)
        .root(identity.certificate())
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http3Only)
        .resolve("localhost", 0, [address.ip()])
        .early_data(true)
        .idle_timeout(Duration::from_millis(250))
        .build()
        .expect("a client");
    let url = format!("https://localhost:{}/", address.port());
    let accepted = Some(EarlyRequest::Accepted);
    for (retries, early_data) in [(0, None), (1, None), (0, accepted)] {
        let response = within(client.get(&url)).await.expect("answered");
        let timing = timing(&response);
        assert_eq!((timing.retries, timing.early_data), (retries, early_data));
        drop(text(response).await);
        // The next request opens another connection.
        until(|| endpoint.open_connections() == 0).await;
    }
}
