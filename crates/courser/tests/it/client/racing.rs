//! HTTP/3 against TCP.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::client::{ErrorKind, HttpVersion, Outcome, Proxy, Transport};
use http::Version;
use tokio::sync::Semaphore;

use super::server::{Protocols, Server, echo};
use super::{builder, text, timing, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_wins_if_both_transports_work() {
    let server = Server::start(Protocols::Both, echo()).await;
    let client = builder(&server)
        .version(HttpVersion::Http3)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/a")))
        .await
        .expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    let seen = timing(&response);
    assert_eq!(seen.attempts.len(), 1, "{:?}", seen.attempts);
    assert_eq!(seen.attempts[0].outcome, Outcome::Won);
    assert_eq!(seen.remote, Some(server.address));
    assert!(seen.quic_handshake.is_some() && seen.tcp_connect.is_none());
    assert!(seen.quic.is_some_and(|quic| quic.packets_sent > 0));
    assert_eq!(text(response).await, "HTTP/3.0 GET /a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_wins_if_udp_is_dropped() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    let hole = UdpSocket::bind(server.address).expect("UDP is free there");
    let client = builder(&server)
        .version(HttpVersion::Http3)
        .build()
        .expect("a client");
    let began = Instant::now();
    let response = within(client.get(server.url("/"))).await.expect("answered");
    let took = began.elapsed();
    assert_eq!(response.version(), Version::HTTP_2);
    assert!(
        took >= Duration::from_millis(250),
        "QUIC has its head start: {took:?}"
    );
    // Far less than the handshake timeout of QUIC.
    assert!(took < Duration::from_secs(8), "{took:?}");
    let transports: Vec<_> = timing(&response)
        .attempts
        .iter()
        .map(|attempt| attempt.transport)
        .collect();
    assert_eq!(transports, [Transport::Quic, Transport::Tcp]);
    let mut datagram = [0; 1500];
    assert!(hole.recv(&mut datagram).is_ok_and(|len| len >= 1200));
    assert_eq!(server.connections.counts(), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_works_without_tcp() {
    let server = Server::start(Protocols::Quic, echo()).await;
    let client = builder(&server)
        .version(HttpVersion::Http3)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_quic_connection_carries_later_requests() {
    let server = Server::start(Protocols::Both, echo()).await;
    // UDP passes through a relay that holds everything back until TCP has won.
    let has_won = Arc::new(Semaphore::new(0));
    let released = has_won.clone();
    let relay = tokio::net::UdpSocket::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let through = relay.local_addr().expect("bound");
    let to = server.address;
    crate::common::spawn(async move {
        let mut client = None;
        let mut buffer = vec![0; 65_536];
        let relay = Arc::new(relay);
        while let Ok((len, from)) = relay.recv_from(&mut buffer).await {
            let target = if from == to { client } else { Some(to) };
            client = if from == to { client } else { Some(from) };
            let (relay, datagram) = (relay.clone(), buffer[..len].to_vec());
            let released = released.clone();
            crate::common::spawn(async move {
                let _permit = released.acquire().await.expect("not closed");
                if let Some(target) = target {
                    let _ = relay.send_to(&datagram, target).await;
                }
            });
        }
    });
    let announced = format!("h3=\":{}\"", through.port());
    let file = std::env::temp_dir().join(format!("courser-late-{}", std::process::id()));
    let line = format!(
        "h2 localhost {} h3 localhost {} \"20991231 00:00:00\" 0 0\n",
        server.address.port(),
        through.port()
    );
    std::fs::write(&file, line).expect("writable");
    let client = builder(&server)
        .alt_svc_file(&file)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_2, "{announced}");
    has_won.add_permits(1);
    until(|| server.connections.counts().0 == 1).await;
    // The client completes its handshake a little later than the server.
    let response = loop {
        let response = within(client.get(server.url("/"))).await;
        let response = response.expect("answered");
        if response.version() == Version::HTTP_3 {
            break response;
        }
        assert_eq!(response.version(), Version::HTTP_2);
    };
    assert!(timing(&response).is_reused);
    std::fs::remove_file(&file).expect("removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requested_http_version_is_used() {
    let server = Server::start(Protocols::Both, echo()).await;
    for (version, expected) in [
        (HttpVersion::Auto, Version::HTTP_2),
        (HttpVersion::Http3, Version::HTTP_3),
        (HttpVersion::Http3Only, Version::HTTP_3),
        (HttpVersion::Http2, Version::HTTP_2),
        (HttpVersion::Http1, Version::HTTP_11),
    ] {
        let client = builder(&server).version(version).build().expect("a client");
        let response = within(client.get(server.url("/"))).await.expect("answered");
        assert_eq!(response.version(), expected, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_udp_port_is_detected_early_without_tcp() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    let client = builder(&server)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("a client");
    let error = within(client.get(server.url("/")))
        .await
        .expect_err("no QUIC");
    assert!(error.is_connect() && !error.is_timeout(), "{error}");
    assert!(
        error.to_string().contains("nothing listens on udp"),
        "{error}"
    );
}

/// TCP would violate the user's choice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_only_is_an_error_where_http3_cannot_be_used() {
    let server = Server::start(Protocols::Both, echo()).await;
    let through = Proxy::Url {
        url: format!("http://{}", server.address),
        except: String::new(),
    };
    let plain = format!("http://localhost:{}/", server.address.port());
    for (proxy, url, expected) in [
        (Proxy::Direct, plain, "use https://localhost"),
        (through, server.url("/"), "MASQUE proxy only"),
    ] {
        let client = builder(&server).version(HttpVersion::Http3Only);
        let client = client.proxy(proxy).build().expect("a client");
        let error = within(client.get(&url)).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Url, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
