//! Hostile clients and targets of a forward proxy over HTTP/1.1.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use courser::{ClientConfig, Endpoint, h3};
#[cfg(target_os = "linux")]
use http::Request;
#[cfg(target_os = "linux")]
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Proxy;
#[cfg(target_os = "linux")]
use super::raw::connect;
use super::raw::{Target, request};
#[cfg(target_os = "linux")]
use crate::serve::within;

/// A target that answers every connection with these bytes. Returns its port.
fn answering(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut received = [0; 4096];
            let _ = stream.read(&mut received);
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
            while stream.read(&mut received).is_ok_and(|count| count > 0) {}
        }
    });
    port
}

fn get(proxy: &Proxy, port: u16) -> String {
    let place = format!("127.0.0.1:{port}");
    let text = format!("GET http://{place}/ HTTP/1.1\r\nhost: {place}\r\n\r\n");
    request(proxy.plain, &text)
}

/// Attack A404: bytes behind a refused CONNECT are no request (RFC 9931 §8).
#[test]
fn nothing_is_read_behind_a_refused_connect() {
    let target = Target::start();
    let proxy = Proxy::local(&[]);
    let place = format!("127.0.0.1:{}", target.port);
    for refused in ["192.0.2.1:0", "10.0.0.1:443", "no-port"] {
        let text = format!(
            "CONNECT {refused} HTTP/1.1\r\nhost: {refused}\r\n\r\n\
             GET http://{place}/smuggled HTTP/1.1\r\nhost: {place}\r\n\r\n"
        );
        let answer = request(proxy.plain, &text);
        assert!(answer.starts_with("HTTP/1.1 4"), "{refused}: {answer}");
        assert!(answer.contains("connection: close"), "{refused}: {answer}");
    }
    // Nobody agrees on what content of a CONNECT is.
    for field in ["content-length: 5", "transfer-encoding: chunked"] {
        let text = format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{field}\r\n\r\n");
        let answer = request(proxy.plain, &text);
        assert!(answer.starts_with("HTTP/1.1 400"), "{field}: {answer}");
    }
    assert_eq!(target.accepted(), 0);
}

/// Attack A405: a target cannot make the client of the proxy read something else than HTTP.
#[test]
fn responses_that_violate_http_are_502() {
    let proxy = Proxy::local(&[]);
    for bytes in [
        &b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx\"y: 1\r\ncontent-length: 0\r\n\r\n",
    ] {
        let answer = get(&proxy, answering(bytes));
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    }
    // A length that is none beside chunks is not passed on.
    let both = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let answer = get(&proxy, answering(both));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("content-length"), "{answer}");
}

/// RFC 9110 §15.2: interim responses are passed on, and those of a flood are bounded.
#[test]
fn interim_responses_are_passed_on() {
    let proxy = Proxy::local(&[]);
    let port = answering(
        b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    );
    let output = proxy.get(
        "https",
        &format!("http://127.0.0.1:{port}/"),
        &["--verbose"],
    );
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("HTTP/1.1 103"), "{error}");
    assert!(error.contains("</style.css>"), "{error}");
}

