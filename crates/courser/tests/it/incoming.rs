//! Decisions of a server about new clients.

use std::io::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::common;
use crate::common::{pair, pair_with, until, within};
use courser::{
    ClientConfig, ConnectError, ConnectionError, Identity, RetryPolicy, ServerConfig, Side,
    TransportConfig, TransportErrorCode,
};

fn is_refused<T: std::fmt::Debug>(result: Result<T, ConnectionError>) -> bool {
    match result {
        Err(ConnectionError::ConnectionClosed(close)) => {
            close.code == TransportErrorCode::CONNECTION_REFUSED
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn accepted_connection_has_the_address_of_its_peer() {
    let pair = pair();
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let accept = async {
        let incoming = pair.server.accept().await.expect("open");
        assert_eq!(
            incoming.remote_address(),
            pair.client.local_addr().expect("bound")
        );
        assert!(!incoming.remote_address_validated());
        assert!(incoming.may_retry());
        assert!(incoming.orig_dst_cid().len() >= 8);
        let mut connecting = incoming.accept().expect("first packet");
        let data = connecting.handshake_data().await.expect("handshake");
        assert_eq!(data.server_name.as_deref(), Some("localhost"));
        assert_eq!(data.protocol.as_deref(), Some(&b"test"[..]));
        connecting.await.expect("handshake")
    };
    let (client, server) = within(10, async { tokio::join!(connecting, accept) }).await;
    let client = client.expect("handshake");
    assert_eq!((client.side(), server.side()), (Side::Client, Side::Server));
    assert_eq!(
        server.remote_address(),
        pair.client.local_addr().expect("bound")
    );
    assert_eq!(client.remote_address(), pair.address);
    assert!(client.peer_identity().is_some_and(|chain| chain.len() == 1));
    assert!(server.peer_identity().is_none());
    assert_ne!(client.stable_id(), server.stable_id());
    assert_eq!(client.stable_id(), client.clone().stable_id());
}

#[tokio::test]
async fn refused_client_gets_connection_refused() {
    let pair = pair();
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let refuse = async { pair.server.accept().await.expect("open").refuse() };
    let (result, ()) = within(10, async { tokio::join!(connecting, refuse) }).await;
    assert!(is_refused(result));
    assert_eq!(pair.server.stats().refused, 1);
}

#[tokio::test]
async fn dropped_incoming_is_refused() {
    let pair = pair();
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let refuse = async { drop(pair.server.accept().await.expect("open")) };
    let (result, ()) = within(10, async { tokio::join!(connecting, refuse) }).await;
    assert!(is_refused(result));
}

#[tokio::test]
async fn retried_client_returns_with_a_validated_address() {
    let pair = pair();
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let accept = async {
        pair.server
            .accept()
            .await
            .expect("open")
            .retry()
            .expect("not validated");
        let incoming = pair.server.accept().await.expect("open");
        assert!(incoming.remote_address_validated());
        assert!(!incoming.may_retry());
        // A second Retry is not allowed: the connection is returned.
        let error = incoming.retry().expect_err("already validated");
        error.into_incoming().await.expect("handshake")
    };
    let (client, _server) = within(10, async { tokio::join!(connecting, accept) }).await;
    client.expect("handshake");
    assert_eq!(pair.server.stats().retries_sent, 1);
}

#[tokio::test]
async fn server_that_always_retries_sees_only_validated_addresses() {
    let pair = pair_with(TransportConfig::default(), |config| {
        config.retry(RetryPolicy::Always)
    });
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let accept = async {
        let incoming = pair.server.accept().await.expect("open");
        assert!(incoming.remote_address_validated());
        incoming.await.expect("handshake")
    };
    let (client, _server) = within(10, async { tokio::join!(connecting, accept) }).await;
    client.expect("handshake");
}

#[tokio::test]
async fn ignored_client_gets_no_answer_and_may_try_again() {
    let pair = pair();
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let accept = async {
        pair.server.accept().await.expect("open").ignore();
        // The client repeats its first packet, which is a new client to the server.
        pair.server
            .accept()
            .await
            .expect("open")
            .await
            .expect("handshake")
    };
    let (client, _server) = within(20, async { tokio::join!(connecting, accept) }).await;
    client.expect("handshake");
}

#[tokio::test]
async fn accept_can_use_another_configuration() {
    let pair = pair();
    let other = Identity::self_signed(["localhost"]).expect("random numbers");
    let config = ServerConfig::with_identity(&other)
        .expect("matching key")
        .alpn(["test"]);
    let trusted = ClientConfig::with_roots([other.certificate()])
        .expect("valid roots")
        .alpn(["test"]);
    let connecting = pair
        .client
        .connect_with(trusted, pair.address, "localhost")
        .expect("configured");
    let accept = async {
        let incoming = pair.server.accept().await.expect("open");
        incoming
            .accept_with(config)
            .expect("configured")
            .await
            .expect("handshake")
    };
    let (client, _server) = within(10, async { tokio::join!(connecting, accept) }).await;
    client.expect("handshake");
}

#[tokio::test]
async fn untrusted_certificate_fails_the_handshake() {
    let pair = pair();
    let other_identity = Identity::dev().expect("random numbers");
    let trusted = ClientConfig::with_roots([other_identity.certificate()])
        .expect("valid roots")
        .alpn(["test"]);
    let connecting = pair
        .client
        .connect_with(trusted, pair.address, "localhost")
        .expect("configured");
    let accept = async { pair.server.accept().await.expect("open").await };
    let (client, server) = within(10, async { tokio::join!(connecting, accept) }).await;
    assert!(
        matches!(client, Err(ConnectionError::TransportError(_))),
        "{client:?}"
    );
    assert!(
        matches!(server, Err(ConnectionError::ConnectionClosed(_))),
        "{server:?}"
    );
}

#[tokio::test]
async fn missing_common_protocol_has_its_own_error() {
    let pair = pair();
    let config = pair.client_config.clone().alpn(["other"]);
    let connecting = pair
        .client
        .connect_with(config, pair.address, "localhost")
        .expect("configured");
    let accept = async { pair.server.accept().await.expect("open").await };
    let (client, server) = within(10, async { tokio::join!(connecting, accept) }).await;
    assert!(
        client
            .as_ref()
            .is_err_and(ConnectionError::is_protocol_mismatch),
        "{client:?}"
    );
    assert!(
        server
            .as_ref()
            .is_err_and(ConnectionError::is_protocol_mismatch),
        "{server:?}"
    );
}

#[tokio::test]
async fn unverified_servers_are_accepted_only_on_request() {
    let pair = pair();
    let config = ClientConfig::dangerous_insecure()
        .expect("TLS")
        .alpn(["test"]);
    let connecting = pair
        .client
        .connect_with(config, pair.address, "somebody.else")
        .expect("configured");
    let accept = async { pair.server.accept().await.expect("open").await };
    let (client, server) = within(10, async { tokio::join!(connecting, accept) }).await;
    client.expect("handshake");
    server.expect("handshake");
}

#[tokio::test]
async fn invalid_connection_attempts_fail_before_anything_is_sent() {
    let pair = pair();
    let no_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let error = pair
        .client
        .connect(no_port, "localhost")
        .expect_err("port 0");
    assert_eq!(error, ConnectError::InvalidRemoteAddress(no_port));
    let ipv6 = std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 1234));
    let error = pair
        .client
        .connect(ipv6, "localhost")
        .expect_err("an IPv4 socket");
    assert_eq!(error, ConnectError::InvalidRemoteAddress(ipv6));
    let error = pair
        .client
        .connect(pair.address, "not a name")
        .expect_err("spaces");
    assert_eq!(error, ConnectError::InvalidServerName("not a name".into()));
    let error = pair
        .server
        .connect(pair.address, "localhost")
        .expect_err("no configuration");
    assert_eq!(error, ConnectError::NoDefaultClientConfig);
    let config = ClientConfig::dangerous_insecure().expect("TLS");
    let error = pair
        .client
        .connect_with(config, pair.address, "localhost")
        .expect_err("no ALPN");
    assert!(error.to_string().contains(".alpn("), "{error}");
    assert_eq!(pair.client.open_connections(), 0);
}

#[tokio::test]
async fn server_without_a_configuration_stops_accepting() {
    let pair = pair();
    pair.server
        .set_server_config(None)
        .expect("nothing to check");
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let result = tokio::time::timeout(std::time::Duration::from_millis(300), connecting).await;
    assert!(result.is_err(), "{result:?}");
}

#[tokio::test]
async fn one_endpoint_is_client_and_server() {
    let (mut one, mut other) = (pair(), pair());
    one.server
        .set_default_client_config(other.client_config.clone());
    other
        .server
        .set_default_client_config(one.client_config.clone());
    let there = one
        .server
        .connect(other.address, "localhost")
        .expect("configured");
    let accept = async { other.server.accept().await.expect("open").await };
    let (client, server) = within(10, async { tokio::join!(there, accept) }).await;
    client.expect("handshake");
    server.expect("handshake");
    let back = other
        .server
        .connect(one.address, "localhost")
        .expect("configured");
    let accept = async { one.server.accept().await.expect("open").await };
    let (client, server) = within(10, async { tokio::join!(back, accept) }).await;
    client.expect("handshake");
    server.expect("handshake");
}

#[tokio::test]
async fn server_receives_the_client_certificate() {
    let (server_id, client_id) = (
        Identity::dev().expect("random"),
        Identity::self_signed(["client"]).expect("random"),
    );
    let mut clients = courser::rustls::RootCertStore::empty();
    clients.add(client_id.certificate()).expect("a certificate");
    let config = ServerConfig::with_client_auth(&server_id, clients)
        .expect("valid roots")
        .alpn(["test"]);
    let server = courser::Endpoint::server(config, common::loopback()).expect("a port");
    let client = courser::Endpoint::client(common::loopback()).expect("a port");
    let config = ClientConfig::with_roots([server_id.certificate()])
        .expect("valid roots")
        .identity(&client_id)
        .expect("matching key")
        .alpn(["test"]);
    let address = server.local_addr().expect("bound");
    let connecting = client
        .connect_with(config, address, "localhost")
        .expect("configured");
    let accept = async { server.accept().await.expect("open").await };
    let (client, server) = within(10, async { tokio::join!(connecting, accept) }).await;
    client.expect("handshake");
    let shown = server.expect("handshake").peer_identity().expect("shown");
    assert_eq!(shown, [client_id.certificate()]);
}

#[tokio::test]
async fn dual_stack_socket_accepts_both_families() {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["test"]);
    let any = std::net::SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    let Ok(server) = courser::Endpoint::server(config, any) else {
        // Not captured, so that `.ci/run` can count it.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED incoming::dual_stack_socket_accepts_both_families: no IPv6"
        );
        return;
    };
    let port = server.local_addr().expect("bound").port();
    let config = ClientConfig::with_roots([identity.certificate()])
        .expect("valid roots")
        .alpn(["test"]);
    let client = courser::Endpoint::client(any).expect("a port");
    for peer in [
        std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port)),
        std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port)),
    ] {
        let connecting = client
            .connect_with(config.clone(), peer, "localhost")
            .expect("configured");
        let accept = async { server.accept().await.expect("open").await };
        let (ours, theirs) = within(10, async { tokio::join!(connecting, accept) }).await;
        assert_eq!(ours.expect("handshake").remote_address(), peer);
        assert_eq!(theirs.expect("handshake").remote_address().ip(), peer.ip());
    }
}

