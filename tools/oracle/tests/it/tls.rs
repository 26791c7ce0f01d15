//! Negotiation of TLS by the server, and the end of its connections (RFC 9112 §9.8, RFC 9113 §9.2).

use std::time::Duration;

use courser::server::{Limits, ServerHandle};
use courser_oracle::{PATIENCE, connect_tls, h2};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client_hello::ClientHello;
use crate::frames::answer;
use crate::serving;

const TLS_1_1: u16 = 0x0302;
const TLS_1_2: u16 = 0x0303;
/// ECDHE-ECDSA with AES-128-GCM, which HTTP/2 requires of TLS 1.2.
const PERMITTED: u16 = 0xc02b;
/// RSA with AES-128-CBC and with AES-128-GCM, and ECDHE-ECDSA with AES-128-CBC (RFC 9113 appendix A).
const PROHIBITED: [u16; 3] = [0x002f, 0x009c, 0xc009];
const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;

/// Returns the first record that a server sends to a ClientHello: its type and its content.
async fn first_record(gateway: &courser_oracle::Gateway, hello: &ClientHello) -> (u8, Vec<u8>) {
    let mut stream = TcpStream::connect(gateway.address).await.expect("a server");
    stream.write_all(&hello.encode()).await.expect("open");
    let reading = async {
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.expect("a record");
        let length = u16::from_be_bytes([head[3], head[4]]);
        let mut content = vec![0; length.into()];
        stream.read_exact(&mut content).await.expect("a record");
        (head[0], content)
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("in time")
}

/// RFC 9113 §9.2, §9.2.1, §9.2.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_weak_suites_and_compression_are_not_negotiated() {
    const ALERT: u8 = 21;
    const DEFLATE: u8 = 1;
    let (gateway, _) = serving::start_function(answer, |server| server);
    for (version, suites, alert) in [
        (TLS_1_1, &[PERMITTED, PROHIBITED[2]][..], PROTOCOL_VERSION),
        (TLS_1_2, &PROHIBITED, HANDSHAKE_FAILURE),
    ] {
        let hello = ClientHello::new(version, suites, &[0]);
        let (kind, content) = first_record(&gateway, &hello).await;
        assert_eq!((kind, content[1]), (ALERT, alert), "{content:?}");
    }
    let suites = [&PROHIBITED[..], &[PERMITTED]].concat();
    let hello = ClientHello::new(TLS_1_2, &suites, &[DEFLATE, 0]);
    let (kind, content) = first_record(&gateway, &hello).await;
    assert_ne!(kind, ALERT, "{content:?}");
    // ServerHello: type, length, version, random, session, suite, compression.
    let session = usize::from(content[38]);
    let chosen = &content[39 + session..][..3];
    assert_eq!(chosen, [0xc0, 0x2b, 0], "{content:?}");
}

/// RFC 9113 §3.2: without ALPN the bytes of HTTP/2 are a request of HTTP/1.1, and a malformed one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_without_alpn_is_not_served() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    for protocols in [&[][..], &["http/1.1"]] {
        let mut stream = connect_tls(&gateway, protocols).await;
        let settings = h2::Frame::new(h2::SETTINGS, 0, 0, []).encode();
        let bytes = [h2::PREFACE, &settings].concat();
        stream.write_all(&bytes).await.expect("open");
        let mut received = Vec::new();
        let reading = stream.read_to_end(&mut received);
        let _ = tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("an end");
        let text = String::from_utf8_lossy(&received);
        assert!(text.starts_with("HTTP/1.1 "), "{protocols:?}: {text:?}");
    }
}

/// The bytes of a client that then only reads, and the cause of the end.
struct End {
    name: &'static str,
    protocol: &'static str,
    sent: Vec<u8>,
    drains: bool,
}

fn ends() -> Vec<End> {
    let end = |name, protocol, sent: &[u8], drains| End {
        name,
        protocol,
        sent: sent.to_vec(),
        drains,
    };
    let get = b"GET /1 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let http2 = [
        h2::PREFACE,
        &h2::Frame::new(h2::SETTINGS, 0, 0, []).encode(),
    ]
    .concat();
    let wrong = [&http2[..], &h2::Frame::new(h2::DATA, 0, 0, [0]).encode()].concat();
    vec![
        end(
            "the client asks for the end",
            "http/1.1",
            b"GET /1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            false,
        ),
        end("a malformed request", "http/1.1", b"GET /1\r\n\r\n", false),
        end("no request", "http/1.1", b"", false),
        end("no second request", "http/1.1", get, false),
        end("the server drains", "http/1.1", get, true),
        end("an error of HTTP/2", "h2", &wrong, false),
    ]
}

/// RFC 9112 §9.5, §9.8, RFC 8446 §6.1: `close_notify` precedes the end of TCP, so that a client can distinguish the end from an
/// attack. hyper drops a connection without it if a header section begins and does not arrive in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_end_with_close_notify() {
    for end in ends() {
        let mut limits = Limits::default();
        if !end.drains {
            limits.header_read_timeout = Duration::from_millis(800);
        }
        let (gateway, handle) = serving::start_function(answer, |server| server.limits(limits));
        let mut stream = connect_tls(&gateway, &[end.protocol]).await;
        stream.write_all(&end.sent).await.expect("open");
        let mut received = Vec::new();
        if end.drains {
            // The first bytes show that the connection is in use.
            stream.read_buf(&mut received).await.expect("open");
            handle.drain();
        }
        let reading = stream.read_to_end(&mut received);
        let read = tokio::time::timeout(PATIENCE, reading).await;
        // rustls reports an end without `close_notify` as an error.
        read.expect(end.name).expect(end.name);
    }
}

async fn wait_for_request(handle: &ServerHandle) {
    while handle.stats().http1.requests == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// RFC 9112 §9.3: the last response names the end, so that the client sends no further request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_of_a_server_that_drains_announces_the_end() {
    let (gateway, handle) = serving::start_function(answer, |server| server);
    let mut stream = connect_tls(&gateway, &["http/1.1"]).await;
    let head = b"POST /content HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nab";
    stream.write_all(head).await.expect("open");
    tokio::time::timeout(PATIENCE, wait_for_request(&handle))
        .await
        .expect("a request");
    handle.drain();
    while !handle.stats().draining {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stream.write_all(b"c").await.expect("open");
    let mut received = String::new();
    let reading = stream.read_to_string(&mut received);
    let read = tokio::time::timeout(PATIENCE, reading).await;
    read.expect("in time").expect("an end");
    assert!(received.starts_with("HTTP/1.1 200 "), "{received}");
    assert!(
        received
            .to_lowercase()
            .contains("\r\nconnection: close\r\n"),
        "{received}"
    );
    assert!(received.ends_with("\r\n\r\n3"), "{received}");
}
