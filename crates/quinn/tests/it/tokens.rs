//! Tokens with which clients validate their address, and the first packet of a client.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quinn::crypto::HandshakeTokenKey;
use quinn::{
    ClientConfig, ConnectError, ConnectionId, Endpoint, NoneTokenLog, ServerConfig, TimeSource,
    TokenLog, TokenReuseError, TokenStore, ValidationTokenConfig,
};

use crate::{LOOPBACK, configs};

/// A store that returns the token of any server, once.
#[derive(Default)]
struct AnyServer(Mutex<Vec<Bytes>>);

impl TokenStore for AnyServer {
    fn insert(&self, _: &str, token: Bytes) {
        self.0.lock().unwrap().push(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.0.lock().unwrap().pop()
    }
}

/// Returns settings of a server, and of a client with a store of tokens.
fn with_store() -> (ServerConfig, ClientConfig, Arc<AnyServer>) {
    let (server, mut client) = configs();
    let store = Arc::new(AnyServer::default());
    client.token_store(store.clone());
    (server, client, store)
}

/// Connects to a new endpoint with these settings, and returns whether it found the address validated. Waits until
/// the client has `tokens` tokens.
async fn connects_validated(
    server: &ServerConfig,
    client: &ClientConfig,
    store: &AnyServer,
    tokens: usize,
) -> bool {
    let server = Endpoint::server(server.clone(), LOOPBACK).unwrap();
    let endpoint = Endpoint::client(LOOPBACK).unwrap();
    let address = server.local_addr().unwrap();
    let connecting = endpoint
        .connect_with(client.clone(), address, "localhost")
        .unwrap();
    let accepting = async {
        let incoming = server.accept().await.unwrap();
        let is_validated = incoming.remote_address_validated();
        (is_validated, incoming.await.unwrap())
    };
    let (connection, (is_validated, _accepted)) = tokio::join!(connecting, accepting);
    let _connection = connection.unwrap();
    while store.0.lock().unwrap().len() < tokens {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    is_validated
}

/// Returns a key that programs derive from a secret.
fn token_key(secret: u8) -> Arc<dyn HandshakeTokenKey> {
    let salt = aws_lc_rs::hkdf::Salt::new(aws_lc_rs::hkdf::HKDF_SHA256, &[]);
    Arc::new(salt.extract(&[secret; 32]))
}

#[tokio::test]
async fn servers_with_one_token_key_accept_tokens_of_each_other() {
    let (mut server, client, store) = with_store();
    server.token_key(token_key(1));
    assert!(!connects_validated(&server, &client, &store, 2).await);
    let is_validated = connects_validated(&server, &client, &store, 3).await;
    assert!(is_validated, "by another endpoint with the same key");
    server.token_key(token_key(2));
    assert!(!connects_validated(&server, &client, &store, 0).await);
}

/// A log that counts the tokens of each lifetime, and accepts them.
#[derive(Default)]
struct Counted(AtomicU32, Mutex<Option<(SystemTime, Duration)>>);

impl TokenLog for Counted {
    fn check_and_insert(
        &self,
        _: u128,
        issued: SystemTime,
        lifetime: Duration,
    ) -> Result<(), TokenReuseError> {
        self.0.fetch_add(1, Relaxed);
        *self.1.lock().unwrap() = Some((issued, lifetime));
        Ok(())
    }
}

#[tokio::test]
async fn log_of_tokens_is_asked_and_decides() {
    let (mut server, client, store) = with_store();
    server.token_key(token_key(1));
    let log = Arc::new(Counted::default());
    let mut tokens = ValidationTokenConfig::default();
    tokens
        .log(log.clone())
        .lifetime(Duration::from_secs(3600))
        .sent(1);
    server.validation_token_config(tokens.clone());
    connects_validated(&server, &client, &store, 1).await;
    assert!(connects_validated(&server, &client, &store, 1).await);
    assert_eq!(log.0.load(Relaxed), 1);
    let (issued, lifetime) = log.1.lock().unwrap().unwrap();
    assert_eq!(lifetime, Duration::from_secs(3600));
    let age = SystemTime::now().duration_since(issued).unwrap();
    assert!(age < Duration::from_secs(600), "{age:?}");
    tokens.log(Arc::new(NoneTokenLog));
    server.validation_token_config(tokens);
    assert!(!connects_validated(&server, &client, &store, 1).await);
}

/// A clock that is ahead by this many seconds.
struct Ahead(u64);

impl TimeSource for Ahead {
    fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(self.0)
    }
}

#[tokio::test]
async fn tokens_expire_by_the_time_source_and_their_lifetime() {
    let (mut server, client, store) = with_store();
    server.token_key(token_key(1));
    let mut tokens = ValidationTokenConfig::default();
    tokens.lifetime(Duration::from_secs(3600)).sent(1);
    server.validation_token_config(tokens);
    connects_validated(&server, &client, &store, 1).await;
    server.time_source(Arc::new(Ahead(3500)));
    assert!(connects_validated(&server, &client, &store, 1).await);
    server.time_source(Arc::new(Ahead(3500 + 3700)));
    assert!(!connects_validated(&server, &client, &store, 1).await);
}

#[tokio::test]
async fn first_destination_of_a_client_comes_from_its_provider() {
    let (server, mut client) = configs();
    let made = ConnectionId::new(b"a provider's id");
    client.initial_dst_cid_provider(Arc::new(move || made));
    let server = Endpoint::server(server, LOOPBACK).unwrap();
    let endpoint = Endpoint::client(LOOPBACK).unwrap();
    let address = server.local_addr().unwrap();
    let connecting = endpoint
        .connect_with(client.clone(), address, "localhost")
        .unwrap();
    let incoming = async {
        let incoming = server.accept().await.unwrap();
        assert_eq!(incoming.orig_dst_cid(), made);
        incoming.await.unwrap();
    };
    let (connection, ()) = tokio::join!(connecting, incoming);
    connection.unwrap();
    client.initial_dst_cid_provider(Arc::new(|| ConnectionId::new(b"short")));
    let error = endpoint.connect_with(client, address, "localhost");
    assert!(matches!(error, Err(ConnectError::EndpointStopping)));
}

#[tokio::test]
async fn client_may_wait_whatever_the_sizes_of_buffers() {
    for bytes in [0, u64::MAX] {
        let (mut server, client, store) = with_store();
        server
            .incoming_buffer_size(bytes)
            .incoming_buffer_size_total(bytes)
            .retry_token_lifetime(Duration::from_millis(bytes >> 1));
        connects_validated(&server, &client, &store, 2).await;
    }
}
