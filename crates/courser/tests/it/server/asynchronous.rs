//! Certificates that an async function chooses, over all protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use courser::rustls::crypto::aws_lc_rs;
use courser::rustls::pki_types::PrivatePkcs8KeyDer;
use courser::rustls::sign::{CertifiedKey, Signer, SigningKey};
use courser::rustls::{Error, SignatureAlgorithm, SignatureScheme};
use courser::server::{Certificates, Drained, Limits, Protocol, Server, ServerHandle};
use courser::{Cryptography, Identity, KeyExchange, RetryPolicy, serve};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::client::Client;
use super::within;
use crate::common::relay::Relay;
use crate::common::until;
use crate::offload::Gate;

/// The name for which the functions here are slow.
const SLOW: &str = "slow.test";
/// A name without a certificate.
const UNKNOWN: &str = "unknown.test";

/// A running server, whose certificate is valid for all names.
struct Chosen {
    handle: ServerHandle,
    identity: Identity,
    task: JoinHandle<Drained>,
}

impl Chosen {
    /// Starts a server whose certificates are those that `choices` makes of the key.
    fn start(
        choices: impl FnOnce(Arc<CertifiedKey>) -> Certificates,
        change: impl FnOnce(Server) -> Server,
    ) -> Self {
        let names = ["localhost", SLOW, UNKNOWN].map(str::to_owned);
        let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
        let chain = vec![generated.cert.der().clone()];
        let provider = aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(chain.clone(), key.clone_key().into(), &provider);
        let certificates = choices(Arc::new(certified.expect("matching key")));
        let bound = change(serve("127.0.0.1:0", certificates)).bind();
        let bound = bound.expect("a free port");
        let handle = bound.handle();
        let app = Router::new().route("/", get(|| async { "served" }));
        let serving = bound.service(app).into_future();
        let task = crate::common::spawn(async move { serving.await.expect("bound already") });
        Self {
            handle,
            identity: Identity::new(chain, key.into()),
            task,
        }
    }

    /// Connects and sends a request. Returns false if the handshake fails.
    async fn serves(&self, protocol: Protocol, name: &str) -> bool {
        serves(protocol, name, &self.handle, &self.identity).await
    }

    /// Begins what [`serves`](Self::serves) does.
    fn begin(&self, protocol: Protocol, name: &'static str) -> JoinHandle<bool> {
        let (handle, identity) = (self.handle.clone(), self.identity.clone());
        crate::common::spawn(async move { serves(protocol, name, &handle, &identity).await })
    }

    fn failed(&self) -> [u64; 2] {
        let stats = self.handle.stats();
        [stats.tcp.handshakes_failed, stats.quic_handshakes_failed]
    }

    async fn end(self) {
        self.handle.drain();
        within(self.task).await.expect("no panic");
    }
}

async fn serves(
    protocol: Protocol,
    name: &str,
    handle: &ServerHandle,
    identity: &Identity,
) -> bool {
    let source = ([0, 0, 0, 0], 0).into();
    let connecting = Client::connect_as(name, source, protocol, handle.local_addr(), identity);
    match within(connecting).await {
        Ok(mut client) => {
            assert_eq!(
                within(client.text("/")).await,
                "served",
                "{protocol} {name}"
            );
            true
        }
        Err(_) => false,
    }
}

/// Returns true for a slow name once there is a permit, and at once for others.
async fn passes(name: Option<&str>, permits: &Semaphore) -> bool {
    if name == Some(SLOW) {
        permits.acquire().await.expect("open").forget();
    }
    name != Some(UNKNOWN)
}

/// The runtime has one thread: a choice that held it would stop everything.
#[tokio::test]
async fn pending_choice_delays_no_other_connection() {
    let permits = Arc::new(Semaphore::new(0));
    let waits = permits.clone();
    let server = Chosen::start(
        |key| {
            Certificates::asynchronous(move |name: Option<String>| {
                let (key, permits) = (key.clone(), waits.clone());
                async move { passes(name.as_deref(), &permits).await.then_some(key) }
            })
        },
        |server| server,
    );
    let slow = Protocol::ALL.map(|protocol| server.begin(protocol, SLOW));
    for protocol in Protocol::ALL {
        for _ in 0..3 {
            assert!(server.serves(protocol, "localhost").await, "{protocol}");
        }
        assert!(!server.serves(protocol, UNKNOWN).await, "{protocol}");
    }
    assert!(slow.iter().all(|it| !it.is_finished()), "not chosen yet");
    until(|| server.failed() == [2, 1]).await;
    permits.add_permits(3);
    for slow in slow {
        assert!(within(slow).await.expect("no panic"));
    }
    assert_eq!(server.failed(), [2, 1]);
    server.end().await;
}

