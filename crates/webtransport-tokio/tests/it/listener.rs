//! Programs without other resources of HTTP.

use courser_http3_tokio as h3;
use courser_quic::{
    ClientConfig, EarlyData, EarlyDataOptions, Endpoint, Identity, ServerConfig, Side,
};
use courser_webtransport_tokio::{
    Client, Closed, Config, ConnectError, Listener, OpenError, Origins, RefusalKind, Session,
    connect, enable,
};
use http::{HeaderValue, StatusCode};

use crate::{wish, within};

fn listen(identity: &Identity, config: Config) -> (Listener, String) {
    let listener = Listener::bind_with("127.0.0.1:0", identity, config).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, format!("https://localhost:{port}"))
}

fn client(identity: &Identity) -> Client {
    let client = Client::new().trust_roots([identity.certificate()]);
    client.expect("a certificate")
}

async fn open(listener: &mut Listener, client: &Client, url: &str) -> (Session, Session) {
    let accepting = async {
        let request = listener.accept().await.expect("a request");
        request.accept().await.expect("a session")
    };
    let (far, near) = within(async { tokio::join!(accepting, client.connect(url)) }).await;
    (near.expect("a session"), far)
}

#[tokio::test]
async fn requests_are_accepted_and_rejected_with_their_facts() {
    let identity = Identity::dev().expect("a certificate");
    let (mut listener, url) = listen(&identity, Config::new());
    let origin = HeaderValue::try_from(url.clone()).expect("a value");
    let client = client(&identity).origin(origin.clone());
    let client = client.protocols(["two", "one"]).expect("names");
    let path = format!("{url}/chat?x=1");
    let accepting = async {
        let request = listener.accept().await.expect("a request");
        assert_eq!(request.uri(), path.as_str());
        assert_eq!(request.origin(), Some(&origin));
        assert_eq!(request.headers()["origin"], origin);
        let offered: Vec<_> = request.protocols().iter().collect();
        assert_eq!(offered, ["two", "one"]);
        assert!(request.remote_address().ip().is_loopback());
        let request = request.protocol("one").expect("offered");
        let session = request.accept().await.expect("a session");
        let refused = listener.accept().await.expect("a request");
        refused.reject(StatusCode::NOT_FOUND);
        (session, listener)
    };
    let connecting = async {
        let session = client.connect(&path).await.expect("a session");
        let error = client.connect(&url).await.expect_err("rejected");
        (session, error)
    };
    let ((far, listener), (near, error)) =
        within(async { tokio::join!(accepting, connecting) }).await;
    assert_eq!(near.protocol(), Some("one"));
    assert_eq!(near.dialect(), far.dialect());
    let OpenError::Session(ConnectError::Refused(response)) = error else {
        panic!("{error}");
    };
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let stats = listener.monitor().stats();
    assert_eq!((stats.open, stats.opened), (1, 1));
    assert_eq!(stats.refused, [(RefusalKind::Application, 1)]);
    near.close(1, "bye");
    let closed = within(far.closed()).await;
    assert!(matches!(closed, Closed::Peer(reason) if reason.message == "bye"));
}

/// A dropped listener takes neither clients nor sessions, and leaves the open ones alone.
#[tokio::test]
async fn sessions_outlive_their_listener() {
    let identity = Identity::dev().expect("a certificate");
    let (mut listener, url) = listen(&identity, Config::new());
    let client = client(&identity);
    let (near, far) = open(&mut listener, &client, &url).await;
    drop(listener);
    let mut send = within(near.open_uni()).await.expect("open");
    within(send.write_all(b"still here"))
        .await
        .expect("written");
    send.finish().expect("open");
    let mut receive = within(far.accept_uni()).await.expect("a stream");
    let read = within(receive.read_to_end(100)).await.expect("whole");
    assert_eq!(read, b"still here");
    let error = within(client.connect(&url)).await.expect_err("refused");
    assert!(matches!(error, OpenError::Connection { .. }), "{error}");
}

#[tokio::test]
async fn a_listener_drains() {
    let identity = Identity::dev().expect("a certificate");
    let (mut listener, url) = listen(&identity, Config::new());
    let client = client(&identity);
    let (near, far) = open(&mut listener, &client, &url).await;
    listener.drain();
    within(near.draining()).await;
    within(far.draining()).await;
    near.close(0, "");
    within(far.closed()).await;
    let error = within(client.connect(&url)).await.expect_err("refused");
    assert!(matches!(error, OpenError::Connection { .. }), "{error}");
}

