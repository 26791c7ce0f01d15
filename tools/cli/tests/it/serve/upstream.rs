//! Upstream servers and clients that are scripted with raw sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use super::serving::Serving;
use crate::common::{Folder, courser};

type Client = StreamOwned<ClientConnection, TcpStream>;

/// Opens a TLS connection for HTTP/1.1, whose bytes the test writes.
fn client(serving: &Serving) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(serving.certificate()).expect("a certificate");
    let provider = Arc::new(courser::rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
    let stream = TcpStream::connect(serving.address).expect("a server");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a socket");
    StreamOwned::new(tls, stream)
}

/// Reads a header section, byte by byte, so that nothing behind it is lost.
fn read_head(stream: &mut impl std::io::Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a header section");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

fn upstream() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    (listener, url)
}

/// Opens a WebSocket through the server. Returns both ends.
fn tunnel(serving: &Serving, listener: &TcpListener) -> (Client, TcpStream) {
    let mut client = client(serving);
    client
        .write_all(
            b"GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .expect("open");
    let (mut server, _) = listener.accept().expect("a connection");
    let head = read_head(&mut server).to_ascii_lowercase();
    assert!(head.contains("upgrade: websocket"), "{head}");
    server
        .write_all(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        )
        .expect("open");
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    (client, server)
}

/// RFC 6455 §7.1.1: the remaining bytes arrive, then the end.
#[test]
fn end_of_a_tunnel_ends_the_other_side_after_the_remaining_bytes() {
    let (listener, url) = upstream();
    let serving = Serving::start(&["--proxy", &url]);
    let (mut client, mut server) = tunnel(&serving, &listener);
    client.write_all(b"\x81\x85").expect("open");
    let mut two = [0; 2];
    server.read_exact(&mut two).expect("open");
    let bytes = vec![7; 300_000];
    server.write_all(&bytes).expect("open");
    drop(server);
    let mut received = Vec::new();
    client.read_to_end(&mut received).expect("a clean end");
    assert_eq!(received.len(), bytes.len());

    let (mut client, mut server) = tunnel(&serving, &listener);
    client.write_all(&bytes).expect("open");
    client.conn.send_close_notify();
    client.flush().expect("open");
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("an end");
    assert_eq!(received.len(), bytes.len());
}

/// RFC 6455 §7.2.3, limit K358, attack A223.
#[test]
fn silent_tunnel_is_closed_and_counted() {
    let (listener, url) = upstream();
    let arguments = [
        "--proxy",
        &url,
        "--proxy-tunnel-timeout",
        "1",
        "--proxy-connections",
        "1",
        "--admin",
        "127.0.0.1:0",
    ];
    let serving = Serving::start(&arguments);
    let (mut client, mut server) = tunnel(&serving, &listener);
    let status = admin(&serving, "/status");
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["upstream"]["tunnels"], 1);
    assert_eq!(status["upstream"]["connections_open"], 1);
    assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(server.read(&mut [0; 1]).unwrap_or(0), 0);
    // Its connection can be used by others.
    let (_client, _server) = tunnel(&serving, &listener);
    let metrics = admin(&serving, "/metrics");
    assert!(
        metrics.contains("courser_upstream_tunnels_idle_total 1"),
        "{metrics}"
    );
}

/// Returns the content of an admin endpoint.
fn admin(serving: &Serving, path: &str) -> String {
    let url = serving.announced["admin"].as_str().expect("an address");
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).expect("a server");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("open");
    read_head(&mut stream);
    let mut content = String::new();
    stream.read_to_string(&mut content).expect("text");
    content
}

