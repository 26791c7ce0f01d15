//! Negotiation between the two ends, and refusals.

use std::net::SocketAddr;
use std::time::Duration;

use courser::rustls::SupportedCipherSuite;
use courser::rustls::crypto::CryptoProvider;
use courser::rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use courser::{CipherSuite, ConnectionError};

use super::setup::{PROTOCOL, World, connect_quinn, socket};
use super::stack::{Ending, Stack};
use super::transfer::{Plan, exchange};
use crate::common::{loopback, within};

const SOME: Plan = Plan {
    bidi: 2,
    uni: 2,
    len: 100_000,
};

/// Checks that both ends have the same protocol and the same secrets.
fn agree<C: Stack, S: Stack>(client: &C, server: &S) {
    assert_eq!(client.protocol().as_deref(), Some(PROTOCOL));
    assert_eq!(server.protocol().as_deref(), Some(PROTOCOL));
    let secret = client.export(b"EXPORTER-test", b"context");
    assert_eq!(secret, server.export(b"EXPORTER-test", b"context"));
    assert_ne!(secret, server.export(b"EXPORTER-test", b"another context"));
}

fn check_negotiated(connection: &courser::Connection, suite: CipherSuite) {
    let data = connection.handshake_data().expect("connected");
    assert_eq!(data.suite, Some(suite));
    assert_eq!(data.key_exchange.as_deref(), Some("X25519MLKEM768"));
    assert_eq!(data.server_name.as_deref(), Some("localhost"));
    assert!(!data.resumed);
}

#[tokio::test]
async fn courser_client_and_quinn_server_agree() {
    let pair = within(20, World::default().courser_to_quinn()).await;
    agree(&pair.client, &pair.server);
    // The client's first choice, which differs between the stacks.
    check_negotiated(&pair.client, CipherSuite::Aes128Gcm);
    assert_eq!(
        pair.client.peer_identity().expect("a server has one").len(),
        1
    );
}

#[tokio::test]
async fn quinn_client_and_courser_server_agree() {
    let pair = within(20, World::default().quinn_to_courser()).await;
    agree(&pair.client, &pair.server);
    check_negotiated(&pair.server, CipherSuite::Aes256Gcm);
    assert!(pair.server.peer_identity().is_none());
}

const SUITES: [(SupportedCipherSuite, CipherSuite); 3] = [
    (
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::Aes128Gcm,
    ),
    (
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::Aes256Gcm,
    ),
    (
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        CipherSuite::ChaCha20Poly1305,
    ),
];

/// Returns a world in which quinn supports only one suite, beside the one that Initial packets
/// need.
fn world_with(suite: SupportedCipherSuite) -> World {
    let mut world = World::default();
    world.provider.cipher_suites = vec![suite];
    if suite != cipher_suite::TLS13_AES_128_GCM_SHA256 {
        world
            .provider
            .cipher_suites
            .push(cipher_suite::TLS13_AES_128_GCM_SHA256);
    }
    world
}

#[tokio::test]
async fn quinn_client_and_courser_server_support_every_suite() {
    for (offered, expected) in SUITES {
        let pair = within(20, world_with(offered).quinn_to_courser()).await;
        let data = pair.server.handshake_data().expect("connected");
        assert_eq!(data.suite, Some(expected));
        within(20, exchange(&pair.client, &pair.server, SOME)).await;
    }
}

#[tokio::test]
async fn courser_client_follows_a_hello_retry_request() {
    let mut world = World::default();
    world.provider.kx_groups = vec![kx_group::SECP384R1];
    let pair = within(20, world.courser_to_quinn()).await;
    agree(&pair.client, &pair.server);
    let data = pair.client.handshake_data().expect("connected");
    assert_eq!(data.key_exchange.as_deref(), Some("secp384r1"));
    within(20, exchange(&pair.client, &pair.server, SOME)).await;
}

