//! The client of the library against servers that send any bytes.

use std::sync::Arc;

use courser::Client;
use courser::client::{HttpVersion, Proxy};
use courser_oracle::PATIENCE;
use courser_quic::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::client_hello::{ClientHello, POST_HANDSHAKE_AUTH, SERVER_NAME, SUPPORTED_VERSIONS};

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// Reads a header section and returns it as text.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    let reading = async {
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await.expect("open") == 0 {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("a request");
    String::from_utf8(head).expect("text")
}

fn plain() -> Client {
    let client = Client::builder().proxy(Proxy::Direct);
    client.build().expect("a client")
}

/// Requests a URL and returns the content, or the text of the error.
async fn get(client: &Client, url: &str) -> Result<String, String> {
    let response = client.get(url).await.map_err(|error| error.to_string())?;
    let content = response.into_body().collect().await;
    let content = content.map_err(|error| error.to_string())?.to_bytes();
    Ok(String::from_utf8_lossy(&content).into_owned())
}

/// Returns a server of TLS for localhost, and its certificate.
fn acceptor() -> (TlsAcceptor, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let made = made.expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let certificate = made.cert.der().clone();
    let config = ServerConfig::builder_with_provider(courser::crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into());
    let config = Arc::new(config.expect("a key that fits"));
    (TlsAcceptor::from(config), certificate)
}

fn trusting(certificate: CertificateDer<'static>) -> Client {
    let client = Client::builder()
        .platform_roots(false)
        .root(certificate)
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http1);
    client.build().expect("a client")
}

/// RFC 9112 §8, §9.8: a response that ends with the connection is complete only if the server has ended TLS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_without_close_notify_makes_a_response_incomplete() {
    let (acceptor, certificate) = acceptor();
    for (head, says_goodbye, is_complete) in [
        ("HTTP/1.1 200 OK\r\n\r\n", true, true),
        ("HTTP/1.1 200 OK\r\n\r\n", false, false),
        ("HTTP/1.0 200 OK\r\n\r\n", false, false),
        // These show their end themselves.
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", false, true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n", true, false),
    ] {
        let (listener, port) = listen().await;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a client");
            let mut stream = acceptor.accept(stream).await.expect("TLS");
            read_head(&mut stream).await;
            let bytes = [head.as_bytes(), b"abc"].concat();
            stream.write_all(&bytes).await.expect("open");
            stream.flush().await.expect("open");
            if says_goodbye {
                stream.shutdown().await.expect("open");
            } else {
                // The end of TCP alone, as anybody on the way can send it.
                let (mut tcp, _) = stream.into_inner();
                tcp.shutdown().await.expect("open");
                let _ = tcp.read_to_end(&mut Vec::new()).await;
            }
        });
        let client = trusting(certificate.clone());
        let url = format!("https://localhost:{port}/");
        let result = tokio::time::timeout(PATIENCE, get(&client, &url)).await;
        let result = result.expect("an end");
        assert_eq!(
            result.is_ok(),
            is_complete,
            "{head:?}, {says_goodbye}: {result:?}"
        );
        assert!(!is_complete || result == Ok("abc".into()), "{result:?}");
    }
}

/// RFC 9111 §3: a response that a cache may store is requested again, because the client has no cache.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_are_never_served_from_earlier_ones() {
    let (listener, port) = listen().await;
    let (sender, mut requests) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        for number in 1..=2 {
            let _ = sender.send(read_head(&mut stream).await);
            let response = format!(
                "HTTP/1.1 200 OK\r\ncache-control: public, max-age=3600, immutable\r\n\
                 etag: \"a\"\r\ncontent-length: 1\r\n\r\n{number}"
            );
            stream.write_all(response.as_bytes()).await.expect("open");
        }
    });
    let client = plain();
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(get(&client, &url).await.as_deref(), Ok("1"));
    assert_eq!(get(&client, &url).await.as_deref(), Ok("2"));
    for _ in 0..2 {
        let request = requests.recv().await.expect("a request");
        assert!(!request.contains("if-none-match"), "{request}");
    }
}