/// RFC 9110 §15.6.3.
#[test]
fn cause_of_a_502_is_in_the_log_the_metrics_and_the_messages() {
    let (listener, url) = upstream();
    let address = listener.local_addr().expect("bound").to_string();
    let folder = Folder::new();
    let log = folder.file("log", "");
    let arguments = [
        "--proxy",
        &url,
        "--access-log=json",
        "--access-log-file",
        &log,
        "--admin",
        "127.0.0.1:0",
    ];
    let mut serving = Serving::start(&arguments);
    let upstream = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        read_head(&mut stream)
    });
    let mut client = client(&serving);
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: forged\r\n\r\n")
        .expect("open");
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    let forwarded = upstream.join().expect("no panic");
    let text = loop {
        let event = serving.next_of_all_events();
        let text = event["text"].as_str().unwrap_or_default();
        if text.contains("upstream_closed") {
            break text.to_owned();
        }
    };
    assert!(text.contains(&address), "{text}");
    let until = Instant::now() + Duration::from_secs(30);
    let line: Value = loop {
        let text = std::fs::read_to_string(&log).expect("a file");
        if let Some(line) = text.lines().next() {
            break serde_json::from_str(line).expect("JSON");
        }
        assert!(Instant::now() < until, "no line");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(line["cause"], "upstream_closed");
    assert_eq!(line["status"], 502);
    assert_eq!(line["upstream"]["address"], address);
    assert_eq!(line["upstream"]["status"], Value::Null);
    assert!(line["upstream"]["connect_seconds"].is_f64());
    assert_eq!(line["tls_version"], "TLSv1.3");
    assert_eq!(line["server_name"], "localhost");
    assert_eq!(line["time"].as_str().map(str::len), Some(24));
    let id = line["request_id"].as_str().expect("an ID");
    let expected = format!("x-request-id: {id}\r\n");
    assert!(forwarded.contains(&expected), "{forwarded}");
    assert!(!forwarded.contains("forged"), "{forwarded}");
    let metrics = admin(&serving, "/metrics");
    let expected = "courser_http_responses_by_cause_total{cause=\"upstream_closed\"} 1";
    assert!(metrics.contains(expected), "{metrics}");
}

#[test]
fn malformed_requests_are_counted_by_cause() {
    let serving = Serving::start(&["--admin", "127.0.0.1:0"]);
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    for (request, status) in [
        (
            "GET / HTTP/1.1\r\nHost: a\r\nx y: 1\r\n\r\n",
            "HTTP/1.1 400",
        ),
        (&long, "HTTP/1.1 431"),
    ] {
        let mut client = client(&serving);
        // Fails if the server closes its side before all is sent.
        let _ = client.write_all(request.as_bytes());
        let head = read_head(&mut client);
        assert!(head.starts_with(status), "{head}");
    }
    let until = Instant::now() + Duration::from_secs(30);
    for cause in ["invalid_request", "fields_too_large"] {
        let expected = format!("courser_http_requests_refused_total{{cause=\"{cause}\"}} 1");
        while !admin(&serving, "/metrics").contains(&expected) {
            assert!(Instant::now() < until, "no {expected}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn admin_without_a_token_on_an_address_of_others_warns() {
    let mut serving = Serving::start(&["--admin", "0.0.0.0:0"]);
    loop {
        let event = serving.next_of_all_events();
        let text = event["text"].as_str().unwrap_or_default();
        if text.contains("--admin-token-file") {
            return;
        }
    }
}

/// Fault F105: nobody reads standard output, and the process ends nevertheless.
#[cfg(unix)]
#[test]
fn stalled_reader_of_standard_output_does_not_keep_the_process_alive() {
    let folder = Folder::new();
    folder.file("index.html", "hello");
    let root = folder.path().to_str().expect("UTF-8");
    let mut child = courser(&[
        "serve",
        root,
        "--listen",
        "127.0.0.1:0",
        "--access-log=combined",
        "--drain-timeout",
        "2",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let address = loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).expect("UTF-8") > 0);
        if let Some(rest) = line.strip_prefix("url ") {
            let url = rest.split_whitespace().next().expect("a URL").to_owned();
            break url;
        }
    };
    // From here on nobody reads. A pipe holds 64 KiB, and each line has more than 1 KiB.
    let query = "x".repeat(1500);
    let target = format!("{address}?{query}");
    let load = ["load", "-k", "--h2", "-n", "400", "-c", "1", &target];
    let loaded = courser(&load).stdout(Stdio::null()).status();
    assert!(loaded.expect("the binary starts").success());
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(killed.expect("kill").success());
    let until = Instant::now() + Duration::from_secs(30);
    let ended = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        assert!(Instant::now() < until, "the process does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(ended.success(), "{ended}");
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut said).expect("UTF-8");
    assert!(
        said.contains("lines of the access log were not written"),
        "{said}"
    );
}
