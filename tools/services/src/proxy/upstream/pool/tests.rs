use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;
use crate::proxy::upstream::admission::Admission;

/// Starts a server that sends `answers` in turn on each connection and then closes it. Returns the channel of
/// connection numbers.
async fn server(answers: &'static [&'static str]) -> (SocketAddr, mpsc::UnboundedReceiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (answered, count) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut connections = 0..;
        while let Ok((stream, _)) = listener.accept().await {
            let index = connections.next().expect("an unlimited sequence");
            tokio::spawn(answer(stream, answers, answered.clone(), index));
        }
    });
    (address, count)
}

/// Responds to each request and reports the number of its connection.
async fn answer(
    mut stream: TcpStream,
    answers: &'static [&'static str],
    answered: mpsc::UnboundedSender<usize>,
    index: usize,
) {
    for answer in answers {
        let mut request = Vec::new();
        // The content arrives in the same packet.
        while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let _ = answered.send(index);
        if answer.is_empty() {
            return;
        }
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

fn pool(server: SocketAddr) -> Arc<Pool<HttpConnector>> {
    pool_of(server, 100)
}

/// Returns a pool with at most this many connections.
fn pool_of(server: SocketAddr, most: usize) -> Arc<Pool<HttpConnector>> {
    let uri = format!("http://{server}/").parse().expect("a URL");
    let timeout = Duration::from_secs(5);
    let dialer = Dialer::new(HttpConnector::new(), uri, timeout, most);
    Arc::new(Pool::new(dialer))
}

async fn send(
    pool: &Arc<Pool<HttpConnector>>,
    request: Request<Body>,
) -> Result<Response<Http1Content<Lease<HttpConnector>>>, Failure> {
    send_with(pool, request, None).await
}

async fn send_with(
    pool: &Arc<Pool<HttpConnector>>,
    request: Request<Body>,
    interim: Option<InterimSender>,
) -> Result<Response<Http1Content<Lease<HttpConnector>>>, Failure> {
    let admission = Arc::new(Admission::new(1, 1, Duration::ZERO));
    let permit = admission.admit(None).await.expect("the first request");
    pool.send(request, permit, interim, &mut UpstreamFacts::default())
        .await
}

async fn ask(pool: &Arc<Pool<HttpConnector>>) -> Response<Http1Content<Lease<HttpConnector>>> {
    let response = send(pool, request(Body::empty())).await;
    response.expect("a response")
}

async fn failure(pool: &Arc<Pool<HttpConnector>>, request: Request<Body>) -> Cause {
    let response = send(pool, request).await;
    response.err().expect("a failure").cause
}

fn request(body: Body) -> Request<Body> {
    let request = Request::get("/").header("host", "a.test");
    request.body(body).expect("a request")
}

/// Waits until all idle connections satisfy `is_settled`.
async fn settle(pool: &Arc<Pool<HttpConnector>>, is_settled: impl Fn(&SendRequest<Body>) -> bool) {
    for _ in 0..500 {
        let is_over = |(it, _): &(Connection, _)| is_settled(&it.sender);
        if pool.idle.lock().connections.iter().all(is_over) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the connections do not settle");
}

const SHORT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[tokio::test]
async fn connection_is_reused_after_its_response_is_read() {
    let (address, mut answered) = server(&[SHORT; 8]).await;
    let pool = pool(address);
    for _ in 0..3 {
        let response = ask(&pool).await;
        let content = response.into_body().collect().await.expect("content");
        assert_eq!(content.to_bytes(), "hi");
        settle(&pool, SendRequest::is_ready).await;
        assert_eq!(answered.recv().await, Some(0));
    }
    // Two concurrent requests need two connections.
    let (one, two) = tokio::join!(ask(&pool), ask(&pool));
    let mut used = [answered.recv().await, answered.recv().await];
    used.sort_unstable();
    assert_eq!(used, [Some(0), Some(1)]);
    assert_eq!(pool.idle.lock().connections.len(), 0);
    drop((one, two));
    assert_eq!(pool.idle.lock().connections.len(), 2);
}

#[tokio::test]
async fn response_without_content_frees_its_connection_at_once() {
    let (address, _) = server(&["HTTP/1.1 204 No Content\r\n\r\n"; 2]).await;
    let pool = pool(address);
    let response = ask(&pool).await;
    assert_eq!(pool.idle.lock().connections.len(), 1);
    drop(response);
    assert_eq!(pool.idle.lock().connections.len(), 1);
}

#[tokio::test]
async fn requests_take_another_connection_when_the_server_has_closed_theirs() {
    // It closes after each response, without `Connection: close`.
    let (address, mut answered) = server(&[SHORT]).await;
    let pool = pool(address);
    for connection in 0..3 {
        let response = ask(&pool).await;
        let content = response.into_body().collect().await.expect("content");
        assert_eq!(content.to_bytes(), "hi");
        assert_eq!(answered.recv().await, Some(connection));
        settle(&pool, SendRequest::is_closed).await;
    }
}

/// RFC 9112 §9.3.1: the server closes the connection while the request is on its way.
#[tokio::test]
async fn idempotent_requests_without_content_are_repeated_once() {
    let (address, mut answered) = server(&[SHORT, NOTHING]).await;
    let pool = pool(address);
    drop(ask(&pool).await.into_body().collect().await);
    settle(&pool, SendRequest::is_ready).await;
    let content = ask(&pool).await.into_body().collect().await;
    assert_eq!(content.expect("content").to_bytes(), "hi");
    let connections = [(); 3].map(|()| answered.try_recv().ok());
    assert_eq!(connections, [Some(0), Some(0), Some(1)]);

    settle(&pool, SendRequest::is_ready).await;
    let mut post = request(Body::empty());
    *post.method_mut() = http::Method::POST;
    assert_eq!(failure(&pool, post).await, Cause::UpstreamClosed);
    assert_eq!(answered.try_recv().ok(), Some(1));
    assert!(answered.try_recv().is_err());

    drop(ask(&pool).await.into_body().collect().await);
    settle(&pool, SendRequest::is_ready).await;
    let mut put = request(Body::full("content"));
    *put.method_mut() = http::Method::PUT;
    assert_eq!(failure(&pool, put).await, Cause::UpstreamClosed);
}

/// RFC 9110 §15.5.9: the server is about to close the idle connection.
#[tokio::test]
async fn request_timeout_on_a_reused_connection_is_not_for_the_client() {
    const LATE: &str =
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let (address, mut answered) = server(&[SHORT, LATE]).await;
    let pool = pool(address);
    drop(ask(&pool).await.into_body().collect().await);
    settle(&pool, SendRequest::is_ready).await;
    assert_eq!(ask(&pool).await.status(), 200);
    let connections = [(); 3].map(|()| answered.try_recv().ok());
    assert_eq!(connections, [Some(0), Some(0), Some(1)]);
    // A request with content may be what was too slow.
    drop(ask(&pool).await.into_body().collect().await);
    let (address, _) = server(&[SHORT, LATE]).await;
    let pool = pool_of(address, 100);
    drop(ask(&pool).await.into_body().collect().await);
    settle(&pool, SendRequest::is_ready).await;
    let mut put = request(Body::full("content"));
    *put.method_mut() = http::Method::PUT;
    let response = send(&pool, put).await.expect("a response");
    assert_eq!(response.status(), 408);
    // So is one on a new connection.
    let (address, _) = server(&[LATE]).await;
    assert_eq!(ask(&pool_of(address, 100)).await.status(), 408);
}

/// RFC 9112 §9.5: the rest of an upload resets the connection, but the response has arrived before.
#[tokio::test]
async fn response_before_a_reset_arrives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 100];
            let _ = stream.read_exact(&mut request).await;
            let answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";
            let _ = stream.write_all(answer.as_bytes()).await;
            // Closing with unread bytes resets the connection.
        }
    });
    // The order of the bytes and the reset is that of the system, so more than one may be needed to see both.
    for _ in 0..20 {
        let pool = pool(address);
        let mut post = request(Body::full(vec![b'x'; 3_000_000]));
        *post.method_mut() = http::Method::POST;
        let response = send(&pool, post).await.expect("a response");
        assert_eq!(response.status(), 413);
        let content = response.into_body().collect().await.expect("content");
        assert_eq!(content.to_bytes(), "big");
    }
}

