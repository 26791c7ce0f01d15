//! Requests and handshakes that a server refuses before its service.

use std::sync::Arc;

use axum::Router;
use courser::rustls;
use courser::server::Protocol;
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::{Client, empty};
use super::{start, start_with, within};

fn app() -> Router {
    Router::new().fallback(|| async { "found" })
}

/// RFC 9114 §3.3.
#[tokio::test]
async fn requests_for_hosts_outside_the_certificate_are_misdirected() {
    for is_on in [false, true] {
        let running = start_with(app(), |server| server.only_names(is_on));
        let address = running.handle.local_addr();
        let mut misdirected = 0;
        for protocol in [Protocol::Http2, Protocol::Http3] {
            let connecting = Client::connect(protocol, address, &running.identity);
            let mut client = within(connecting).await.expect("a connection");
            for (host, is_named) in [
                ("localhost", true),
                ("other.test", false),
                ("LOCALHOST:4433", true),
                ("localhost.test", false),
            ] {
                let uri = format!("https://{host}/");
                let request = http::Request::get(uri).body(empty()).expect("a request");
                let response = within(client.send(request)).await.expect("a response");
                let expected = match is_on && !is_named {
                    true => StatusCode::MISDIRECTED_REQUEST,
                    false => StatusCode::OK,
                };
                assert_eq!(response.status(), expected, "{protocol} {host}, {is_on}");
                misdirected += u64::from(is_on && !is_named);
            }
        }
        let stats = running.handle.stats();
        assert_eq!(stats.requests_misdirected, misdirected);
        running.drained().await;
    }
}

/// Returns the ClientHello of a QUIC client in TLS records of at most `most` bytes.
fn hello_of_quic(most: usize) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("supported")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "localhost".try_into().expect("a name");
    let (version, parameters) = (rustls::quic::Version::V1, vec![0x01, 0x01, 0x05]);
    let client = rustls::quic::ClientConnection::new(Arc::new(config), version, name, parameters);
    let mut hello = Vec::new();
    let keys = client.expect("a session").write_hs(&mut hello);
    assert!(keys.is_none() && !hello.is_empty());
    let record = |content: &[u8]| {
        let len = u16::try_from(content.len()).expect("fits").to_be_bytes();
        [&[22, 3, 1][..], &len, content].concat()
    };
    hello.chunks(most).flat_map(record).collect()
}

/// RFC 9001 §8.2: quic_transport_parameters without QUIC.
#[tokio::test]
async fn quic_transport_parameters_over_tcp_get_the_alert_unsupported_extension() {
    let running = start(app());
    let address = running.handle.local_addr();
    for most in [16_384, 100] {
        let mut socket = within(TcpStream::connect(address)).await.expect("open");
        let hello = hello_of_quic(most);
        let (first, rest) = hello.split_at(hello.len() / 2);
        within(socket.write_all(first)).await.expect("open");
        within(socket.write_all(rest)).await.expect("open");
        let mut answer = Vec::new();
        within(socket.read_to_end(&mut answer))
            .await
            .expect("closed");
        // A fatal alert with the code 110.
        assert_eq!(answer, [21, 3, 3, 0, 2, 2, 110], "records of {most} bytes");
    }
    crate::common::until(|| running.handle.stats().tcp.handshakes_failed == 2).await;
    let connecting = Client::connect(Protocol::Http2, address, &running.identity);
    let mut client = within(connecting).await.expect("others are served");
    assert_eq!(within(client.text("/")).await, "found");
    running.drained().await;
}

/// RFC 9112 §2.2, and what nginx and Caddy answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_is_answered_with_an_explanation() {
    let running = start(app());
    let exchange = async |request: &[u8]| {
        let mut stream = TcpStream::connect(running.handle.local_addr())
            .await
            .expect("a server");
        stream.write_all(request).await.expect("open");
        let mut response = Vec::new();
        within(stream.read_to_end(&mut response))
            .await
            .expect("closed");
        response
    };
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let response = String::from_utf8(exchange(request).await).expect("text");
    assert!(
        response.starts_with("HTTP/1.1 400 Bad Request\r\ndate: "),
        "{response}"
    );
    assert!(
        response.ends_with("use https:// instead of http://\n"),
        "{response}"
    );
    let preface = exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    // SETTINGS, then GOAWAY with INADEQUATE_SECURITY.
    assert_eq!(preface[..9], [0, 0, 0, 4, 0, 0, 0, 0, 0]);
    assert_eq!((preface[12], preface[25]), (7, 12));
    assert_eq!(usize::from(preface[11]), preface.len() - 18);
    assert!(preface.ends_with(b"use https:// instead of http://"));
    // What is neither TLS nor HTTP gets an alert.
    assert_eq!(
        exchange(b"\x80\x01\x02\x03\x04\x05\x06\x07").await.first(),
        Some(&21)
    );
    crate::common::until(|| running.handle.stats().tcp.handshakes_failed == 3).await;
}

/// RFC 9110 §2.5, §15.6.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_of_http1_are_processed_and_others_are_answered_with_505() {
    let running = start(app());
    for (version, expected) in [
        ("1.1", "HTTP/1.1 200 "),
        ("1.2", "HTTP/1.1 200 "),
        ("1.9", "HTTP/1.1 200 "),
        ("1.0", "HTTP/1.0 200 "),
        ("2.0", "HTTP/1.1 505 "),
        ("3.0", "HTTP/1.1 505 "),
        ("x.y", "HTTP/1.1 400 "),
    ] {
        let request =
            format!("GET / HTTP/{version}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let response = super::raw::over_http1(&running, request.as_bytes()).await;
        assert!(response.starts_with(expected), "{version}: {response}");
    }
}