/// A205: these clients send no second flight, like those with a forged address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_certificate_is_chosen_before_the_address_is_validated() {
    for policy in [None, Some(RetryPolicy::Auto)] {
        let choices = Arc::new(AtomicUsize::new(0));
        let counted = choices.clone();
        let server = Chosen::start(
            |key| {
                Certificates::asynchronous(move |_| {
                    counted.fetch_add(1, SeqCst);
                    let key = key.clone();
                    async move { Some(key) }
                })
            },
            |server| match policy {
                Some(policy) => server.retry(policy),
                None => server,
            },
        );
        let relay = Relay::new(server.handle.local_addr());
        relay.hold_answers();
        let (address, identity) = (relay.address, server.identity.clone());
        let forged = crate::common::spawn(async move {
            let source = ([0, 0, 0, 0], 0).into();
            let connecting = Client::connect_as(SLOW, source, Protocol::Http3, address, &identity);
            connecting.await.is_ok()
        });
        let retries = || {
            let quic = server.handle.stats().listeners[0].quic;
            quic.expect("QUIC is served").retries_sent
        };
        let (before, served) = match policy {
            None => {
                until(|| retries() >= 1).await;
                (0, 1)
            }
            Some(_) => {
                until(|| choices.load(SeqCst) == 1).await;
                assert_eq!(retries(), 0);
                (1, 2)
            }
        };
        assert_eq!(choices.load(SeqCst), before, "{policy:?}");
        assert!(server.serves(Protocol::Http3, "localhost").await);
        assert_eq!(choices.load(SeqCst), served, "{policy:?}");
        forged.abort();
        server.end().await;
    }
}

/// A205: a choice that never ends is cancelled at the handshake timeout and releases everything.
#[tokio::test]
async fn endless_choice_ends_with_the_handshake_timeout() {
    let mut limits = Limits::default();
    limits.handshake_timeout = Duration::from_secs(2);
    let server = Chosen::start(
        |key| {
            Certificates::asynchronous(move |name: Option<String>| {
                let key = key.clone();
                async move {
                    match name.as_deref() {
                        Some(SLOW) => std::future::pending().await,
                        _ => Some(key),
                    }
                }
            })
        },
        |server| server.limits(limits),
    );
    let slow = |protocol| server.begin(protocol, SLOW);
    // More than may wait at a time (K91).
    let mut slow: Vec<_> = (0..140).map(|_| slow(Protocol::Http3)).collect();
    for _ in 0..5 {
        slow.push(server.begin(Protocol::Http1, SLOW));
        slow.push(server.begin(Protocol::Http2, SLOW));
    }
    for slow in slow {
        assert!(!within(slow).await.expect("no panic"));
    }
    until(|| server.failed() == [10, 140]).await;
    for protocol in Protocol::ALL {
        assert!(server.serves(protocol, "localhost").await, "{protocol}");
    }
    server.end().await;
}

/// A key that waits before it signs, as one in another process does.
#[derive(Debug)]
struct SlowKey {
    key: Arc<dyn SigningKey>,
    gate: Arc<Gate>,
}

impl SigningKey for SlowKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let (signer, gate) = (self.key.choose_scheme(offered)?, self.gate.clone());
        Some(Box::new(SlowSigner { signer, gate }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[derive(Debug)]
struct SlowSigner {
    signer: Box<dyn Signer>,
    gate: Arc<Gate>,
}

impl Signer for SlowSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.gate.wait();
        self.signer.sign(message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

/// The runtime has one thread. With a group that clients do not expect they send two ClientHellos, and the key
/// signs after the second one (RFC 8446 §4.1.4).
#[tokio::test]
async fn key_that_blocks_delays_no_other_connection() {
    // FIPS 140-3 does not approve X25519.
    let expected = match cfg!(feature = "fips") {
        true => KeyExchange::Secp256r1,
        false => KeyExchange::X25519,
    };
    for group in [expected, KeyExchange::Secp384r1] {
        let gate = Arc::new(Gate::default());
        let waits = gate.clone();
        let server = Chosen::start(
            |key| {
                let slow = SlowKey {
                    key: key.key.clone(),
                    gate: waits,
                };
                let slow = Arc::new(CertifiedKey::new(key.cert.clone(), Arc::new(slow)));
                Certificates::asynchronous(move |name: Option<String>| {
                    let is_slow = name.as_deref() == Some(SLOW);
                    let key = if is_slow { slow.clone() } else { key.clone() };
                    async move { Some(key) }
                })
            },
            |server| server.cryptography(Cryptography::default().groups([group])),
        );
        let slow = Protocol::ALL.map(|protocol| server.begin(protocol, SLOW));
        gate.holds(3).await;
        for protocol in Protocol::ALL {
            assert!(server.serves(protocol, "localhost").await, "{protocol}");
        }
        assert!(slow.iter().all(|it| !it.is_finished()), "not signed yet");
        gate.open();
        for slow in slow {
            assert!(within(slow).await.expect("no panic"));
        }
        server.end().await;
    }
}
