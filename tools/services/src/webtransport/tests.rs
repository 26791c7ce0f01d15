//! The echo of a running server, with clients and in a browser.

use std::net::SocketAddr;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use courser::server::{Certificates, ServerHandle};
use courser::webtransport::{
    ApplicationCode, Closed, Config, ConnectError, Origins, ReadError, Session, SessionRequest,
    WriteError,
};
use courser::{ClientConfig, Connection, Endpoint, Identity, Side, h3};

use super::*;
use crate::browser::Browser;
use crate::record::Recorder;
use crate::site::Site;

struct Scene {
    handle: ServerHandle,
    address: SocketAddr,
    echo: Echo,
}

impl Scene {
    fn start<C>(certificates: C) -> Self
    where
        C: TryInto<Certificates>,
        courser::ConfigError: From<C::Error>,
    {
        let mut http3 = h3::Config::new(Side::Server);
        let origins = Origins::same_host()
            .and("https://a.test")
            .expect("an origin");
        let config = Config {
            origins,
            ..Config::new()
        };
        webtransport::enable(&mut http3, Side::Server, config).expect("free numbers");
        let server = courser::serve("127.0.0.1:0", certificates).config(http3);
        let bound = server.bind().expect("a port");
        let handle = bound.handle();
        let of_hash = handle.clone();
        let echo = Echo::new(Echo::PATH, move || {
            Some(of_hash.certificates().first()?.sha256)
        });
        let files = courser::files::Files::builder()
            .open(".")
            .expect("a folder");
        let site = Site::Files(files).into_service(false, Recorder::default());
        let serving = bound.service(site.with_echo(Some(echo.clone())));
        tokio::spawn(async move { serving.await });
        Self {
            address: handle.local_addr(),
            handle,
            echo,
        }
    }
}

/// A client of a server with a certificate in memory.
struct Client {
    scene: Scene,
    http3: h3::Client,
}

impl Client {
    async fn start() -> Self {
        let identity = Identity::dev().expect("random numbers");
        let scene = Scene::start(identity.clone());
        let connection = connect(scene.address, &identity).await;
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, Config::new()).expect("free numbers");
        let http3 = h3::Client::with_config(connection, settings);
        Self { scene, http3 }
    }

    fn request(&self, query: &str) -> SessionRequest {
        let port = self.scene.address.port();
        let uri = format!("https://localhost:{port}{}{query}", Echo::PATH);
        SessionRequest::new(uri.parse().expect("a URI"))
    }

    async fn open(&self, query: &str) -> Session {
        let opened = webtransport::connect(&self.http3, self.request(query)).await;
        opened.expect("a session")
    }

    async fn refused(&self, request: SessionRequest) -> StatusCode {
        match webtransport::connect(&self.http3, request).await {
            Err(ConnectError::Refused(response)) => response.status(),
            other => panic!("{other:?}"),
        }
    }
}

async fn connect(address: SocketAddr, identity: &Identity) -> Connection {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address"));
    let config = ClientConfig::with_roots([identity.certificate()]).expect("roots");
    let config = config.alpn([h3::ALPN]);
    let endpoint = endpoint.expect("a socket");
    let connecting = endpoint.connect_with(config, address, "localhost");
    connecting.expect("a name").await.expect("a connection")
}

#[tokio::test]
async fn streams_and_datagrams_come_back() {
    let client = Client::start().await;
    let session = client.open("").await;
    let content = vec![7; 1_000_000];
    let (mut send, mut receive) = session.open_bi().await.expect("open");
    let write = async {
        send.write_all(&content).await.expect("written");
        send.finish().expect("open");
    };
    let ((), echo) = tokio::join!(write, receive.read_to_end(2_000_000));
    assert_eq!(echo.expect("read"), content);
    let mut send = session.open_uni().await.expect("open");
    send.write_all(b"there").await.expect("written");
    send.finish().expect("open");
    let mut receive = session.accept_uni().await.expect("an echo");
    assert_eq!(receive.read_to_end(10).await.expect("read"), b"there");
    session.datagrams().send(b"and back").expect("sent");
    assert_eq!(
        session.datagrams().receive().await.expect("an echo"),
        "and back"
    );
}

#[tokio::test]
async fn codes_of_streams_come_back() {
    let client = Client::start().await;
    let session = client.open("").await;
    let (mut send, mut receive) = session.open_bi().await.expect("open");
    send.write_all(b"1").await.expect("written");
    assert_eq!(
        receive.read_chunk(1).await.expect("read").expect("a byte"),
        "1"
    );
    send.reset(42).expect("open");
    let error = receive.read_chunk(1).await.expect_err("a reset");
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(42))));
    let (mut send, mut receive) = session.open_bi().await.expect("open");
    send.write_all(b"1").await.expect("written");
    assert_eq!(
        receive.read_chunk(1).await.expect("read").expect("a byte"),
        "1"
    );
    receive.stop(43).expect("open");
    let code = send.stopped().await.expect("open");
    assert_eq!(code, Some(ApplicationCode(43)));
    let error = send.write_all(b"2").await.expect_err("stopped");
    assert_eq!(error, WriteError::Stopped(Some(ApplicationCode(43))));
}

