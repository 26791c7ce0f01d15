//! Sessions of clients through the proxy, to upstream servers on loopback.

mod hostile;
mod refusals;

use std::net::SocketAddr;
use std::sync::mpsc;

use courser::files::Files;
use courser::server::ServerHandle;
use courser::webtransport::{
    ApplicationCode, Closed, Config, Origins, Protocols, ReadError, WriteError,
};
use courser::{Endpoint, Identity, Side, h3};
use http::HeaderValue;
use tokio::net::UdpSocket;

use super::*;
use crate::record::Recorder;
use crate::site::Site;
use crate::webtransport::Echo;

/// A server with the echo at `/echo`, which other services may precede.
struct Upstream {
    handle: ServerHandle,
    identity: Identity,
    echo: Echo,
}

fn server(identity: &Identity, config: Config) -> courser::server::Bound {
    let mut http3 = h3::Config::new(Side::Server);
    webtransport::enable(&mut http3, Side::Server, config).expect("free numbers");
    let server = courser::serve("127.0.0.1:0", identity.clone()).config(http3);
    server.bind().expect("a port")
}

fn any_origin() -> Config {
    Config {
        origins: Origins::any(),
        ..Config::new()
    }
}

fn files() -> Site {
    Site::Files(Files::builder().open(".").expect("a folder"))
}

impl Upstream {
    fn start(config: Config) -> Self {
        let identity = Identity::dev().expect("random numbers");
        let bound = server(&identity, config);
        let handle = bound.handle();
        let echo = Echo::new("/echo", || None);
        let service = files().into_service(false, Recorder::default());
        let serving = bound.service(service.with_echo(Some(echo.clone())));
        tokio::spawn(async move { serving.await });
        Self {
            handle,
            identity,
            echo,
        }
    }
}

fn times() -> ProxyTimes {
    ProxyTimes {
        connect: Duration::from_secs(5),
        response: Duration::from_secs(5),
        body: Duration::from_secs(5),
    }
}

fn trusting(identity: &Identity) -> ClientConfig {
    ClientConfig::with_roots([identity.certificate()]).expect("roots")
}

/// A proxy of sessions, and what it has reported.
struct Gate {
    handle: ServerHandle,
    identity: Identity,
    sessions: SessionProxy,
    reports: mpsc::Receiver<String>,
}

impl Gate {
    fn to(address: SocketAddr, trusted: &Identity) -> Self {
        Self::with_limit(address, trusted, 100)
    }

    fn with_limit(address: SocketAddr, trusted: &Identity, limit: usize) -> Self {
        let url = format!("https://localhost:{}", address.port());
        Self::to_url(&url, trusted, limit)
    }

    fn to_url(url: &str, trusted: &Identity, limit: usize) -> Self {
        let (sender, reports) = mpsc::channel();
        let backend = SessionBackend::parse(url).expect("a URL");
        let sessions = SessionProxy::new(backend, trusting(trusted), times(), limit);
        let sessions = sessions.expect("valid");
        let sessions = sessions.on_failure(move |text| drop(sender.send(text.to_owned())));
        let identity = Identity::dev().expect("random numbers");
        let bound = server(&identity, any_origin());
        let handle = bound.handle();
        let service = files().into_service(false, Recorder::default());
        let serving = bound.service(service.with_sessions(Some(sessions.clone())));
        tokio::spawn(async move { serving.await });
        Self {
            handle,
            identity,
            sessions,
            reports,
        }
    }

    async fn client(&self) -> Client {
        Client::to(self.handle.local_addr(), &self.identity).await
    }

    fn report(&self) -> String {
        let reported = self.reports.recv_timeout(Duration::from_secs(5));
        reported.expect("a report")
    }
}

/// A connection of a client.
struct Client {
    http3: h3::Client,
    port: u16,
}

impl Client {
    async fn to(address: SocketAddr, identity: &Identity) -> Self {
        Self::with(address, trusting(identity)).await
    }

