//! TLS work on threads that may block: slow resolvers and verifiers delay no other connection.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
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
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let chain = vec![made.cert.der().clone()];
    let provider = aws_lc_rs::default_provider();
    let certified = CertifiedKey::from_der(chain.clone(), key.clone_key().into(), &provider);
    let identity = Identity::new(chain, key.into());
    (identity, Arc::new(certified.expect("they fit together")))
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

/// Measures round trips on a connection until `work` is done. Returns their median, and the result
/// of `work`.
async fn median_beside<T: Send + 'static>(
    connection: &Connection,
    work: impl Future<Output = T> + Send + 'static,
) -> (Duration, T) {
    let work = common::spawn(work);
    let mut times = Vec::new();
    while !work.is_finished() {
        times.push(round_trip(connection).await);
    }
    times.sort();
    let result = work.await.expect("no panic");
    (times[times.len() / 2], result)
}

/// Round trips are at least this fast while another handshake takes a second.
const FAST: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolver_that_takes_a_second_delays_no_other_connection() {
    let ends = Arc::new(Ends::new(|name| {
        if name == SLOW {
            std::thread::sleep(Duration::from_secs(1));
        }
    }));
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    let slow = {
        let ends = ends.clone();
        async move { ends.connect(SLOW).await }
    };
    let (median, slow) = within(30, median_beside(&connection, slow)).await;
    assert!(median < FAST, "{median:?}");
    let slow = slow.expect("a handshake");
    within(20, round_trip(&slow)).await;
    drop((connection, slow));
    within(20, Arc::into_inner(ends).expect("the last").finish()).await;
}

/// Calls an async function, and accepts what it accepts.
#[derive(Debug)]
struct SlowVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for SlowVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        runtime::block_on(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(ServerCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn slow_client() -> ClientConfig {
    let verifier = SlowVerifier(Arc::new(aws_lc_rs::default_provider()));
    let config = ClientConfig::with_verifier(Arc::new(verifier)).expect("TLS");
    config.alpn(["test"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifier_that_awaits_for_a_second_delays_no_other_connection() {
    let ends = Arc::new(Ends::new(|_| {}));
    let connection = within(20, ends.connect("localhost")).await;
    let connection = connection.expect("a handshake");
    let slow = {
        let ends = ends.clone();
        let config = slow_client().offload_tls(true);
        async move { ends.connect_with(config, "localhost").await }
    };
    let (median, slow) = within(30, median_beside(&connection, slow)).await;
    assert!(median < FAST, "{median:?}");
    drop((connection, slow.expect("a handshake")));
    within(20, Arc::into_inner(ends).expect("the last").finish()).await;
}

#[tokio::test]
async fn blocking_on_a_future_under_the_lock_ends_the_connection_with_a_reason() {
    let ends = Ends::new(|_| {});
    let result = within(20, ends.connect_with(slow_client(), "localhost")).await;
    let error = result.expect_err("the verifier panics").to_string();
    assert!(error.contains("internal fault"), "{error}");
    let connection = within(20, ends.connect("localhost")).await;
    drop(connection.expect("others are not concerned"));
    within(20, ends.finish()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_handshakes_at_once_succeed_and_128_run_at_a_time() {
    const CLIENTS: usize = 140;
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counted = counts.clone();
    let ends = Arc::new(Ends::new(move |_| {
        let (running, most) = &*counted;
        most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_millis(500));
        running.fetch_sub(1, SeqCst);
    }));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let ends = ends.clone();
            let config = ends.client_config.clone().offload_tls(true);
            common::spawn(async move { ends.connect_with(config, "localhost").await })
        })
        .collect();
    let mut connections = Vec::new();
    for client in clients {
        let connected = within(60, client).await.expect("no panic");
        connections.push(connected.expect("a handshake"));
    }
    assert_eq!(connections.len(), CLIENTS);
    let most = counts.1.load(SeqCst);
    assert!((2..=128).contains(&most), "{most} at a time");
    drop(connections);
    within(60, Arc::into_inner(ends).expect("the last").finish()).await;
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
async fn client_that_leaves_while_tls_is_at_work_leaves_nothing_behind() {
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
async fn endpoint_closes_while_tls_is_at_work() {
    let (open, ready) = sync_channel(1);
    let ends = Ends::new(gate(ready));
    let leaves = tokio::time::timeout(Duration::from_millis(300), ends.connect(SLOW));
    assert!(leaves.await.is_err(), "the resolver waits");
    within(30, ends.finish()).await;
    open.send(()).expect("the resolver waits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolver_that_panics_ends_its_own_connection_and_the_client_is_told() {
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