/// Attack A405: what a request says to the proxy is neither forgotten nor passed on.
#[test]
fn requests_with_another_reading_are_refused_or_mended() {
    let target = Target::start();
    let proxy = Proxy::local(&[]);
    let place = format!("127.0.0.1:{}", target.port);
    // Without its coding, the content would be something else.
    let text = format!(
        "POST http://{place}/ HTTP/1.1\r\nhost: {place}\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    );
    let answer = request(proxy.plain, &text);
    assert!(answer.starts_with("HTTP/1.1 501"), "{answer}");
    assert_eq!(target.accepted(), 0);
    for (line, expected) in [
        (
            format!("OPTIONS http://{place}/ HTTP/1.1\r\nmax-forwards: 3"),
            "max-forwards: 2\r\n",
        ),
        (
            format!("GET http://{place}?a=b HTTP/1.1"),
            "GET /?a=b HTTP/1.1\r\n",
        ),
        (
            format!("POST http://{place}/ HTTP/1.1\r\ncontent-length: 0"),
            "content-length: 0\r\n",
        ),
    ] {
        let answer = request(proxy.plain, &format!("{line}\r\nhost: {place}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{line}: {answer}");
        let seen = target.request();
        assert!(seen.contains(expected), "{line}: {seen}");
    }
}

/// Attack A404: credentials in targets stay out of the log and out of answers.
#[test]
fn users_in_targets_are_refused_and_not_logged() {
    let mut proxy = Proxy::local(&[]);
    for line in [
        "CONNECT alice:secret@a.test:443",
        "GET http://alice:secret@a.test/",
    ] {
        let answer = request(
            proxy.plain,
            &format!("{line} HTTP/1.1\r\nhost: a.test:443\r\n\r\n"),
        );
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("names a user"), "{answer}");
        let logged = proxy.logged().to_string();
        assert!(logged.contains("a.test"), "{logged}");
        for text in [answer, logged] {
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

/// Attack A405: a client that asks for much and reads nothing is closed after --tcp-idle, and its exchange with it.
#[test]
fn clients_that_do_not_read_are_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut proxy = Proxy::local(&["--tcp-idle", "1"]);
    let mut client = TcpStream::connect(("127.0.0.1", proxy.plain)).expect("open");
    let text = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: a\r\n\r\n");
    client.write_all(text.as_bytes()).expect("open");
    let (mut target, _) = listener.accept().expect("a connection");
    // A response before the request is not for it.
    assert!(target.read(&mut [0; 1024]).is_ok_and(|it| it > 0));
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
    target.write_all(head).expect("open");
    // More than the system keeps, until the proxy closes.
    while target.write_all(&[0; 1 << 16]).is_ok() {}
    let line = proxy.logged();
    assert_eq!(line["end"], "client", "{line}");
    drop(client);
}

/// Fault F181: a reset of the target is one for a client without TLS too, and not an end.
#[cfg(target_os = "linux")]
#[test]
fn reset_of_the_target_is_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut proxy = Proxy::local(&[]);
    let mut client = connect(proxy.plain, &format!("127.0.0.1:{port}"));
    let (mut target, _) = listener.accept().expect("a connection");
    target.write_all(b"a part").expect("open");
    let mut part = [0; 6];
    client.read_exact(&mut part).expect("a part");
    reset(target);
    let rest = client.read_to_end(&mut Vec::new());
    assert!(rest.is_err(), "{rest:?}");
    assert_eq!(proxy.logged()["end"], "target");
}

/// Closes a connection with a reset.
#[cfg(target_os = "linux")]
fn reset(stream: TcpStream) {
    let limit = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(&stream, limit).expect("a socket");
}

/// RFC 9114 §4.4: over HTTP/3, a connection to the target that breaks is an error of the stream, and a stream that breaks is
/// a reset of the connection.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_pass_a_tunnel_over_http3_in_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let proxy = Proxy::local(&[]);
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
    let config = ClientConfig::dangerous_insecure().expect("a provider");
    let config = config.alpn([h3::ALPN]);
    let connecting = endpoint.connect_with(config, proxy.serving.address, "localhost");
    let connection = within(connecting.expect("a name")).await.expect("a proxy");
    let client = h3::Client::new(connection);
    let tunnel = async || {
        let request = Request::connect(format!("127.0.0.1:{port}")).body(());
        let response = within(client.connect(request.expect("a place"))).await;
        let (target, _) = listener.accept().expect("a connection");
        (response.expect("a tunnel").into_body(), target)
    };
    let (mut stream, target) = tunnel().await;
    reset(target);
    let error = within(stream.read_u8()).await.expect_err("a reset");
    let text = format!("{error:?} {error}");
    assert!(text.contains("CONNECT_ERROR"), "{text}");
    let (mut stream, mut target) = tunnel().await;
    within(stream.write_all(b"a part")).await.expect("open");
    within(stream.flush()).await.expect("open");
    let mut part = [0; 6];
    target.read_exact(&mut part).expect("a part");
    stream.reset(h3::Code::REQUEST_CANCELLED);
    let limit = Some(Duration::from_secs(20));
    target.set_read_timeout(limit).expect("a limit");
    let end = target.read(&mut part).expect_err("a reset");
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
}
