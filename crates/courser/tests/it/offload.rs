//! TLS work on threads that may block: slow resolvers and verifiers delay no other connection.

#[cfg(all(feature = "client", feature = "server"))]
mod http;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use courser::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use courser::rustls::crypto::{CryptoProvider, aws_lc_rs};
use courser::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use courser::rustls::server::{ClientHello, ResolvesServerCert};
use courser::rustls::sign::CertifiedKey;
use courser::rustls::version::TLS13;
use courser::rustls::{self, DigitallySignedStruct, SignatureScheme};
use courser::{
    ClientConfig, Connection, ConnectionError, Endpoint, Identity, ServerConfig, runtime,
};

use tokio::sync::Semaphore;

use crate::common::{self, loopback, until, within};
use crate::slow_disk::{echo, round_trip};

/// The name for which the resolvers here are slow.
const SLOW: &str = "slow.test";

/// A server, and a client that trusts it.
struct Ends {
    server: Endpoint,
    client: Endpoint,
    client_config: ClientConfig,
}

impl Ends {
    /// Calls `resolve` in each handshake with the name that the client requests.
    fn new(resolve: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (identity, key) = identity();
        let resolver = Resolver {
            key,
            resolve: Box::new(resolve),
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        tls.alpn_protocols = vec![b"test".to_vec()];
        Self::with(
            &identity,
            ServerConfig::with_rustls(Arc::new(tls)).offload_tls(true),
        )
    }

    fn with(identity: &Identity, config: ServerConfig) -> Self {
        let server = Endpoint::server(config, loopback()).expect("a port");
        let client = Endpoint::client(loopback()).expect("a port");
        let client_config = ClientConfig::with_roots([identity.certificate()])
            .expect("a certificate")
            .alpn(["test"]);
        common::spawn({
            let server = server.clone();
            async move {
                while let Some(incoming) = server.accept().await {
                    common::spawn(async move {
                        if let Ok(connection) = incoming.await {
                            echo(connection).await;
                        }
                    });
                }
            }
        });
        Self {
            server,
            client,
            client_config,
        }
    }

    async fn connect(&self, name: &str) -> Result<Connection, ConnectionError> {
        self.connect_with(self.client_config.clone(), name).await
    }

    async fn connect_with(
        &self,
        config: ClientConfig,
        name: &str,
    ) -> Result<Connection, ConnectionError> {
        let address = self.server.local_addr().expect("bound");
        let connecting = self.client.connect_with(config, address, name);
        connecting.expect("configured").await
    }

    async fn finish(self) {
        self.client.close(0u32.into(), b"");
        self.server.close(0u32.into(), b"");
        self.client.wait_idle().await;
        self.server.wait_idle().await;
    }
}

fn identity() -> (Identity, Arc<CertifiedKey>) {
    let names = ["localhost", SLOW].map(str::to_owned);
    let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    let chain = vec![generated.cert.der().clone()];
    let provider = aws_lc_rs::default_provider();
    let certified = CertifiedKey::from_der(chain.clone(), key.clone_key().into(), &provider);
    let identity = Identity::new(chain, key.into());
    (identity, Arc::new(certified.expect("matching key")))
}

struct Resolver {
    key: Arc<CertifiedKey>,
    resolve: Box<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolver")
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        (self.resolve)(hello.server_name().unwrap_or_default());
        Some(self.key.clone())
    }
}

/// Blocks threads until the test releases them.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
    most_waiting: AtomicUsize,
}

impl Gate {
    pub(crate) fn wait(&self) {
        let waiting = self.waiting.fetch_add(1, SeqCst) + 1;
        self.most_waiting.fetch_max(waiting, SeqCst);
        let mut is_open = self.is_open.lock().expect("no panic");
        while !*is_open {
            is_open = self.opened.wait(is_open).expect("no panic");
        }
        drop(is_open);
        self.waiting.fetch_sub(1, SeqCst);
    }

    pub(crate) fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }

    /// Waits until so many threads are blocked.
    pub(crate) async fn holds(&self, threads: usize) {
        until(|| self.waiting.load(SeqCst) == threads).await;
    }
}