    async fn with(address: SocketAddr, config: ClientConfig) -> Self {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address"));
        let endpoint = endpoint.expect("a socket");
        let config = config.alpn([h3::ALPN]);
        let connecting = endpoint.connect_with(config, address, "localhost");
        let connection = within(connecting.expect("a name")).await;
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, Config::new()).expect("free numbers");
        Self {
            http3: h3::Client::with_config(connection.expect("connected"), settings),
            port: address.port(),
        }
    }

    fn request(&self, path: &str) -> SessionRequest {
        let uri = format!("https://localhost:{}{path}", self.port);
        SessionRequest::new(uri.parse().expect("a URI"))
    }

    async fn open(&self, path: &str) -> Session {
        let opening = webtransport::connect(&self.http3, self.request(path));
        within(opening).await.expect("a session")
    }

    async fn refused(&self, request: SessionRequest) -> Response<h3::Body> {
        match within(webtransport::connect(&self.http3, request)).await {
            Err(ConnectError::Refused(response)) => *response,
            other => panic!("{other:?}"),
        }
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    let limited = timeout(Duration::from_secs(20), future);
    limited.await.expect("in time")
}

async fn echoes(session: &Session, content: &[u8]) {
    let (mut send, mut receive) = within(session.open_bi()).await.expect("open");
    let write = async {
        send.write_all(content).await.expect("written");
        send.finish().expect("open");
    };
    let ((), echo) =
        within(async { tokio::join!(write, receive.read_to_end(content.len())) }).await;
    assert!(echo.expect("read") == content, "other content");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_datagrams_pass_in_both_directions() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let client = gate.client().await;
    let session = client.open("/echo").await;
    echoes(&session, &vec![7; 3_000_000]).await;
    let mut send = within(session.open_uni()).await.expect("open");
    within(send.write_all(b"there")).await.expect("written");
    send.finish().expect("open");
    let mut receive = within(session.accept_uni()).await.expect("an echo");
    assert_eq!(
        within(receive.read_to_end(10)).await.expect("read"),
        b"there"
    );
    session.datagrams().send(b"and back").expect("sent");
    let echo = within(session.datagrams().receive()).await;
    assert_eq!(echo.expect("an echo"), "and back");
    let stats = gate.sessions.stats();
    assert_eq!((stats.open, stats.forwarded, stats.failed), (1, 1, 0));
    session.close(0, "");
    within(async {
        while gate.sessions.stats().open > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Order of streams that the upstream server opens with its response, before the client has its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_streams_of_the_upstream_server_keep_their_order() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let client = gate.client().await;
    for _ in 0..5 {
        let session = client.open("/echo?open=300").await;
        let mut ids = Vec::new();
        for number in 0..300 {
            let (mut send, mut receive) = within(session.accept_bi()).await.expect("a stream");
            send.finish().expect("open");
            ids.push(receive.id());
            let line = within(receive.read_to_end(100)).await.expect("read");
            let line = String::from_utf8(line).expect("text");
            assert_eq!(line, format!("stream {number} of 300\n"));
        }
        assert!(ids.is_sorted());
        session.close(0, "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_of_streams_pass_the_proxy() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let session = gate.client().await.open("/echo").await;
    let (mut send, mut receive) = within(session.open_bi()).await.expect("open");
    within(send.write_all(b"1")).await.expect("written");
    let first = within(receive.read_chunk(1)).await.expect("read");
    assert_eq!(first.expect("a byte"), "1");
    send.reset(42).expect("open");
    let error = within(receive.read_chunk(1)).await.expect_err("a reset");
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(42))));
    let (mut send, mut receive) = within(session.open_bi()).await.expect("open");
    within(send.write_all(b"1")).await.expect("written");
    within(receive.read_chunk(1)).await.expect("read");
    receive.stop(4_000_000_000).expect("open");
    let code = within(send.stopped()).await.expect("open");
    assert_eq!(code, Some(ApplicationCode(4_000_000_000)));
    let error = within(send.write_all(b"2")).await.expect_err("stopped");
    assert_eq!(
        error,
        WriteError::Stopped(Some(ApplicationCode(4_000_000_000)))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_end_closes_with_its_reason() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let client = gate.client().await;
    let closed = within(
        client
            .open("/echo?close=4711&reason=so+long")
            .await
            .closed(),
    )
    .await;
    let Closed::Peer(reason) = closed else {
        panic!("{closed}");
    };
    assert_eq!(reason.code, ApplicationCode(4711));
    assert_eq!(reason.message, "so long");
    // The other direction, which a service of the upstream server sees.
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let far = Accepting::start(move |session| {
        let sender = sender.clone();
        async move { drop(sender.send(session.closed().await)) }
    });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let client = gate.client().await;
    client.open("/any").await.close(7, "bye");
    let closed = within(seen.recv()).await.expect("an end");
    assert_eq!(
        closed.to_string(),
        "the peer has closed the session with code 7: bye"
    );
    // A client that is lost has no reason, and none is invented.
    let session = client.open("/any").await;
    session.quic().close(7u32.into(), b"");
    let closed = within(seen.recv()).await.expect("an end");
    // The proxy closes the connection of the session too, and that may arrive first.
    let cancelled = Closed::Reset(h3::Code::REQUEST_CANCELLED);
    assert!(
        closed == cancelled || closed == Closed::ConnectionLost,
        "{closed}"
    );
}

/// A server that gives each session to a function.
struct Accepting(ServerHandle, Identity);

impl Accepting {
    fn start<F, S>(serve: F) -> Self
    where
        F: Fn(Session) -> S + Clone + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let identity = Identity::dev().expect("random numbers");
        let bound = server(&identity, any_origin());
        let handle = bound.handle();
        let service = tower::service_fn(move |mut request: Request<server::Body>| {
            let serve = serve.clone();
            async move {
                let upgrade = webtransport::upgrade(&mut request).protocols(["two", "three"]);
                let mut incoming = match upgrade.check().await {
                    Ok(incoming) => incoming,
                    Err(response) => return Ok(response),
                };
                let seen = format!("{:?} {}", incoming.headers(), incoming.uri());
                if let Ok(seen) = HeaderValue::try_from(seen) {
                    incoming.response_headers_mut().insert("x-seen", seen);
                }
                Ok::<Response<h3::Empty>, std::convert::Infallible>(incoming.accept(serve))
            }
        });
        let serving = bound.service(service);
        tokio::spawn(async move { serving.await });
        Self(handle, identity)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_and_response_pass_with_protocols_origin_and_fields() {
    let far = Accepting::start(|session| async move { drop(session.closed().await) });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let client = gate.client().await;
    let mut headers = HeaderMap::new();
    headers.insert("x-kept", HeaderValue::from_static("1"));
    headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.9"));
    let origin = HeaderValue::from_static("https://page.test");
    let request = client.request("/a?b=c").headers(headers).origin(origin);
    let request = request.protocols(Protocols::new(["one", "two"]).expect("valid"));
    let response = within(webtransport::request_session(&client.http3, request)).await;
    let response = response.expect("a session");
    assert_eq!(response.body().protocol(), Some("two"));
    let seen = response.headers()["x-seen"].to_str().expect("text");
    for expected in [
        "\"x-kept\": \"1\"",
        "\"origin\": \"https://page.test\"",
        "\"x-forwarded-for\": \"127.0.0.1\"",
        "\"wt-available-protocols\": \"\\\"one\\\", \\\"two\\\"\"",
        &format!("https://localhost:{}/a?b=c", client.port),
        "3.0 courser-",
    ] {
        assert!(seen.contains(expected), "{expected} in {seen}");
    }
    assert!(
        response.headers()["via"]
            .to_str()
            .expect("text")
            .contains("courser-")
    );
}

/// The request to end soon passes in both directions: from an upstream server that drains, and from a proxy that does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_passes_the_proxy() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let session = gate.client().await.open("/echo").await;
    upstream.echo.drain();
    within(session.draining()).await;
    let closed = within(session.closed()).await;
    assert_eq!(
        closed.to_string(),
        "the peer has closed the session with code 0: the server ends"
    );
    let (sender, mut drains) = tokio::sync::mpsc::unbounded_channel();
    let far = Accepting::start(move |session| {
        let sender = sender.clone();
        async move {
            session.draining().await;
            let _ = sender.send(());
            session.close(3, "as asked");
        }
    });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let session = gate.client().await.open("/any").await;
    gate.handle.drain();
    within(session.draining()).await;
    within(drains.recv()).await.expect("draining");
    let closed = within(session.closed()).await;
    assert_eq!(
        closed.to_string(),
        "the peer has closed the session with code 3: as asked"
    );
}

/// Forwards datagrams between one client and a server, and delays them in both directions.
async fn slow_path(to: SocketAddr, delay: Duration) -> SocketAddr {
    let near = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
    let far = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
    let address = near.local_addr().expect("bound");
    let (from_client, client) = tokio::sync::watch::channel(address);
    let forward = move |received: Vec<u8>, by: Arc<UdpSocket>, to: SocketAddr| async move {
        tokio::time::sleep(delay).await;
        let _ = by.send_to(&received, to).await;
    };
    let (near_too, far_too) = (near.clone(), far.clone());
    tokio::spawn(async move {
        let mut buffer = [0; 65_536];
        while let Ok((len, from)) = near.recv_from(&mut buffer).await {
            from_client.send_replace(from);
            tokio::spawn(forward(buffer[..len].to_vec(), far.clone(), to));
        }
    });
    tokio::spawn(async move {
        let mut buffer = [0; 65_536];
        while let Ok((len, _)) = far_too.recv_from(&mut buffer).await {
            let to = *client.borrow();
            tokio::spawn(forward(buffer[..len].to_vec(), near_too.clone(), to));
        }
    });
    address
}

/// K668: what the proxy has read reaches a client on a slow path, although its sender closes the session meanwhile. A
/// congestion window that grows by round trips holds it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_read_arrives_before_the_end() {
    const CONTENT: usize = 40_000;
    let far = Accepting::start(|session| async move {
        let Ok(mut send) = session.open_uni().await else {
            return;
        };
        let _ = send.write_all(&vec![9; CONTENT]).await;
        let _ = send.finish();
        // The proxy has received everything, and then it has read it.
        let _ = send.stopped().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        session.close(0, "done");
    });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let path = slow_path(gate.handle.local_addr(), Duration::from_millis(40)).await;
    let client = Client::to(path, &gate.identity).await;
    let session = client.open("/any").await;
    let mut receive = within(session.accept_uni()).await.expect("a stream");
    let read = within(receive.read_to_end(CONTENT)).await.expect("whole");
    assert_eq!(read.len(), CONTENT);
    let closed = within(session.closed()).await;
    assert!(closed.reason().is_some_and(|it| it.message == "done"));
}

/// WT-h3-076: GOAWAY of the upstream server becomes the request to end soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goaway_of_the_upstream_server_reaches_the_client() {
    let far = Accepting::start(|session| async move { drop(session.closed().await) });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let session = gate.client().await.open("/any").await;
    far.0.drain();
    within(session.draining()).await;
    assert!(session.close_reason().is_none());
    session.close(0, "");
}