#[tokio::test]
async fn wishes_are_granted() {
    let client = Client::start().await;
    let session = client.open("?open=3").await;
    let mut lines = Vec::new();
    for _ in 0..3 {
        let (mut send, mut receive) = session.accept_bi().await.expect("a stream");
        send.write_all(b"answer").await.expect("written");
        send.finish().expect("open");
        lines.push(receive.read_to_end(100).await.expect("read"));
    }
    lines.sort();
    assert_eq!(lines[2], b"stream 2 of 3\nanswer");
    let closed = client
        .open("?close=4711&reason=so+long")
        .await
        .closed()
        .await;
    let Closed::Peer(reason) = closed else {
        panic!("{closed}");
    };
    assert_eq!(reason.code, ApplicationCode(4711));
    assert_eq!(reason.message, "so long");
    let refused = client.refused(client.request("?open=many")).await;
    assert_eq!(refused, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn sessions_are_refused_to_pages_of_other_origins() {
    let client = Client::start().await;
    for (origin, is_allowed) in [
        (
            format!("https://localhost:{}", client.scene.address.port()),
            true,
        ),
        ("https://a.test".to_owned(), true),
        ("https://b.test".to_owned(), false),
        ("null".to_owned(), false),
    ] {
        let value = HeaderValue::from_str(&origin).expect("a value");
        let request = client.request("").origin(value);
        match is_allowed {
            true => drop(
                webtransport::connect(&client.http3, request)
                    .await
                    .expect("a session"),
            ),
            false => assert_eq!(
                client.refused(request).await,
                StatusCode::FORBIDDEN,
                "{origin}"
            ),
        }
    }
}

#[tokio::test]
async fn first_protocol_of_the_client_is_chosen() {
    let client = Client::start().await;
    let protocols = Protocols::new(["one", "two"]).expect("names");
    let request = client.request("").protocols(protocols);
    let session = webtransport::connect(&client.http3, request).await;
    assert_eq!(session.expect("a session").protocol(), Some("one"));
    assert_eq!(client.open("").await.protocol(), None);
}

/// Limit K562.
#[tokio::test]
async fn sessions_end_when_the_server_drains() {
    let client = Client::start().await;
    let session = client.open("").await;
    client.scene.echo.drain();
    session.draining().await;
    let closed = session.closed().await;
    assert_eq!(
        closed.to_string(),
        "the peer has closed the session with code 0: the server ends"
    );
    // Later sessions end as well.
    client.open("").await.draining().await;
}

#[tokio::test]
async fn resources_have_the_methods_that_they_support() {
    let client = Client::start().await;
    let port = client.scene.address.port();
    for (method, path, status) in [
        (Method::GET, Echo::PATH, 405),
        (Method::GET, "/webtransport", 200),
        (Method::HEAD, "/webtransport/test.js", 200),
        (Method::POST, "/webtransport", 405),
        (Method::GET, "/webtransport/other", 404),
        (Method::GET, "/webtransport/facts.json", 200),
        (Method::GET, "/Cargo.toml", 200),
    ] {
        let uri = format!("https://localhost:{port}{path}");
        let request = Request::builder().method(&method).uri(uri);
        let request = request.body(h3::Empty).expect("a request");
        let response = client.http3.send(request).await.expect("a response");
        assert_eq!(response.status(), status, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_passes_all_its_tests() {
    let certificates = Certificates::dev(Vec::<String>::new()).expect("a certificate");
    let scene = Scene::start(certificates);
    let certificate = scene.handle.certificates().remove(0);
    let spki = BASE64_STANDARD.encode(certificate.spki_sha256);
    let flags = [format!("--ignore-certificate-errors-spki-list={spki}")];
    let Some(mut browser) = Browser::start_with(&flags) else {
        return;
    };
    // 127.0.0.1 and not localhost, which may be ::1.
    let url = format!("https://{}{}", scene.address, Echo::PAGE);
    browser.visit(&url, 1000, 1000);
    browser.wait("document.body.dataset.result");
    let text = browser.run("document.body.innerText");
    let text = text.as_str().expect("text");
    println!("{text}");
    let result = browser.run("document.body.dataset.result");
    assert_eq!(result, "pass", "{text}");
    assert!(text.contains("certificate trusted by its hash"), "{text}");
    // A browser that is busy may close the stream before it shows the code of STOP_SENDING.
    let skips_stop = text.contains("13 passed, 0 failed, 1 skipped")
        && text.contains("stop with a code, and one back\tskip");
    let is_whole = text.contains("14 passed, 0 failed, 0 skipped");
    assert!(is_whole || skips_stop, "{text}");
}