/// Makes round trips on a connection. They would never end if TLS work of another connection blocked them.
async fn round_trips(connection: &Connection) {
    for _ in 0..20 {
        within(20, round_trip(connection)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolver_that_blocks_delays_no_other_connection() {
    let gate = Arc::new(Gate::default());
    let waits = gate.clone();
    let ends = Arc::new(Ends::new(move |name| {
        if name == SLOW {
            waits.wait();
        }
    }));
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    let slow = common::spawn({
        let ends = ends.clone();
        async move { ends.connect(SLOW).await }
    });
    gate.holds(1).await;
    round_trips(&connection).await;
    assert!(!slow.is_finished());
    gate.open();
    let slow = within(20, slow).await.expect("no panic");
    let slow = slow.expect("a handshake");
    within(20, round_trip(&slow)).await;
    drop((connection, slow));
    within(20, Arc::into_inner(ends).expect("last handle").finish()).await;
}

/// Accepts every certificate, after a permit for the slow name.
#[derive(Debug)]
struct SlowVerifier {
    /// The name of the server for which it is slow.
    name: &'static str,
    provider: Arc<CryptoProvider>,
    is_entered: Arc<AtomicBool>,
    /// Verification continues when there is a permit.
    permits: Arc<Semaphore>,
}

impl ServerCertVerifier for SlowVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if name.to_str() != self.name {
            return Ok(ServerCertVerified::assertion());
        }
        self.is_entered.store(true, SeqCst);
        runtime::block_on(async {
            let permit = self.permits.acquire().await;
            assert!(permit.is_ok(), "the semaphore is open");
            Ok(ServerCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl SlowVerifier {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            provider: Arc::new(aws_lc_rs::default_provider()),
            is_entered: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    fn client(self) -> ClientConfig {
        let config = ClientConfig::with_verifier(Arc::new(self)).expect("TLS");
        config.alpn(["test"])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifier_that_awaits_delays_no_other_connection() {
    let ends = Arc::new(Ends::new(|_| {}));
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    let verifier = SlowVerifier::new("localhost");
    let (is_entered, permits) = (verifier.is_entered.clone(), verifier.permits.clone());
    let slow = common::spawn({
        let ends = ends.clone();
        let config = verifier.client().offload_tls(true);
        async move { ends.connect_with(config, "localhost").await }
    });
    until(|| is_entered.load(SeqCst)).await;
    round_trips(&connection).await;
    assert!(!slow.is_finished());
    permits.add_permits(1);
    let slow = within(20, slow).await.expect("no panic");
    drop((connection, slow.expect("a handshake")));
    within(20, Arc::into_inner(ends).expect("last handle").finish()).await;
}

#[tokio::test]
async fn blocking_on_a_future_under_the_lock_ends_the_connection_with_a_reason() {
    let ends = Ends::new(|_| {});
    let result = within(
        20,
        ends.connect_with(SlowVerifier::new("localhost").client(), "localhost"),
    )
    .await;
    let error = result.expect_err("the verifier panics").to_string();
    assert!(error.contains("internal fault"), "{error}");
    let connection = within(20, ends.connect("localhost")).await;
    drop(connection.expect("others are not concerned"));
    within(20, ends.finish()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_handshakes_at_once_succeed_and_128_run_at_a_time() {
    const CLIENTS: usize = 140;
    let gate = Arc::new(Gate::default());
    let waits = gate.clone();
    let ends = Arc::new(Ends::new(move |name| {
        if name == SLOW {
            waits.wait();
        }
    }));
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let ends = ends.clone();
            let config = ends.client_config.clone().offload_tls(true);
            common::spawn(async move { ends.connect_with(config, SLOW).await })
        })
        .collect();
    gate.holds(128).await;
    round_trips(&connection).await;
    gate.open();
    let mut connections = vec![connection];
    for client in clients {
        let connected = within(60, client).await.expect("no panic");
        connections.push(connected.expect("a handshake"));
    }
    assert_eq!(connections.len(), CLIENTS + 1);
    assert_eq!(gate.most_waiting.load(SeqCst), 128);
    drop(connections);
    within(60, Arc::into_inner(ends).expect("last handle").finish()).await;
}

/// Blocks in `resolve` until it is allowed to continue.
fn gate(ready: Receiver<()>) -> impl Fn(&str) + Send + Sync {
    let ready = Mutex::new(ready);
    move |name| {
        if name == SLOW {
            // The test may be over.
            let _ = ready.lock().expect("no panic").recv();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_leaves_during_tls_work_leaves_no_state() {
    let (open, ready) = sync_channel(1);
    let ends = Ends::new(gate(ready));
    let leaves = tokio::time::timeout(Duration::from_millis(300), ends.connect(SLOW));
    assert!(leaves.await.is_err(), "the resolver waits");
    // The server discards the connection although its session has not been returned.
    until(|| ends.server.stats().accepted > 0 && ends.server.stats().connections == 0).await;
    open.send(()).expect("the resolver waits");
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    within(20, round_trip(&connection)).await;
    drop(connection);
    within(20, ends.finish()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_closes_during_tls_work() {
    let (open, ready) = sync_channel(1);
    let ends = Ends::new(gate(ready));
    let leaves = tokio::time::timeout(Duration::from_millis(300), ends.connect(SLOW));
    assert!(leaves.await.is_err(), "the resolver waits");
    within(30, ends.finish()).await;
    open.send(()).expect("the resolver waits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panicking_resolver_ends_its_own_connection_with_internal_error() {
    let ends = Ends::new(|name| assert!(name != SLOW, "a resolver of the test"));
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    let error = within(20, ends.connect(SLOW)).await.expect_err("a panic");
    let ConnectionError::ConnectionClosed(close) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(close.code, courser::TransportErrorCode::INTERNAL_ERROR);
    assert!(close.reason.is_empty(), "{close:?}");
    assert_eq!(ends.server.stats().faults, 1);
    within(20, round_trip(&connection)).await;
    drop(connection);
    within(20, ends.finish()).await;
}

#[tokio::test]
async fn async_function_chooses_the_certificate_by_name() {
    let (identity, key) = identity();
    let config = ServerConfig::with_async_certificates(move |name: Option<String>| {
        let key = key.clone();
        async move {
            tokio::task::yield_now().await;
            (name.as_deref() == Some(SLOW)).then_some(key)
        }
    });
    let ends = Ends::with(&identity, config.expect("random numbers").alpn(["test"]));
    let connection = within(20, ends.connect(SLOW)).await.expect("a handshake");
    within(20, round_trip(&connection)).await;
    let refused = within(20, ends.connect("localhost")).await;
    assert!(refused.is_err(), "there is no certificate for this name");
    drop(connection);
    within(20, ends.finish()).await;
}
