//! TLS work that runs in tasks, separate from the connection.

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;

use super::frames::raw;
use super::*;
use crate::handshake::crypto_streams::crypto_limit;
use crate::testing::Setup;
use crate::testing::identity::server_tls_with_big_chain;
use crate::testing::traffic::Transfer;

/// Creates a pair whose ends both run their TLS work in tasks.
fn offloaded(mut setup: Setup) -> Pair {
    setup.server.offload_tls = true;
    let mut pair = Pair::with(setup);
    pair.client_config.offload_tls = true;
    pair
}

fn with_seed(seed: u8) -> Setup {
    Setup {
        seed,
        ..Setup::default()
    }
}

#[test]
fn lossy_handshakes_complete_with_any_duration_of_tls_tasks() {
    for seed in 0..120 {
        let mut setup = with_seed(seed);
        if seed % 3 == 0 {
            // Several packets at each level.
            setup.server.tls = server_tls_with_big_chain(&[b"test"], 8);
        }
        let mut pair = offloaded(setup);
        pair.tls_delay = Duration::from_millis(u64::from(seed % 7) * 17);
        pair.link.loss = 150;
        pair.connect();
        pair.link.loss = 0;
        let transfer = Transfer::up(&mut pair, 20_000);
        let taken = transfer.finish(&mut pair, Duration::from_secs(20));
        assert!(taken.is_some(), "seed {seed}: no transfer");
    }
}

#[test]
fn tasks_are_created_only_if_the_configuration_enables_them() {
    let mut pair = Pair::connected();
    assert!(!pair.client.endpoint.has_tls_tasks() && !pair.server.endpoint.has_tls_tasks());
    assert!(pair.client.tls_tasks.is_empty() && pair.server.tls_tasks.is_empty());
    pair.run_for(RTT);
}

/// Creates a pair whose server has its TLS session in a task that takes `delay`.
fn with_task_at_server(delay: Duration) -> Pair {
    let mut pair = offloaded(Setup::default());
    pair.tls_delay = delay;
    pair.start();
    let has_task = pair.run_until(RTT, |pair| !pair.server.tls_tasks.is_empty());
    assert!(has_task);
    pair
}

#[test]
fn one_task_at_a_time_processes_all_received_data() {
    let mut pair = with_task_at_server(Duration::from_secs(1));
    pair.run_for(Duration::from_millis(500));
    assert_eq!(pair.server.tls_tasks.len(), 1);
    assert!(!pair.server.endpoint.has_tls_tasks());
    // The client has received an acknowledgement of its Initial.
    assert!(!pair.client.connection().is_closed());
    assert!(pair.run_until(Duration::from_secs(8), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
}

#[test]
fn bytes_that_arrive_during_a_tls_task_are_bounded() {
    let mut pair = with_task_at_server(Duration::from_secs(5));
    let streams = pair.server.connection().handshake_mut().crypto();
    let stream = streams.get(SpaceId::Initial).expect("it is open");
    let read = stream.read_offset();
    let limit = crypto_limit(Side::Server, SpaceId::Initial);
    let piece = 1000;
    let mut offset = read;
    while offset + piece <= read + limit {
        let data = vec![0; usize::try_from(piece).expect("small")];
        pair.forge_to_server(SpaceId::Initial, &crypto(offset, &data));
        offset += piece;
    }
    assert_eq!(pair.server_error(), None);
    pair.forge_to_server(SpaceId::Initial, &crypto(offset, &[0; 1000]));
    let exceeded = courser_wire::TransportErrorCode::CRYPTO_BUFFER_EXCEEDED;
    assert_eq!(pair.server_error(), Some(exceeded.value()));
}

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    [&raw(&[0x06, offset, data.len() as u64])[..], data].concat()
}

#[test]
fn handshake_timeout_continues_during_a_tls_task() {
    let mut pair = with_task_at_server(Duration::from_secs(3600));
    pair.run_for(Duration::from_secs(12));
    let timed_out = Event::Lost(ConnectionError::HandshakeTimedOut);
    assert!(pair.client.has(&timed_out), "{:?}", pair.client.events);
    assert!(pair.server.has(&timed_out), "{:?}", pair.server.events);
    assert_eq!(pair.server.endpoint.connections(), 0);
    let (_, handle, task) = pair.server.tls_tasks.remove(0);
    pair.server
        .endpoint
        .finish_tls_task(pair.now, handle, task.run());
    pair.drive();
    assert_eq!(pair.server.endpoint.connections(), 0);
}

#[test]
fn result_for_a_closed_connection_is_dropped() {
    let mut pair = with_task_at_server(RTT);
    let now = pair.now;
    pair.server.connection().close(now, 7, b"not today");
    pair.server.touch();
    pair.run_for(RTT * 3);
    assert!(pair.server.tls_tasks.is_empty(), "the task has ended");
    assert!(pair.server.connection().is_closed());
    assert_eq!(pair.server_error(), None);
    // Before the handshake the code is a generic one (RFC 9000 §10.2.3).
    assert_eq!(pair.close_received_by_client(), Some(0xc));
}

#[test]
fn unclaimed_task_ends_with_its_connection() {
    let mut pair = offloaded(Setup::default());
    pair.start();
    // The test takes no tasks from the server.
    pair.run_until(RTT, |pair| pair.server.endpoint.has_tls_tasks());
    let now = pair.now;
    if let Some(handle) = pair.server.handle {
        let connection = pair.server.endpoint.connection_mut(handle);
        connection.expect("it is new").close(now, 0, b"");
    }
    assert!(pair.server.endpoint.poll_tls_task().is_none());
}

/// A resolver of certificates that panics.
#[derive(Debug)]
struct Panics;

impl ResolvesServerCert for Panics {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        panic!("a resolver of the test")
    }
}

#[test]
fn panic_of_a_resolver_ends_its_connection_with_a_close_frame() {
    let mut config = rustls::ServerConfig::builder_with_provider(courser_tls::provider(&[]))
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Panics));
    config.alpn_protocols = vec![b"test".to_vec()];
    let mut setup = Setup::default();
    setup.server.tls = Arc::new(courser_tls::TlsServer::new(Arc::new(config)).expect("QUIC"));
    let mut pair = offloaded(setup);
    pair.start();
    pair.run_for(RTT * 2);
    assert_eq!(pair.server.endpoint.stats().faults, 1);
    assert_eq!(pair.server_error(), Some(1));
    let text = format!("{:?}", pair.server.events);
    assert!(text.contains("a resolver of the test"), "{text}");
    assert_eq!(pair.close_received_by_client(), Some(1));
    let text = format!("{:?}", pair.client.events);
    assert!(!text.contains("a resolver of the test"), "{text}");
}
