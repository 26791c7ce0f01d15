//! Settings: those that work, and those without an effect.

use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::congestion::{self, Controller, ControllerFactory, RttEstimator};
use quinn::{
    ConnectionIdGenerator, Endpoint, EndpointConfig, HashedConnectionIdGenerator, IdleTimeout,
    MtuDiscoveryConfig, RandomConnectionIdGenerator, TokenMemoryCache, TokenStore, TokioRuntime,
    TransportConfig, VarInt, settings_without_effect,
};
use tokio::time::timeout;

use crate::{LOOPBACK, Pair, configs};

#[test]
fn settings_without_effect_are_listed() {
    let mut transport = TransportConfig::default();
    transport
        .packet_threshold(5)
        .send_fairness(false)
        .crypto_buffer_size(1300)
        .pad_to_mtu(true);
    for _ in 0..2 {
        EndpointConfig::default().supported_versions(vec![1, 0xff00_001d]);
        quinn::ValidationTokenConfig::default().sent(2).sent(5);
    }
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(1400).minimum_change(3);
    let named = settings_without_effect();
    for name in [
        "EndpointConfig::supported_versions (drafts of QUIC)",
        "ValidationTokenConfig::sent (more than 4)",
    ] {
        let count = named.iter().filter(|&&it| it == name).count();
        assert_eq!(count, 1, "{name} in {named:?}");
    }
    for part in ["TransportConfig", "threshold", "MtuDiscoveryConfig"] {
        assert!(
            !named.iter().any(|name| name.contains(part)),
            "{part} in {named:?}"
        );
    }
}

/// Collects the texts of warnings.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN && metadata.target() == "quinn"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut |_: &tracing::field::Field, value: &dyn Debug| {
            self.0.lock().unwrap().push(format!("{value:?}"));
        });
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn setting_without_effect_is_reported_once_by_tracing() {
    let warnings = Arc::new(Warnings::default());
    tracing::subscriber::with_default(warnings.clone(), || {
        for _ in 0..3 {
            congestion::NewRenoConfig::default().loss_reduction_factor(0.3);
        }
    });
    let texts = warnings.0.lock().unwrap();
    let expected =
        "NewRenoConfig::loss_reduction_factor has no effect: courser has no such setting";
    assert_eq!(*texts, [expected]);
}

#[test]
fn numbers_are_checked() {
    assert!(VarInt::from_u64(1 << 62).is_err());
    assert_eq!(VarInt::try_from(u128::MAX).ok(), None);
    assert_eq!(VarInt::try_from(9usize), Ok(9u32.into()));
    assert!(IdleTimeout::try_from(Duration::MAX).is_err());
    let mut config = EndpointConfig::default();
    assert!(config.max_udp_payload_size(1199).is_err());
    assert_eq!(config.get_max_udp_payload_size(), 65_527);
}

#[test]
fn hashed_connection_ids_are_recognized_by_their_key_only() {
    let mut generator = HashedConnectionIdGenerator::from_key(1);
    let id = generator.generate_cid();
    assert!(
        HashedConnectionIdGenerator::from_key(1)
            .validate(&id)
            .is_ok()
    );
    assert!(
        HashedConnectionIdGenerator::from_key(2)
            .validate(&id)
            .is_err()
    );
}

#[test]
fn token_store_keeps_the_most_recent_servers() {
    let store = TokenMemoryCache::new(2, 1);
    let token = |text: &'static str| Bytes::from_static(text.as_bytes());
    store.insert("a", token("1"));
    store.insert("a", token("2"));
    store.insert("b", token("3"));
    store.insert("c", token("4"));
    assert_eq!(store.take("a"), None, "forgotten for c");
    assert_eq!(store.take("b"), Some(token("3")));
    assert_eq!(store.take("b"), None, "taken");
    store.insert("c", token("5"));
    assert_eq!(store.take("c"), Some(token("5")), "the newer one");
}

#[tokio::test]
async fn endpoints_use_connection_ids_and_limits_of_the_program() {
    let (server, client) = configs();
    let mut config = EndpointConfig::default();
    config
        .cid_generator(|| Box::new(RandomConnectionIdGenerator::new(5)))
        .grease_quic_bit(false)
        .rng_seed(Some([3; 32]))
        .min_reset_interval(Duration::from_millis(50));
    let socket = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let runtime = Arc::new(TokioRuntime);
    let server = Endpoint::new(config, Some(server), socket, runtime).unwrap();
    let mut endpoint = Endpoint::client(LOOPBACK).unwrap();
    endpoint.set_default_client_config(client);
    let pair = Pair::of(endpoint, server).await;
    pair.client.close(0u32.into(), b"");
    pair.server.closed().await;
}