/// WT-h3-077, K673: a server that drains asks for the end of its sessions, and closes those that are left at its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_left_at_the_deadline_get_a_reason() {
    let upstream = Upstream::start(any_origin());
    let identity = Identity::dev().expect("random numbers");
    let server = courser::serve("127.0.0.1:0", identity.clone()).webtransport(any_origin());
    let bound = server.deadline(Duration::from_millis(300)).bind();
    let bound = bound.expect("a port");
    let handle = bound.handle();
    let url = format!("https://localhost:{}", upstream.handle.local_addr().port());
    let backend = SessionBackend::parse(&url).expect("a URL");
    let sessions = SessionProxy::new(backend, trusting(&upstream.identity), times(), 10);
    let service = files().into_service(false, Recorder::default());
    let service = service.with_sessions(Some(sessions.expect("valid")));
    let serving = tokio::spawn(async move { bound.service(service).await });
    let session = Client::to(handle.local_addr(), &identity)
        .await
        .open("/echo")
        .await;
    handle.drain();
    within(session.draining()).await;
    let closed = within(session.closed()).await;
    assert_eq!(
        closed.to_string(),
        "the peer has closed the session with code 0: the server ends"
    );
    within(serving).await.expect("no panic").expect("drained");
}

/// A stream that its sender has not finished does not end as if it were whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_end_with_their_session_are_not_finished() {
    let far = Accepting::start(|session| async move {
        let Ok(mut send) = session.open_uni().await else {
            return;
        };
        let _ = send.write_all(b"the first half, ").await;
        let mut go = session.accept_uni().await.expect("a stream");
        let _ = go.read_to_end(10).await;
        session.close(0, "no more");
    });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let client = gate.client().await;
    for _ in 0..5 {
        let session = client.open("/any").await;
        let mut receive = within(session.accept_uni()).await.expect("a stream");
        let first = within(receive.read_chunk(100)).await.expect("read");
        assert_eq!(first.expect("bytes"), "the first half, ");
        within(session.open_uni())
            .await
            .expect("open")
            .finish()
            .expect("open");
        let next = within(receive.read_chunk(100)).await;
        assert!(next.is_err(), "{next:?}");
    }
}

/// Both proxies are of one process, so that a second one looks like the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loops_are_refused() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let second = Gate::to(gate.handle.local_addr(), &gate.identity);
    let client = second.client().await;
    let refused = client.refused(client.request("/echo")).await;
    assert_eq!(refused.status(), StatusCode::LOOP_DETECTED);
}