#[tokio::test]
async fn pages_of_other_origins_never_reach_the_listener() {
    let identity = Identity::dev().expect("a certificate");
    let (mut listener, url) = listen(&identity, Config::new());
    let evil = client(&identity).origin(HeaderValue::from_static("https://evil.test"));
    let error = within(evil.connect(&url)).await.expect_err("refused");
    assert!(
        matches!(&error, OpenError::Session(ConnectError::Refused(it)) if it.status() == 403),
        "{error}"
    );
    // A request that passes is the first one.
    let good = client(&identity);
    open(&mut listener, &good, &format!("{url}/good")).await;
    assert_eq!(listener.monitor().stats().opened, 1);
    let any = Config {
        origins: Origins::any(),
        ..Config::new()
    };
    let (mut listener, url) = listen(&identity, any);
    open(&mut listener, &evil, &url).await;
}

/// `Identity::dev` has a certificate that is valid for too long.
#[tokio::test]
async fn certificates_are_trusted_by_their_hash_for_two_weeks_only() {
    let identity = Identity::dev().expect("a certificate");
    let (_listener, url) = listen(&identity, Config::new());
    let unknown = Client::new().trust_hashes([[0; 32]]).expect("a hash");
    let error = within(unknown.connect(&url)).await.expect_err("untrusted");
    let text = error.to_string();
    assert!(text.contains("none of those that are trusted"), "{text}");
    assert!(Client::new().trust_hashes([]).is_err());
}

#[tokio::test]
async fn wrong_urls_are_explained() {
    let client = Client::new();
    for (url, word) in [
        ("http://a.test/", "has not the scheme https"),
        ("a b", "is not a URL"),
        ("/path", "has not the scheme https"),
        (
            "https://name.invalid/",
            "the name 'name.invalid' was not found",
        ),
    ] {
        let error = within(client.connect(url)).await.expect_err(url);
        assert!(error.to_string().contains(word), "{url}: {error}");
    }
}

/// K671: requests wait while the program accepts none.
#[tokio::test]
async fn requests_wait_for_a_slow_program() {
    const CLIENTS: usize = 70;
    let identity = Identity::dev().expect("a certificate");
    let (mut listener, url) = listen(&identity, Config::new());
    let mut connecting = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, url) = (client(&identity), url.clone());
        connecting.spawn(async move { client.connect(&url).await });
    }
    let mut open = Vec::new();
    for _ in 0..CLIENTS {
        // All others wait here or in the queue.
        tokio::task::yield_now().await;
        let request = within(listener.accept()).await.expect("a request");
        open.push(within(request.accept()).await.expect("a session"));
    }
    while let Some(connected) = within(connecting.join_next()).await {
        open.push(connected.expect("no panic").expect("a session"));
    }
    assert_eq!(open.len(), 2 * CLIENTS);
}

/// WT-h3-033: a session request is no early data. It waits for the settings of this very connection, which arrive with
/// the end of the handshake; a server would answer 425 otherwise.
#[tokio::test]
async fn sessions_of_resumed_connections_wait_for_the_handshake() {
    let identity = Identity::dev().expect("a certificate");
    let config = ServerConfig::with_identity(&identity).expect("valid");
    let config = config
        .alpn([h3::ALPN])
        .early_data(EarlyDataOptions::default());
    let address = "127.0.0.1:0".parse().expect("an address");
    let server = Endpoint::server(config, address).expect("a free port");
    let to = server.local_addr().expect("bound");
    let mut listener = Listener::on(server, Config::new()).expect("free numbers");
    let serving = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Some(request) = listener.accept().await {
            open.push(request.accept().await.expect("a session"));
        }
    });
    let endpoint = Endpoint::client(address).expect("a free port");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("valid");
    let config = config.alpn([h3::ALPN]).early_data(true);
    let mut settings = h3::Config::new(Side::Client);
    enable(&mut settings, Side::Client, Config::new()).expect("free numbers");
    let connecting = endpoint.connect_with(config.clone(), to, "localhost");
    let connection = within(connecting.expect("valid")).await.expect("connected");
    let first = h3::Client::with_config(connection, settings.clone());
    let session = within(connect(&first, wish())).await.expect("a session");
    let remembered = within(first.settings()).await.expect("settings");
    session.close(0, "");
    within(session.closed()).await;
    let connecting = endpoint.connect_with(config, to, "localhost");
    let early = within(connecting.expect("valid").early()).await;
    let connection = early.expect("resumed");
    assert_eq!(connection.early_data(), EarlyData::Offered);
    let second = h3::Client::resume(connection, settings, remembered);
    within(connect(&second, wish())).await.expect("a session");
    assert_eq!(second.quic().early_data(), EarlyData::Accepted);
    serving.abort();
}