/// RFC 9112 §9.2: bytes that follow a response belong to no request, and their connection is not used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_with_unexpected_bytes_are_not_used_again() {
    let (listener, port) = listen().await;
    let (sender, stray) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.expect("a client");
        read_head(&mut first).await;
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        first.write_all(bytes).await.expect("open");
        // While the connection is idle.
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
        first.write_all(bytes).await.expect("open");
        // The client closes it.
        let _ = first.read_to_end(&mut Vec::new()).await;
        let _ = sender.send(());
        let (mut second, _) = listener.accept().await.expect("a client");
        read_head(&mut second).await;
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext";
        second.write_all(bytes).await.expect("open");
    });
    let client = plain();
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(get(&client, &url).await.as_deref(), Ok("ok"));
    tokio::time::timeout(PATIENCE, stray)
        .await
        .expect("the client closes")
        .expect("no panic");
    assert_eq!(get(&client, &url).await.as_deref(), Ok("next"));
}

/// RFC 9110 §12.5.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_coding_that_is_requested_can_be_decoded() {
    // `ok` in each of them.
    let codings: [(&str, &[u8]); 4] = [
        (
            "gzip",
            b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xcb\xcf\x06\0\x47\xdd\xdc\x79\x02\0\0\0",
        ),
        ("deflate", b"\x78\x9c\xcb\xcf\x06\0\x01\x4b\0\xdb"),
        // A block that is stored as it is.
        ("br", b"\x10\0\x10ok\x03"),
        (
            "zstd",
            b"\x28\xb5\x2f\xfd\x04\x58\x11\0\0ok\xf9\x5c\x14\x16",
        ),
    ];
    let (listener, port) = listen().await;
    let (sender, mut requests) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let head = read_head(&mut stream).await;
            let asked = head.split_once("GET /").expect("GET").1;
            let coding = asked.split_once(' ').expect("a version").0.to_owned();
            let _ = sender.send(head);
            let content = codings.iter().find(|(name, _)| *name == coding);
            let content = content.map_or(&b"plain"[..], |(_, content)| content);
            let fields = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: {coding}\r\n\
                 content-length: {}\r\n\r\n",
                content.len()
            );
            let fields = match coding.as_str() {
                "" => fields.replace("content-encoding: \r\n", ""),
                _ => fields,
            };
            let bytes = [fields.as_bytes(), content].concat();
            stream.write_all(&bytes).await.expect("open");
        }
    });
    let client = plain();
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(get(&client, &url).await.as_deref(), Ok("plain"));
    let request = requests.recv().await.expect("a request");
    let requested = request
        .lines()
        .find_map(|line| line.strip_prefix("accept-encoding: "))
        .expect("a list");
    for coding in requested.split(", ") {
        let content = get(&client, &format!("{url}{coding}")).await;
        assert_eq!(content.as_deref(), Ok("ok"), "{coding} of {requested:?}");
    }
}

/// RFC 9113 §3.2, §9.2: HTTP/2 is offered by its name of ALPN, for a named server, over TLS 1.2 or later, without compression,
/// renegotiation, weak suites or authentication after the handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_offered_as_http2_requires() {
    let (listener, port) = listen().await;
    let requesting = tokio::spawn(async move {
        let client = Client::builder().proxy(Proxy::Direct);
        let client = client.version(HttpVersion::Http2).build();
        let url = format!("https://localhost:{port}/");
        let _ = client.expect("a client").get(&url).await;
    });
    let (mut stream, _): (TcpStream, _) = listener.accept().await.expect("a client");
    let reading = async {
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.expect("a record");
        let mut message = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        stream.read_exact(&mut message).await.expect("a record");
        message
    };
    let message = tokio::time::timeout(PATIENCE, reading).await;
    let hello = ClientHello::decode(&message.expect("in time"));
    requesting.abort();
    assert_eq!(hello.protocols(), ["h2", "http/1.1"]);
    let name = hello.extension(SERVER_NAME).expect("a name");
    assert!(name.ends_with(b"localhost"), "{name:?}");
    let versions = hello.extension(SUPPORTED_VERSIONS).expect("versions");
    let oldest = versions[1..].chunks(2).min().expect("a version");
    assert!(oldest >= &[3, 3][..], "{versions:?}");
    assert_eq!(hello.compressions, [0]);
    assert_eq!(hello.extension(POST_HANDSHAKE_AUTH), None);
    for suite in hello.suites {
        // TLS 1.3, ECDHE with an AEAD in TLS 1.2, and the signal that renegotiation is secure.
        let is_permitted = matches!(
            suite,
            0x1301..=0x1303 | 0xc02b | 0xc02c | 0xc02f | 0xc030 | 0xcca8 | 0xcca9 | 0x00ff
        );
        assert!(is_permitted, "{suite:#06x}");
    }
}