#[tokio::test]
async fn courser_server_sends_a_hello_retry_request() {
    let mut world = World::default();
    let narrow = CryptoProvider {
        kx_groups: vec![kx_group::SECP384R1],
        ..default_provider()
    };
    let tls = world.server_tls(narrow);
    let config = courser::ServerConfig::with_rustls(tls.into());
    let server = courser::Endpoint::server(config, loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let pair = within(20, connect_quinn(world.quinn_client(), server, address)).await;
    agree(&pair.client, &pair.server);
    let data = pair.server.handshake_data().expect("connected");
    assert_eq!(data.key_exchange.as_deref(), Some("secp384r1"));
    within(20, exchange(&pair.client, &pair.server, SOME)).await;
}

/// A draft that quinn supports and courser does not.
const DRAFT_29: u32 = 0xff00_001d;

#[tokio::test]
async fn quinn_client_of_another_version_receives_our_versions() {
    let mut world = World::default();
    let server = world.courser_server();
    let address = server.local_addr().expect("bound");
    let mut config = world.quinn_client_config();
    config.version(DRAFT_29);
    let client = quinn::Endpoint::client(loopback()).expect("a port");
    let connecting = client
        .connect_with(config, address, "localhost")
        .expect("configured");
    let error = within(20, connecting).await.expect_err("another version");
    assert_eq!(error, quinn::ConnectionError::VersionMismatch);
    assert!(server.stats().version_negotiations_sent > 0);
    assert_eq!(server.open_connections(), 0);
}

#[tokio::test]
async fn courser_client_receives_the_versions_of_quinn() {
    let mut world = World::default();
    let mut config = quinn::EndpointConfig::default();
    config.supported_versions(vec![DRAFT_29]);
    let runtime = std::sync::Arc::new(quinn::TokioRuntime);
    let server = Some(world.quinn_server_config());
    let server = quinn::Endpoint::new(config, server, socket(), runtime).expect("valid socket");
    let client = world.courser_client();
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    let error = within(20, connecting).await.expect_err("another version");
    let ConnectionError::VersionMismatch { offered, .. } = error else {
        panic!("{error}")
    };
    assert!(offered.contains(&DRAFT_29), "{offered:x?}");
}

/// A round trip so long that nothing is retransmitted during a test.
const NEVER: Duration = Duration::from_secs(60);

/// Returns the first two datagrams that a client sends to a server that does not answer.
async fn first_flight(connect: impl FnOnce(SocketAddr)) -> Vec<Vec<u8>> {
    let silent = socket();
    silent.set_nonblocking(true).expect("valid socket");
    let silent = tokio::net::UdpSocket::from_std(silent).expect("a runtime");
    connect(silent.local_addr().expect("bound"));
    let mut flight = Vec::new();
    for _ in 0..2 {
        let mut datagram = vec![0; 2000];
        let len = within(20, silent.recv(&mut datagram))
            .await
            .expect("valid socket");
        datagram.truncate(len);
        flight.push(datagram);
    }
    flight
}

fn check_two_initials(flight: &[Vec<u8>]) {
    for datagram in flight {
        assert!(
            datagram.len() >= 1200,
            "RFC 9000 §14.1: {} bytes",
            datagram.len()
        );
        assert_eq!(datagram[0] & 0xf0, 0xc0, "an Initial packet");
        assert_eq!(datagram[1..5], [0, 0, 0, 1], "version 1");
    }
}

#[tokio::test]
async fn client_hello_of_courser_takes_two_datagrams() {
    let mut world = World::default();
    world.courser.initial_rtt = NEVER;
    let client = world.courser_client();
    let mut connecting = None;
    let flight = first_flight(|address| {
        connecting = Some(client.connect(address, "localhost").expect("configured"));
    })
    .await;
    check_two_initials(&flight);
}

#[tokio::test]
async fn client_hello_of_quinn_takes_two_datagrams() {
    let mut world = World::default();
    world.quinn.initial_rtt(NEVER);
    let client = world.quinn_client();
    let mut connecting = None;
    let flight = first_flight(|address| {
        connecting = Some(client.connect(address, "localhost").expect("configured"));
    })
    .await;
    check_two_initials(&flight);
}

/// no_application_protocol (120) as CRYPTO_ERROR, RFC 9001 §8.1.
const NO_PROTOCOL: u64 = 0x178;

fn world_without_common_protocol() -> World {
    World {
        client_protocol: b"one",
        server_protocol: b"other",
        ..World::default()
    }
}

#[tokio::test]
async fn courser_client_gets_the_alert_without_a_common_protocol() {
    let mut world = world_without_common_protocol();
    let (client, server) = (world.courser_client(), world.quinn_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    let accept = async { server.accept().await.expect("open").await };
    let (at_client, at_server) = within(20, async { tokio::join!(connecting, accept) }).await;
    let at_client = at_client.expect_err("no protocol");
    assert!(at_client.is_protocol_mismatch(), "{at_client}");
    assert!(matches!(
        Ending::from(at_client),
        Ending::Transport {
            code: NO_PROTOCOL,
            ..
        }
    ));
    let at_server = Ending::from(at_server.expect_err("no protocol"));
    assert_eq!(at_server, Ending::Violation { code: NO_PROTOCOL });
}

#[tokio::test]
async fn quinn_client_gets_the_alert_without_a_common_protocol() {
    let mut world = world_without_common_protocol();
    let (client, server) = (world.quinn_client(), world.courser_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    let accept = async { server.accept().await.expect("open").await };
    let (at_client, at_server) = within(20, async { tokio::join!(connecting, accept) }).await;
    let at_client = Ending::from(at_client.expect_err("no protocol"));
    assert!(
        matches!(
            at_client,
            Ending::Transport {
                code: NO_PROTOCOL,
                ..
            }
        ),
        "{at_client:?}"
    );
    let at_server = at_server.expect_err("no protocol");
    assert!(at_server.is_protocol_mismatch(), "{at_server}");
    assert_eq!(
        Ending::from(at_server),
        Ending::Violation { code: NO_PROTOCOL }
    );
}

/// bad_certificate (42) as CRYPTO_ERROR: the certificate is for another name than the requested
/// one.
const BAD_CERTIFICATE: u64 = 0x12a;

#[tokio::test]
async fn alert_of_a_courser_client_reaches_the_server() {
    let mut world = World::default();
    let (client, server) = (world.courser_client(), world.quinn_server());
    let address = server.local_addr().expect("bound");
    let connecting = client
        .connect(address, "elsewhere.test")
        .expect("configured");
    let accept = async {
        match server.accept().await.expect("open").await {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        }
    };
    let (at_client, at_server) = within(20, async { tokio::join!(connecting, accept) }).await;
    let at_client = Ending::from(at_client.expect_err("not trusted"));
    assert_eq!(
        at_client,
        Ending::Violation {
            code: BAD_CERTIFICATE
        }
    );
    let at_server = Ending::from(at_server);
    assert!(
        matches!(
            at_server,
            Ending::Transport {
                code: BAD_CERTIFICATE,
                ..
            }
        ),
        "{at_server:?}"
    );
}

#[tokio::test]
async fn alert_of_a_quinn_client_reaches_the_server() {
    let mut world = World::default();
    let (client, server) = (world.quinn_client(), world.courser_server());
    let address = server.local_addr().expect("bound");
    let connecting = client
        .connect(address, "elsewhere.test")
        .expect("configured");
    let accept = async { server.accept().await.expect("open").await };
    let (at_client, at_server) = within(20, async { tokio::join!(connecting, accept) }).await;
    let at_client = Ending::from(at_client.expect_err("not trusted"));
    assert_eq!(
        at_client,
        Ending::Violation {
            code: BAD_CERTIFICATE
        }
    );
    let at_server = Ending::from(at_server.expect_err("refused"));
    assert!(
        matches!(
            at_server,
            Ending::Transport {
                code: BAD_CERTIFICATE,
                ..
            }
        ),
        "{at_server:?}"
    );
}