#[tokio::test]
async fn transport_configuration_applies_to_the_connection() {
    let transport = Arc::new(TransportConfig {
        max_bidi_streams: 1,
        ..TransportConfig::default()
    });
    let pair = pair_with(TransportConfig::clone(&transport), |config| config);
    let (client, _server) = pair.connect().await;
    let _first = client.open_bi().await.expect("open");
    let second =
        tokio::time::timeout(std::time::Duration::from_millis(100), client.open_bi()).await;
    assert!(second.is_err(), "the peer allows one stream");
}

/// Consecutive handshakes must not keep the driver from its socket, because arriving datagrams would be lost
/// (limit K31).
#[tokio::test]
async fn four_clients_are_accepted_between_turns_of_the_driver() {
    const CLIENTS: usize = 50;
    let pair = pair();
    let connecting: Vec<_> = (0..CLIENTS)
        .map(|_| pair.client.connect(pair.address, "localhost"))
        .collect::<Result<_, _>>()
        .expect("configured");
    until(|| pair.server.stats().waiting >= CLIENTS).await;
    // On the only thread of this runtime, the driver runs only while this task waits.
    let mut accepted = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(incoming) = pin!(pair.server.accept()).poll(&mut cx) {
        accepted.push(incoming.expect("open").accept().expect("a ClientHello"));
    }
    assert_eq!(accepted.len(), 4);
    let rest = async {
        while accepted.len() < CLIENTS {
            let incoming = pair.server.accept().await.expect("open");
            accepted.push(incoming.accept().expect("a ClientHello"));
        }
    };
    within(10, rest).await;
    for connecting in connecting {
        within(10, connecting).await.expect("handshake");
    }
}
