//! Plain HTTP that leads to https.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use axum::Router;
use courser::Identity;
use courser::server::Limits;

use super::within;

/// Runs a server that redirects plain HTTP, and calls `talk` with its addresses of https and of plain HTTP.
async fn with_server<T: Send + 'static>(
    limits: Limits,
    talk: impl FnOnce(SocketAddr, SocketAddr) -> T + Send + 'static,
) -> T {
    let identity = Identity::dev().expect("random numbers");
    let server = courser::serve("127.0.0.1:0", identity)
        .limits(limits)
        .redirect_http("127.0.0.1:0")
        .bind()
        .expect("ports");
    let (https, plain) = (server.local_addr(), server.redirect_addrs()[0]);
    let serving = tokio::spawn(server.service(Router::new()).into_future());
    let talking = tokio::task::spawn_blocking(move || talk(https, plain));
    let result = within(talking).await.expect("no panic");
    serving.abort();
    result
}

/// Sends bytes and returns everything until the server closes.
fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).expect("a limit");
    stream.write_all(bytes).expect("sent");
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    String::from_utf8_lossy(&received).into_owned()
}

/// RFC 9110 §15.4.2, §15.4.9.
#[tokio::test(flavor = "multi_thread")]
async fn clients_are_led_to_https_and_the_connection_closes() {
    with_server(Limits::default(), |https, plain| {
        let port = https.port();
        let get = exchange(
            plain,
            b"GET /a?b HTTP/1.1\r\nHost: localhost:80\r\n\r\nGET / HTTP/1.1\r\n",
        );
        assert!(get.starts_with("HTTP/1.1 301 "), "{get}");
        let location = format!("location: https://localhost:{port}/a?b\r\n");
        assert!(
            get.contains(&location) && get.contains("connection: close"),
            "{get}"
        );
        assert_eq!(get.matches("HTTP/1.1").count(), 1, "{get}");
        let post = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
        let post = exchange(plain, post);
        assert!(post.starts_with("HTTP/1.1 308 "), "{post}");
        for bad in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        ] {
            let refused = exchange(plain, bad);
            assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_silent_clients_end() {
    let mut limits = Limits::default();
    limits.header_read_timeout = Duration::from_millis(200);
    with_server(limits, |_, plain| {
        let began = Instant::now();
        exchange(plain, b"");
        exchange(plain, b"GET / HTTP/1.1\r\nHost: a");
        let long = [&b"GET / HTTP/1.1\r\nx: "[..], &[b'x'; 20_000]].concat();
        let refused = exchange(plain, &long);
        assert!(
            refused.is_empty() || refused.starts_with("HTTP/1.1 431 "),
            "{refused}"
        );
        assert!(began.elapsed() < Duration::from_secs(5));
    })
    .await;
}
