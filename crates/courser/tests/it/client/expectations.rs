//! Waiting for 100 (Continue) before the content of a request is sent (RFC 9110 §10.1.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use courser::client::HttpVersion;
use courser::{Endpoint, Identity, ServerConfig, Side, h3};
use futures_util::stream;
use http::{Request, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::server::Content;
use super::*;

/// Longer than a test may take.
const NEVER: Duration = Duration::from_secs(3600);
const CONTENT: &[u8] = b"the content";

/// A client with this time to wait, and an HTTP/1.1 connection that accepted its request. The response is awaited
/// in a task.
struct Waiting {
    connection: TcpStream,
    response: JoinHandle<Response<Body>>,
    head: String,
}

impl Waiting {
    async fn start(limit: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let client = Client::builder()
            .proxy(Proxy::Direct)
            .expect_continue_timeout(limit)
            .build()
            .expect("a client");
        let request = Request::post(format!("http://127.0.0.1:{port}/"))
            .header(header::EXPECT, "100-continue")
            .body(Full::new(Bytes::from_static(CONTENT)))
            .expect("a request");
        let response = crate::common::spawn(async move {
            let response = within(client.send(request)).await;
            response.expect("a response")
        });
        let (mut connection, _) = within(listener.accept()).await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(
                within(connection.read_u8())
                    .await
                    .expect("a header section"),
            );
        }
        let head = String::from_utf8(head).expect("text");
        Self {
            connection,
            response,
            head,
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let written = self.connection.write_all(bytes).await;
        written.expect("an open connection");
    }

    async fn read_content(&mut self) {
        let mut content = [0; CONTENT.len()];
        let read = within(self.connection.read_exact(&mut content)).await;
        read.expect("content");
        assert_eq!(content, CONTENT);
    }

    /// Returns true if nothing has arrived after a while.
    async fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        let read = self.connection.read(&mut byte);
        let waited = tokio::time::timeout(Duration::from_millis(200), read).await;
        waited.is_err()
    }

    async fn response(self) -> Response<Body> {
        within(self.response).await.expect("no panic")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_follows_100_over_http1() {
    let mut waiting = Waiting::start(NEVER).await;
    assert!(waiting.head.contains("expect: 100-continue"));
    assert!(waiting.head.contains("content-length: 11"));
    waiting.write(b"HTTP/1.1 102 Processing\r\n\r\n").await;
    assert!(waiting.is_silent().await, "102 permits nothing");
    waiting.write(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    waiting.read_content().await;
    waiting
        .write(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")
        .await;
    assert_eq!(waiting.response().await.status(), StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_follows_the_time_limit_over_http1() {
    let limit = Duration::from_millis(300);
    let began = Instant::now();
    let mut waiting = Waiting::start(limit).await;
    waiting.read_content().await;
    assert!(began.elapsed() >= limit);
    waiting.write(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(waiting.response().await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_withheld_after_a_refusal_over_http1() {
    let mut waiting = Waiting::start(NEVER).await;
    waiting
        .write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 10\r\n\r\n01234")
        .await;
    assert!(waiting.is_silent().await, "the response has not ended");
    waiting.write(b"56789").await;
    let Waiting {
        mut connection,
        response,
        ..
    } = waiting;
    let response = within(response).await.expect("no panic");
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(text(response).await, "0123456789");
    let mut rest = Vec::new();
    let read = within(connection.read_to_end(&mut rest)).await;
    assert!(read.is_err() || rest.is_empty(), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_follows_a_success_over_http1() {
    let mut waiting = Waiting::start(NEVER).await;
    waiting
        .write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .await;
    waiting.read_content().await;
    assert_eq!(waiting.response().await.status(), StatusCode::OK);
}

/// Returns content, and a flag that is set when it is read.
fn observed() -> (Content, Arc<AtomicBool>) {
    let is_read = Arc::<AtomicBool>::default();
    let seen = is_read.clone();
    let frames = stream::once(async move {
        seen.store(true, Ordering::SeqCst);
        Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(CONTENT)))
    });
    let content = StreamBody::new(frames).map_err(Into::into).boxed_unsync();
    (content, is_read)
}

/// Refuses the first request over HTTP/3 without a look at its content, and permits and echoes that of others.
async fn serve_http3(endpoint: Endpoint) -> Option<()> {
    let connection = endpoint.accept().await?.await.ok()?;
    let server = h3::ServerConnection::new(connection, h3::Config::new(Side::Server));
    let (_, respond) = server.accept().await.ok()?.resolve().await.ok()?;
    let mut refusal = Response::new(Full::new(Bytes::from_static(b"no")));
    *refusal.status_mut() = StatusCode::FORBIDDEN;
    respond.send(refusal).await.ok()?;
    while let Ok(unresolved) = server.accept().await {
        let (request, mut respond) = unresolved.resolve().await.ok()?;
        let mut permission = Response::new(());
        *permission.status_mut() = StatusCode::CONTINUE;
        respond.interim(permission).await.ok()?;
        let content = request.into_body().collect().await.ok()?.to_bytes();
        respond.send(Response::new(Full::new(content))).await.ok()?;
    }
    Some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_sent_or_withheld_over_http3() {
    let identity = Identity::dev().expect("a certificate");
    let config = ServerConfig::with_identity(&identity).expect("matching key");
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = Endpoint::server(config.alpn([h3::ALPN]), address).expect("a port");
    let port = endpoint.local_addr().expect("bound").port();
    crate::common::spawn(serve_http3(endpoint));
    let client = Client::builder()
        .platform_roots(false)
        .root(identity.certificate())
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http3Only)
        .expect_continue_timeout(NEVER)
        .build()
        .expect("a client");
    for (status, is_sent) in [(403, false), (200, true)] {
        let (content, is_read) = observed();
        let request = Request::post(format!("https://127.0.0.1:{port}/"))
            .header(header::EXPECT, "100-continue")
            .body(content)
            .expect("a request");
        let response = within(client.send(request)).await.expect("a response");
        assert_eq!(response.status(), status);
        let received = text(response).await;
        assert_eq!(received.as_bytes() == CONTENT, is_sent, "{received}");
        assert_eq!(is_read.load(Ordering::SeqCst), is_sent);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_content_gets_an_expectation_on_request() {
    let mut server = super::raw::Raw::start(b"\r\n\r\n", &[REFUSAL, ACCEPTANCE]).await;
    let client = Client::builder()
        .proxy(Proxy::Direct)
        .expect_continue_above(10)
        .build()
        .expect("a client");
    let request = Request::put(server.url("/"))
        .body(Full::new(Bytes::from_static(CONTENT)))
        .expect("a request");
    // After 417, the request is repeated without the expectation.
    let response = within(client.send(request)).await.expect("a response");
    assert_eq!(response.status(), StatusCode::OK);
    assert!(server.request().await.contains("expect: 100-continue"));
    assert!(!server.request().await.contains("expect"));
}

const REFUSAL: &[u8] =
    b"HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const ACCEPTANCE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
