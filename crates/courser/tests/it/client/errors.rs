//! Error messages of the client.

use std::time::Duration;

use courser::client::{ErrorKind, HttpVersion, Proxy};
use courser::{Client, HandshakeFailureKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::server::{Protocols, Server, echo};
use super::{builder, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untrusted_certificates_are_reported_over_all_protocols() {
    let server = Server::start(Protocols::Both, echo()).await;
    let other = Server::start(Protocols::Both, echo()).await;
    for version in [
        HttpVersion::Http3Only,
        HttpVersion::Http2,
        HttpVersion::Http1,
        HttpVersion::Http3,
    ] {
        let client = builder(&other).version(version).build().expect("a client");
        let error = within(client.get(server.url("/")))
            .await
            .expect_err("not trusted");
        assert_eq!(error.kind(), ErrorKind::Certificate, "{version:?}: {error}");
        assert!(error.is_tls() && error.is_connect());
        let unverified = builder(&other)
            .dangerous_insecure()
            .version(version)
            .build()
            .expect("a client");
        assert!(
            within(unverified.get(server.url("/"))).await.is_ok(),
            "{version:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_for_another_name_is_reported() {
    let server = Server::start(Protocols::Both, echo()).await;
    let client = builder(&server)
        .resolve("other.test", 0, [server.address.ip()])
        .build()
        .expect("a client");
    let url = format!("https://other.test:{}/", server.address.port());
    let error = within(client.get(&url)).await.expect_err("another name");
    assert_eq!(error.kind(), ErrorKind::Certificate);
    assert!(
        error.to_string().contains("is not for other.test"),
        "{error}"
    );
    let failure = error.handshake_failure().expect("a handshake");
    assert_eq!(
        failure.kind(),
        HandshakeFailureKind::CertificateForOtherName
    );
    assert!(failure.is_certificate(), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_server_and_unknown_name_have_distinct_errors() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    let client = builder(&server).build().expect("a client");
    server.stop().await;
    let error = within(client.get(server.url("/")))
        .await
        .expect_err("stopped");
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(
        error.to_string().contains("nothing listens on tcp"),
        "{error}"
    );
    assert_eq!(error.timing().map(|timing| timing.attempts.len()), Some(1));
    let error = within(client.get("https://no-such-host.invalid/"))
        .await
        .expect_err("no name");
    assert!(error.is_dns(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_hosts_time_out() {
    // Accepts, but sends nothing: TLS never begins.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let client = Client::builder()
        .dangerous_insecure()
        .proxy(Proxy::Direct)
        .connect_timeout(Duration::from_millis(200))
        .build()
        .expect("a client");
    let url = format!("https://127.0.0.1:{port}/");
    let error = within(client.get(&url)).await.expect_err("silence");
    assert!(
        error.is_timeout() && error.is_connect() && error.is_unprocessed(),
        "{error}"
    );
    drop(listener);
}

/// Closing waits for connections that servers know, and there are none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_does_not_wait_for_servers_that_never_answered() {
    use futures_util::FutureExt as _;
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let client = Client::builder()
        .dangerous_insecure()
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http3Only)
        .connect_timeout(Duration::from_millis(50))
        .build()
        .expect("a client");
    let url = format!("https://127.0.0.1:{port}/");
    within(client.get(&url)).await.expect_err("no answer");
    assert!(client.close().now_or_never().is_some(), "it waits");
}

/// Starts a server that answers each connection with these bytes and closes it.
async fn raw(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    crate::common::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer).await;
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_answers_have_distinct_errors() {
    use http_body_util::BodyExt as _;
    let client = Client::builder()
        .dangerous_insecure()
        .proxy(Proxy::Direct)
        .build()
        .expect("a client");
    for (answer, kind) in [
        (&b""[..], ErrorKind::Empty),
        (b"HTTP/1.1 200 O", ErrorKind::Empty),
        (b"hello there, friend\r\n\r\n", ErrorKind::NotHttp),
        (b"HTTP/1.1 abc\r\n\r\n", ErrorKind::NotHttp),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            ErrorKind::Protocol,
        ),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", ErrorKind::Protocol),
    ] {
        let url = format!("http://127.0.0.1:{}/", raw(answer).await);
        let error = within(client.get(&url)).await.expect_err("broken");
        assert_eq!(error.kind(), kind, "{answer:?}: {error}");
    }
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12",
    ] {
        let url = format!("http://127.0.0.1:{}/", raw(answer).await);
        let response = within(client.get(&url)).await.expect("a header section");
        let error = within(response.into_body().collect())
            .await
            .expect_err("truncated");
        assert_eq!(error.kind(), ErrorKind::Partial, "{error}");
    }
    let port = raw(b"this is not TLS").await;
    let error = within(client.get(format!("https://127.0.0.1:{port}/")))
        .await
        .expect_err("no TLS");
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_urls_have_distinct_errors() {
    let client = Client::builder()
        .dangerous_insecure()
        .build()
        .expect("a client");
    for (url, kind) in [
        ("localhost", ErrorKind::Url),
        ("ftp://localhost/", ErrorKind::Unsupported),
        ("https://a b/", ErrorKind::Url),
    ] {
        let error = within(client.get(url)).await.expect_err(url);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.is_user(), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_url_of_their_request() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    let client = builder(&server).timeout(Duration::from_secs(9));
    let client = client.build().expect("a client");
    server.stop().await;
    let error = within(client.get(server.url("/a?b"))).await;
    let error = error.expect_err("stopped");
    assert_eq!(error.url(), Some(&*server.url("/a?b")));
    assert!(error.is_retryable(), "{error}");
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!(
        "https://localhost:{}/",
        silent.local_addr().expect("bound").port()
    );
    let client = builder(&server).timeout(Duration::from_millis(50));
    let client = client.build().expect("a client");
    let error = within(client.get(&url)).await.expect_err("silence");
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.url(), Some(&*url));
}