/// A connector to a server that begins to listen at the time of the third connection.
#[derive(Clone)]
struct Starting {
    socket: Arc<socket2::Socket>,
    attempts: Arc<std::sync::atomic::AtomicUsize>,
}

impl Dial for Starting {
    type Io = TcpStream;

    async fn dial(
        &self,
        _: http::Uri,
    ) -> Result<(TcpStream, Option<SocketAddr>), crate::body::BoxError> {
        use std::sync::atomic::Ordering::Relaxed;
        if self.attempts.fetch_add(1, Relaxed) == 2 {
            self.socket.listen(10)?;
        }
        let address = self
            .socket
            .local_addr()?
            .as_socket()
            .expect("an IP address");
        Ok((TcpStream::connect(address).await?, Some(address)))
    }
}

#[tokio::test]
async fn requests_outlast_a_restart_of_the_server() {
    use std::sync::atomic::Ordering::Relaxed;
    for (longest, expected) in [(Duration::from_secs(60), 3), (Duration::ZERO, 1)] {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = Arc::new(socket.expect("a socket"));
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        socket.bind(&any.into()).expect("a port");
        let attempts = Arc::default();
        let connector = Starting { socket, attempts };
        let uri = "http://a.test/".parse().expect("a URL");
        let dialer = Dialer::new(connector.clone(), uri, Duration::from_secs(5), 100);
        let dialed = dialer.retrying(longest).dial().await;
        assert_eq!(connector.attempts.load(Relaxed), expected);
        match expected {
            1 => assert_eq!(
                dialed.err().map(|it| it.cause),
                Some(Cause::UpstreamRefused)
            ),
            _ => assert!(dialed.is_ok()),
        }
    }
}

