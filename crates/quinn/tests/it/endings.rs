//! The ends of connections, and their errors.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::rustls::{self, RootCertStore};
use quinn::{
    ClientConfig, ConnectError, ConnectionError, Endpoint, ServerConfig, TransportConfig,
    TransportErrorCode,
};
use tokio::time::timeout;

use crate::{LOOPBACK, Pair, configs};

#[tokio::test]
async fn close_reports_code_and_reason_to_the_peer() {
    let pair = Pair::new().await;
    assert_eq!(pair.client_endpoint.open_connections(), 1);
    pair.client.close(9u32.into(), b"enough");
    let error = pair.server.closed().await;
    let ConnectionError::ApplicationClosed(close) = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (u64::from(close.error_code), &close.reason[..]),
        (9, &b"enough"[..])
    );
    let io = io::Error::from(error);
    assert_eq!(io.kind(), io::ErrorKind::ConnectionAborted);
    let own = pair.client.close_reason();
    assert_eq!(own, Some(ConnectionError::LocallyClosed));
    pair.client_endpoint.wait_idle().await;
    pair.server_endpoint.close(0u32.into(), b"");
    assert!(pair.server_endpoint.accept().await.is_none());
}

#[tokio::test]
async fn port_is_free_when_the_endpoint_is_idle_and_dropped() {
    for keeps_connections in [false, true] {
        let pair = Pair::new().await;
        let client = pair.client_endpoint.local_addr().unwrap();
        let server = pair.server_endpoint.local_addr().unwrap();
        pair.client.close(0u32.into(), b"");
        pair.server.closed().await;
        pair.client_endpoint.wait_idle().await;
        pair.server_endpoint.wait_idle().await;
        let kept = keeps_connections.then_some((pair.client, pair.server));
        drop((pair.client_endpoint, pair.server_endpoint));
        for address in [client, server] {
            // The driver of quinn ends in its own task too.
            let free = async {
                while std::net::UdpSocket::bind(address).is_err() {
                    tokio::task::yield_now().await;
                }
            };
            let waited = timeout(Duration::from_secs(5), free).await;
            waited.unwrap_or_else(|_| panic!("{address} in use, kept: {}", kept.is_some()));
        }
        drop(kept);
    }
}

#[tokio::test]
async fn refused_client_gets_the_code() {
    let (server, client) = configs();
    let server = Endpoint::server(server, LOOPBACK).unwrap();
    let endpoint = Endpoint::client(LOOPBACK).unwrap();
    let address = server.local_addr().unwrap();
    let connecting = endpoint.connect_with(client, address, "localhost").unwrap();
    let refuse = async {
        let first = server.accept().await.unwrap();
        assert!(first.may_retry() && !first.remote_address_validated());
        first.retry().unwrap();
        let again = server.accept().await.unwrap();
        assert!(again.remote_address_validated());
        let again = again.retry().expect_err("validated").into_incoming();
        again.refuse();
    };
    let (error, ()) = tokio::join!(connecting, refuse);
    match error.expect_err("refused") {
        ConnectionError::ConnectionClosed(close) => {
            assert_eq!(close.error_code, TransportErrorCode::CONNECTION_REFUSED);
        }
        error => panic!("{error}"),
    }
    assert_eq!(server.stats().refused_handshakes, 1);
}

#[tokio::test]
async fn silent_peer_times_out() {
    let (_, mut client) = configs();
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(Duration::from_millis(60).try_into().unwrap()))
        .initial_rtt(Duration::from_millis(5));
    client.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(LOOPBACK).unwrap();
    // A socket without a reader.
    let silent = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let address = silent.local_addr().unwrap();
    let connecting = endpoint.connect_with(client, address, "localhost").unwrap();
    let error = connecting.await.expect_err("no answer");
    assert_eq!(error, ConnectionError::TimedOut);
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn connecting_without_settings_or_with_bad_ones_is_an_error() {
    let mut endpoint = Endpoint::client(LOOPBACK).unwrap();
    let address = "127.0.0.1:4433".parse().unwrap();
    let none = endpoint.connect(address, "localhost").expect_err("none");
    assert_eq!(none, ConnectError::NoDefaultClientConfig);
    let (_, mut client) = configs();
    let name = endpoint
        .connect_with(client.clone(), address, "no name")
        .expect_err("name");
    assert_eq!(name, ConnectError::InvalidServerName("no name".to_owned()));
    let zero = "127.0.0.1:0".parse().unwrap();
    let port = endpoint
        .connect_with(client.clone(), zero, "localhost")
        .expect_err("port");
    assert_eq!(port, ConnectError::InvalidRemoteAddress(zero));
    client.version(0xff00_001d);
    endpoint.set_default_client_config(client.clone());
    let draft = endpoint.connect(address, "localhost").expect_err("draft");
    assert_eq!(draft, ConnectError::UnsupportedVersion);
    client.version(1);
    endpoint.set_default_client_config(client);
    endpoint.close(0u32.into(), b"");
    let closed = endpoint.connect(address, "localhost").expect_err("closed");
    assert_eq!(closed, ConnectError::EndpointStopping);
}

#[tokio::test]
async fn protocols_are_negotiated_and_certificates_returned() {
    let (server, client) = tls(&[b"one", b"two"], &[b"two"]);
    let mut endpoint = Endpoint::client(LOOPBACK).unwrap();
    endpoint.set_default_client_config(client);
    let pair = Pair::of(endpoint, Endpoint::server(server, LOOPBACK).unwrap()).await;
    let data = |connection: &quinn::Connection| {
        let data = connection.handshake_data().unwrap();
        *data.downcast::<HandshakeData>().unwrap()
    };
    assert_eq!(data(&pair.client).protocol.as_deref(), Some(&b"two"[..]));
    assert_eq!(data(&pair.client).server_name, None);
    let name = data(&pair.server).server_name;
    assert_eq!(name.as_deref(), Some("localhost"));
    let chain = pair.client.peer_identity().unwrap();
    let chain = chain.downcast::<Vec<rustls::pki_types::CertificateDer<'static>>>();
    assert_eq!(chain.unwrap().len(), 1);
    let (mut one, mut other) = ([0; 20], [1; 20]);
    pair.client
        .export_keying_material(&mut one, b"label", b"context")
        .unwrap();
    pair.server
        .export_keying_material(&mut other, b"label", b"context")
        .unwrap();
    assert_eq!(one, other);
}

#[tokio::test]
async fn client_without_protocols_is_refused_by_a_server_with_some() {
    let (server, client) = tls(&[b"one"], &[]);
    let server = Endpoint::server(server, LOOPBACK).unwrap();
    let endpoint = Endpoint::client(LOOPBACK).unwrap();
    let address = server.local_addr().unwrap();
    let connecting = endpoint.connect_with(client, address, "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (error, at_server) = tokio::join!(connecting, accepting);
    assert!(at_server.is_err());
    match error.expect_err("no protocol in common") {
        // The alert no_application_protocol.
        ConnectionError::ConnectionClosed(close) => {
            assert_eq!(close.error_code, TransportErrorCode::crypto(120));
        }
        error => panic!("{error}"),
    }
}

/// Returns settings with protocols of programs' own.
fn tls(of_server: &[&[u8]], of_client: &[&[u8]]) -> (ServerConfig, ClientConfig) {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = generated.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(generated.signing_key.serialize_der().into());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    // Named, because these tests have two of them.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    server.alpn_protocols = of_server.iter().map(|name| name.to_vec()).collect();
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = of_client.iter().map(|name| name.to_vec()).collect();
    (
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap())),
        ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).unwrap())),
    )
}
