use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use courser::server::{Error, Limits, Protocol};
use courser::{Identity, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use super::client::{Client, empty, request, tls};
use super::http2::{
    ACK, END_STREAM_AND_HEADERS, HEADERS, REFUSED_STREAM, REQUEST, RST_STREAM, SETTINGS, frame,
};
use super::{start_with, within};
use crate::common::until;

fn app() -> Router {
    Router::new().route("/", get(|| async { "served" }))
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_clients_time_out_before_the_handshake() {
    let limits = limits(|limits| limits.handshake_timeout = Duration::from_millis(200));
    let running = start_with(app(), |server| server.limits(limits));
    let stream = tokio::net::TcpStream::connect(running.handle.local_addr()).await;
    let mut stream = stream.expect("a server");
    let read = within(stream.read(&mut [0; 1])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(running.handle.stats().tcp.handshakes_failed, 1);
}

/// A header section that arrives byte by byte, without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_header_sections_time_out() {
    let limits = limits(|limits| limits.header_read_timeout = Duration::from_millis(500));
    let running = start_with(app(), |server| server.limits(limits));
    let address = running.handle.local_addr();
    let certificate = running.identity.certificate();
    let stream = tls(address, certificate, &[b"http/1.1"]).await;
    let mut stream = stream.expect("a server");
    let began = Instant::now();
    let given_up = within(async {
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ")
            .await?;
        loop {
            stream.write_all(b"x").await?;
            stream.flush().await?;
            let mut byte = [0; 1];
            let read = stream.read(&mut byte);
            match tokio::time::timeout(Duration::from_millis(50), read).await {
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) | Err(_) => {}
                Ok(Err(error)) => return Err(error),
            }
        }
    })
    .await;
    assert!(
        began.elapsed() >= Duration::from_millis(400),
        "{given_up:?}"
    );
    until(|| running.handle.stats().http1.connections_open == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_requests_end() {
    let limits = limits(|limits| limits.idle_timeout = Duration::from_millis(300));
    let running = start_with(app(), |server| server.limits(limits));
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        assert_eq!(within(client.text("/")).await, "served");
        assert_eq!(running.handle.stats().of(protocol).connections_open, 1);
        until(|| running.handle.stats().of(protocol).connections_open == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_above_the_maximum_is_refused() {
    for protocol in Protocol::ALL {
        let limits = limits(|limits| limits.max_connections = 1);
        let running = start_with(app(), |server| server.limits(limits));
        let address = running.handle.local_addr();
        let first = Client::connect(protocol, address, &running.identity).await;
        let mut first = first.expect("a server");
        assert_eq!(within(first.text("/")).await, "served", "{protocol}");
        let second = within(Client::connect(protocol, address, &running.identity)).await;
        assert!(second.is_err(), "{protocol}");
        assert_eq!(within(first.text("/")).await, "served", "{protocol}");
        // A first flight of two datagrams may be refused twice.
        assert!(running.handle.stats().refused >= 1, "{protocol}");
    }
}

/// Limit K24: the same in all versions of HTTP, and never the end of an HTTP/2 or HTTP/3 connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_of_64_kib_are_accepted_by_each_version() {
    let running = start_with(app(), |server| server);
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        assert_eq!(within(client.text("/")).await, "served", "{protocol}");
        for (len, status) in [
            (64_000, Some(200)),
            (66_000, Some(431)),
            (64_000, Some(200)),
        ] {
            let mut request = request("GET", "/", empty());
            let cookie = "c".repeat(len).parse().expect("a value");
            request.headers_mut().insert("cookie", cookie);
            let seen = within(client.send(request)).await;
            let seen = seen.ok().map(|response| response.status().as_u16());
            match (protocol, len, seen) {
                // courser's client knows the limit of the server and does not send the request.
                (Protocol::Http3, 66_000, None) => {}
                // The end of the connection is that of the request.
                (Protocol::Http1, 66_000, Some(431)) => break,
                _ => assert_eq!(seen, status, "{protocol}, {len}"),
            }
        }
    }
}

/// Attack A101, limit K86. Only Linux has more than one loopback address.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_source_at_its_share_leaves_room_for_another() {
    for protocol in Protocol::ALL {
        let limits = limits(|limits| limits.max_connections = 8);
        let running = start_with(app(), |server| server.limits(limits));
        let address = running.handle.local_addr();
        let from = |source: [u8; 4]| {
            let source = SocketAddr::from((source, 0));
            Client::connect_from(source, protocol, address, &running.identity)
        };
        let mut held = Vec::new();
        while let Ok(client) = within(from([127, 0, 0, 1])).await {
            held.push(client);
            assert!(held.len() <= 6, "{protocol}: three times what is left");
        }
        assert_eq!(held.len(), 6, "{protocol}");
        assert!(running.handle.stats().refused_for_share >= 1, "{protocol}");
        let mut other = within(from([127, 0, 1, 2]))
            .await
            .expect("has its own share");
        assert_eq!(within(other.text("/")).await, "served", "{protocol}");
    }
}

fn conflict(address: SocketAddr) -> String {
    let identity = Identity::dev().expect("random numbers");
    let error = serve(address, &identity)
        .bind()
        .expect_err("the port is taken");
    assert!(error.is_port_taken(), "{error}");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1);
    text
}

#[tokio::test]
async fn error_names_the_port_in_use() {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let text = conflict(udp.local_addr().expect("bound"));
    assert!(
        text.contains("UDP 127.0.0.1:") && text.contains("choose another"),
        "{text}"
    );
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let text = conflict(tcp.local_addr().expect("bound"));
    assert!(text.contains("TCP 127.0.0.1:"), "{text}");
}

#[tokio::test]
async fn error_names_an_address_that_cannot_be_bound() {
    let identity = Identity::dev().expect("random numbers");
    let error = serve("nowhere", &identity).bind().expect_err("no port");
    assert!(error.to_string().contains("127.0.0.1:4433"), "{error}");
    let server = serve("127.0.0.1:0", &identity).without_tcp().without_quic();
    assert!(matches!(server.bind(), Err(Error::NothingToServe)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_listens_on_several_addresses() {
    let running = start_with(app(), |server| {
        server.also_on("[::1]:0").also_on("127.0.0.1:0")
    });
    let addresses = running.handle.local_addrs();
    assert_eq!(addresses.len(), 3);
    assert_eq!(
        addresses[0].port(),
        addresses[1].port(),
        "one port for both"
    );
    assert_ne!(addresses[0], addresses[2], "one address has a port once");
    for address in addresses {
        for protocol in Protocol::ALL {
            let client = Client::connect(protocol, address, &running.identity).await;
            let text = within(client.expect("a server").text("/")).await;
            assert_eq!(text, "served", "{protocol} {address}");
        }
    }
}

/// Limit K61: clients that exceed the limit are refused, and lose nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_above_the_maximum_over_http2_is_refused() {
    let permits = Arc::new(Semaphore::new(0));
    let waiting = permits.clone();
    let app = Router::new().route(
        "/",
        get(move || async move {
            let _permit = waiting.acquire().await;
            "served"
        }),
    );
    let running = start_with(app, |server| server);
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let stream = tls(address, certificate, &[b"h2"]).await;
    let mut stream = stream.expect("a server");
    let most = Limits::default().max_http2_streams;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(SETTINGS, ACK, 0, &[]));
    for number in 0..=most {
        bytes.extend(frame(
            HEADERS,
            END_STREAM_AND_HEADERS,
            2 * number + 1,
            REQUEST,
        ));
    }
    within(stream.write_all(&bytes)).await.expect("open");
    within(stream.flush()).await.expect("open");
    let (mut answered, mut refused) = (0, Vec::new());
    while answered < most || refused.is_empty() {
        let mut head = [0; 9];
        within(stream.read_exact(&mut head)).await.expect("open");
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; len as usize];
        within(stream.read_exact(&mut payload)).await.expect("open");
        match head[3] {
            RST_STREAM => {
                assert_eq!(payload, REFUSED_STREAM.to_be_bytes());
                refused.push(id);
                // All others have been waiting until now.
                assert_eq!(answered, 0);
                permits.add_permits(most as usize);
            }
            HEADERS => answered += 1,
            _ => {}
        }
    }
    assert_eq!((answered, refused), (most, vec![2 * most + 1]));
}