/// RFC 9112 §9.3.1: the server has begun its response, so it has processed the request.
#[tokio::test]
async fn request_is_not_repeated_after_the_first_byte_of_a_response() {
    let (address, mut answered) = server(&[SHORT, "HTTP/1.1 2"]).await;
    let pool = pool(address);
    drop(ask(&pool).await.into_body().collect().await);
    settle(&pool, SendRequest::is_ready).await;
    let pending = failure(&pool, request(Body::empty()));
    let late = tokio::time::timeout(Duration::from_secs(5), pending).await;
    assert_eq!(late, Ok(Cause::UpstreamClosed));
    let connections = [(); 3].map(|()| answered.try_recv().ok());
    assert_eq!(connections, [Some(0), Some(0), None]);
}

#[tokio::test]
async fn interim_responses_to_a_repeated_request_arrive() {
    const HINTED: &str =
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let (address, _answered) = server(&[HINTED, NOTHING]).await;
    let pool = pool(address);
    drop(ask(&pool).await.into_body().collect().await);
    settle(&pool, SendRequest::is_ready).await;
    let (sender, arrived) = InterimSender::for_tests();
    let response = send_with(&pool, request(Body::empty()), Some(sender)).await;
    assert_eq!(response.expect("repeated").status(), StatusCode::OK);
    assert_eq!(arrived(), [103]);
}

/// The connection of a request that has just ended is taken, although it needs a moment.
#[tokio::test]
async fn requests_at_the_maximum_reuse_connections() {
    let (address, mut answered) = server(&[SHORT; 50]).await;
    let pool = pool_of(address, 1);
    for _ in 0..50 {
        let content = ask(&pool).await.into_body().collect().await;
        assert_eq!(content.expect("content").to_bytes(), "hi");
        assert_eq!(answered.recv().await, Some(0));
        assert!(pool.dialer.open().count() <= 1);
    }
}

#[tokio::test]
async fn fresh_connection_that_closes_is_an_error() {
    let (address, mut answered) = server(&[NOTHING]).await;
    let cause = failure(&pool(address), request(Body::empty())).await;
    assert_eq!(cause, Cause::UpstreamClosed);
    assert_eq!(answered.recv().await, Some(0));
    assert!(answered.try_recv().is_err());
}

#[tokio::test]
async fn connection_with_an_unread_response_is_passed_over() {
    let (address, mut answered) = server(&[LONG, SHORT]).await;
    let pool = pool(address);
    // The rest is never sent.
    drop(ask(&pool).await);
    assert_eq!(answered.recv().await, Some(0));
    drop(ask(&pool).await);
    assert_eq!(answered.recv().await, Some(1));
}

#[tokio::test]
async fn connection_that_cannot_be_opened_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let cause = failure(&pool(address), request(Body::empty())).await;
    assert_eq!(cause, Cause::UpstreamRefused);
}

/// Closes the connection without a response.
const NOTHING: &str = "";

/// The beginning of a response whose content does not end.
const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegun";

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed() {
    let (address, mut answered) = server(&[SHORT; 2]).await;
    let pool = pool(address);
    drop(ask(&pool).await.into_body().collect().await);
    assert_eq!(answered.recv().await, Some(0));
    assert_eq!(pool.idle.lock().connections.len(), 1);
    tokio::time::sleep(POOL_IDLE * 2).await;
    assert_eq!(pool.idle.lock().connections.len(), 0);
    assert!(!pool.idle.lock().is_watched);
    drop(ask(&pool).await.into_body().collect().await);
    assert_eq!(answered.recv().await, Some(1));
    assert!(pool.idle.lock().is_watched);
}

#[tokio::test]
async fn response_may_be_dropped_outside_the_runtime() {
    let (address, _answered) = server(&[SHORT; 2]).await;
    let pool = pool(address);
    let response = ask(&pool).await;
    let dropped = std::thread::spawn(move || drop(response)).join();
    assert!(dropped.is_ok());
    let idle = pool.idle.lock();
    assert_eq!((idle.connections.len(), idle.is_watched), (1, false));
}

#[tokio::test]
async fn at_most_1024_idle_connections_are_kept() {
    let (mut idle, mut connections) = (Idle::default(), Vec::new());
    for count in 1..=1025 {
        let (near, far) = tokio::io::duplex(16);
        let io = hyper_util::rt::TokioIo::new(near);
        let (sender, connection) = Builder::new().handshake(io).await.expect("a connection");
        connections.push((connection, far));
        let facts = ConnectionFacts::new(None, Duration::ZERO);
        let surplus = idle.put(Connection { sender, facts }, Instant::now());
        assert_eq!(surplus.is_some(), count > 1024, "{count}");
    }
    assert_eq!(idle.connections.len(), 1024);
}
