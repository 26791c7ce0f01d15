//! Panics in user code that runs inside a connection end only that connection (A103, F59).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use bytes::Bytes;
use courser::rustls::server::{ClientHello, ResolvesServerCert};
use courser::rustls::sign::CertifiedKey;
use courser::rustls::version::TLS13;
use courser::telemetry::Record;
use courser::{
    Connection, ConnectionError, ServerConfig, TokenStore, TransportConfig, TransportErrorCode,
};
use courser_base::{Rate, Time};
use courser_recovery::RttEstimator;
use courser_recovery::congestion::{AckSample, Controller, ControllerFactory, LossSample};

use crate::common::{self, within};

/// Asserts that a panic with this message has ended the connection.
fn assert_internal_fault(error: &ConnectionError, message: &str) {
    let ConnectionError::TransportError(error) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.code, TransportErrorCode::INTERNAL_ERROR);
    let text = error.to_string();
    assert!(text.contains("internal fault"), "{text}");
    assert!(text.contains(message), "{text}");
}

/// Sends some bytes in both directions.
async fn assert_works(client: &Connection, server: &Connection) {
    let exchange = async {
        let (mut send, mut receive) = client.open_bi().await.expect("allowed");
        send.write_all(b"hello").await.expect("open");
        send.finish().expect("open");
        let (mut reply, mut request) = server.accept_bi().await.expect("a stream");
        assert_eq!(request.read_to_end(10).await.expect("complete"), b"hello");
        reply.write_all(b"there").await.expect("open");
        reply.finish().expect("open");
        assert_eq!(receive.read_to_end(10).await.expect("complete"), b"there");
    };
    within(20, exchange).await;
}

#[tokio::test]
async fn sink_that_panics_ends_its_own_connection() {
    let pair = common::pair();
    let (client, server) = pair.connect().await;
    let (faulty_client, faulty_server) = pair.connect().await;
    let waiting = common::spawn({
        let server = faulty_server.clone();
        async move { server.accept_uni().await.map(drop) }
    });
    faulty_server.set_sink(Some(Box::new(|_, _: &Record| panic!("a sink of the test"))));

    let mut send = faulty_client.open_uni().await.expect("allowed");
    send.write_all(&[7; 2000]).await.expect("open");

    let error = within(20, faulty_server.closed()).await;
    assert_internal_fault(&error, "a sink of the test");
    let error = within(20, waiting)
        .await
        .expect("no panic")
        .expect_err("ended");
    assert_internal_fault(&error, "a sink of the test");
    // The peer retransmits, and receives a stateless reset.
    assert_eq!(
        within(20, faulty_client.closed()).await,
        ConnectionError::Reset
    );
    assert_works(&client, &server).await;
    let stats = pair.server.stats();
    assert_eq!((stats.faults, stats.connections), (1, 1));
    // All other handles end as usual.
    drop((faulty_client, faulty_server, client, server));
    within(20, pair.finish()).await;
}

/// Panics at the first acknowledgement after it is armed.
#[derive(Clone, Debug, Default)]
struct Armed(Arc<AtomicBool>);

impl Controller for Armed {
    fn on_sent(&mut self, _: Time, _: u64, _: u64, _: u64) {}
    fn on_ack(&mut self, _: &AckSample<'_>) {
        assert!(!self.0.load(SeqCst), "a controller of the test");
    }
    fn on_congestion(&mut self, _: &LossSample<'_>) {}
    fn on_mtu_update(&mut self, _: u16) {}
    fn window(&self) -> u64 {
        100_000
    }
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    fn pacing_rate(&self, _: &RttEstimator) -> Option<Rate> {
        None
    }
    fn in_slow_start(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        "armed"
    }
}

impl ControllerFactory for Armed {
    fn make(&self, _: u16, _: u64) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[tokio::test]
async fn controller_that_panics_ends_its_own_connection() {
    let mut pair = common::pair();
    let (client, server) = pair.connect().await;
    let armed = Armed::default();
    let transport = TransportConfig {
        controller_factory: Some(Arc::new(armed.clone())),
        ..TransportConfig::default()
    };
    let config = pair.client_config.clone().transport_config(transport);
    pair.client.set_default_client_config(config);
    let (faulty, _faulty_server) = pair.connect().await;
    armed.0.store(true, SeqCst);

    let mut send = faulty.open_uni().await.expect("allowed");
    send.write_all(&[7; 2000]).await.expect("open");

    let error = within(20, faulty.closed()).await;
    assert_internal_fault(&error, "a controller of the test");
    assert!(send.write_all(&[7; 2000]).await.is_err());
    assert_works(&client, &server).await;
    assert_eq!(pair.client.stats().faults, 1);
}

struct PanickingStore;

impl TokenStore for PanickingStore {
    fn put(&self, _: &str, _: Bytes) {
        panic!("a token store of the test");
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        None
    }
}

#[tokio::test]
async fn token_store_that_panics_ends_its_own_connection() {
    let mut pair = common::pair_with(TransportConfig::default(), |config| config.new_tokens(1));
    let (client, server) = pair.connect().await;
    let config = pair.client_config.clone();
    let config = config.token_store(Some(Arc::new(PanickingStore)));
    pair.client.set_default_client_config(config);
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let accepting = common::spawn({
        let server = pair.server.clone();
        async move { server.accept().await.expect("open").await }
    });

    let error = match within(20, connecting).await {
        Ok(connection) => within(20, connection.closed()).await,
        Err(error) => error,
    };
    assert_internal_fault(&error, "a token store of the test");
    drop(within(20, accepting).await);
    assert_works(&client, &server).await;
    assert_eq!(pair.client.stats().faults, 1);
}

#[derive(Debug)]
struct PanickingResolver;

impl ResolvesServerCert for PanickingResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        panic!("a resolver of the test");
    }
}

#[tokio::test]
async fn resolver_that_panics_refuses_its_own_client() {
    let pair = common::pair();
    let (client, server) = pair.connect().await;
    let tls = courser::rustls::ServerConfig::builder_with_provider(courser_tls::provider(&[]))
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(PanickingResolver));
    let config = ServerConfig::with_rustls(Arc::new(tls)).alpn(["test"]);
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let incoming = within(20, pair.server.accept()).await.expect("open");

    let error = match incoming.accept_with(config) {
        Ok(connecting) => within(20, connecting).await.expect_err("no certificate"),
        Err(error) => error,
    };
    assert_internal_fault(&error, "a resolver of the test");
    match within(20, connecting).await.expect_err("refused") {
        ConnectionError::ConnectionClosed(close) => {
            assert_eq!(close.code, TransportErrorCode::INTERNAL_ERROR);
        }
        other => panic!("{other:?}"),
    }
    assert_works(&client, &server).await;
    let stats = pair.server.stats();
    assert_eq!((stats.faults, stats.half_open, stats.waiting), (1, 0, 0));
}