#[tokio::test]
async fn limits_change_during_a_connection() {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_uni_streams(1u32.into())
        .receive_window(VarInt::from_u32(4000))
        .send_window(100_000);
    let pair = Pair::with(&transport).await;
    let mut first = pair.client.open_uni().await.unwrap();
    let second = timeout(Duration::from_millis(50), pair.client.open_uni()).await;
    assert!(second.is_err(), "one stream is allowed");
    pair.server.set_max_concurrent_uni_streams(2u32.into());
    pair.client.open_uni().await.unwrap();
    first.write_all(&[1; 4000]).await.unwrap();
    let more = timeout(Duration::from_millis(50), first.write_all(&[1; 50_000])).await;
    assert!(more.is_err(), "the window is used up");
    pair.server.set_receive_window(VarInt::from_u32(100_000));
    pair.client.set_send_window(200_000);
    first.write_all(&[1; 40_000]).await.unwrap();
    assert_eq!(pair.client.stats().path.current_mtu.min(1200), 1200);
}

#[tokio::test]
async fn controllers_of_courser_are_selected_and_reported() {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(congestion::BbrConfig::default()));
    let pair = Pair::with(&transport).await;
    let name = pair.client.as_courser().stats().path.controller;
    assert_eq!(name, "bbr");
    let state = pair.client.congestion_state();
    assert_eq!(state.window(), pair.client.stats().path.cwnd);
    assert!(state.initial_window() >= 12_000);
}

#[tokio::test]
async fn controller_of_the_program_sees_packets_and_sets_the_window() {
    let seen = Arc::new(Seen::default());
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Fixed(seen.clone())));
    let pair = Pair::with(&transport).await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[0; 100_000]).await.unwrap();
    send.finish().unwrap();
    let mut receive = pair.server.accept_uni().await.unwrap();
    receive.read_to_end(100_000).await.unwrap();
    send.stopped().await.unwrap();
    assert_eq!(pair.client.stats().path.cwnd, 54_321);
    assert!(seen.sent.load(Relaxed) > 100_000);
    assert!(seen.acked.load(Relaxed) > 100_000);
}

#[tokio::test]
async fn trace_records_the_first_connection() {
    let output = Output::default();
    let mut trace = quinn::QlogConfig::default();
    let start = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    trace
        .title(Some("a title".to_owned()))
        .description(Some("what it is about".to_owned()))
        .start_time(start);
    assert!(quinn::QlogConfig::default().into_stream().is_none());
    trace.writer(Box::new(output.clone()));
    let mut transport = TransportConfig::default();
    transport.qlog_stream(trace.into_stream());
    let pair = Pair::with(&transport).await;
    pair.client.close(0u32.into(), b"");
    pair.client_endpoint.wait_idle().await;
    let text = || String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    while !text().contains("packet_sent") {
        // A thread of its own writes.
        tokio::task::yield_now().await;
    }
    let text = text();
    assert_eq!(text.matches("a title").count(), 1, "of two connections");
    assert!(text.contains("\"description\":\"what it is about\""));
    let (_, first) = text.split_once("\"time\":").unwrap();
    let first = first.split(',').next().unwrap().parse::<f64>().unwrap();
    let most = start.elapsed().as_secs_f64() * 1000.0;
    assert!((1000.0..most).contains(&first), "{first} ms");
}

/// Bytes that a test reads while they are written.
#[derive(Clone, Default)]
struct Output(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Seen {
    sent: AtomicU64,
    acked: AtomicU64,
}

struct Fixed(Arc<Seen>);

impl ControllerFactory for Fixed {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(FixedWindow(self.0.clone()))
    }
}

/// A controller with a constant window.
struct FixedWindow(Arc<Seen>);

impl Controller for FixedWindow {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.0.sent.fetch_add(bytes, Relaxed);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        assert!(sent <= now && rtt.min() <= rtt.conservative());
        self.0.acked.fetch_add(bytes, Relaxed);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        54_321
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self(self.0.clone()))
    }

    fn initial_window(&self) -> u64 {
        54_321
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
