//! Addresses validated by Retry and by NEW_TOKEN, and resumed sessions.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use courser::RetryPolicy;
use quinn::{TokenLog, TokenReuseError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use super::setup::{World, connect_courser, connect_quinn};
use super::stack::Stack;
use super::transfer::{Plan, exchange};
use crate::common::{loopback, within};

/// A stateless server answers each datagram of the ClientHello with a Retry; the client follows the
/// first (RFC 9000 §17.2.5.2).
const CLIENT_HELLO_DATAGRAMS: u64 = 2;

const SOME: Plan = Plan {
    bidi: 2,
    uni: 2,
    len: 100_000,
};

#[tokio::test]
async fn quinn_client_follows_the_retry_of_a_courser_server() {
    let mut world = World::default();
    let config = world.courser_server_config().retry(RetryPolicy::Always);
    let server = courser::Endpoint::server(config, loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let client = world.quinn_client();
    let pair = within(20, connect_quinn(client, server, address)).await;
    within(20, exchange(&pair.client, &pair.server, SOME)).await;
    let retries = pair.server_endpoint.stats().retries_sent;
    assert_eq!(retries, CLIENT_HELLO_DATAGRAMS);
}

#[tokio::test]
async fn quinn_client_follows_a_retry_on_demand() {
    let mut world = World::default();
    let (client, server) = (world.quinn_client(), world.courser_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    let incoming = within(20, server.accept()).await.expect("open");
    assert!(!incoming.remote_address_validated());
    let first_id = incoming.orig_dst_cid();
    incoming.retry().expect("not validated");
    let incoming = within(20, server.accept()).await.expect("open");
    assert!(incoming.remote_address_validated());
    assert!(!incoming.may_retry());
    assert_eq!(incoming.orig_dst_cid(), first_id);
    let (client, server) = within(20, async { tokio::join!(connecting, incoming) }).await;
    let (client, server) = (client.expect("handshake"), server.expect("handshake"));
    within(20, exchange(&client, &server, SOME)).await;
}

#[tokio::test]
async fn courser_client_follows_the_retry_of_a_quinn_server() {
    let mut world = World::default();
    let (client, server) = (world.courser_client(), world.quinn_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    within(20, server.accept())
        .await
        .expect("open")
        .retry()
        .expect("not validated");
    let incoming = within(20, server.accept()).await.expect("open");
    assert!(incoming.remote_address_validated());
    let (client, server) = within(20, async { tokio::join!(connecting, incoming) }).await;
    let (client, server) = (client.expect("handshake"), server.expect("handshake"));
    within(20, exchange(&client, &server, SOME)).await;
}

/// Tokens of a client, with a notification of their arrival.
struct Tokens {
    kept: Mutex<Vec<Bytes>>,
    arrived: Semaphore,
}

impl Tokens {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::new(Vec::new()),
            arrived: Semaphore::new(0),
        })
    }

    fn put(&self, token: Bytes) {
        self.kept.lock().expect("no panic").push(token);
        self.arrived.add_permits(1);
    }

    fn take(&self) -> Option<Bytes> {
        self.kept.lock().expect("no panic").pop()
    }

    async fn wait(&self) {
        within(20, self.arrived.acquire())
            .await
            .expect("never closed")
            .forget();
    }
}

impl courser::TokenStore for Tokens {
    fn put(&self, server: &str, token: Bytes) {
        assert!(server.starts_with("localhost:"), "{server}");
        self.put(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.take()
    }
}

impl quinn::TokenStore for Tokens {
    fn insert(&self, _: &str, token: Bytes) {
        self.put(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.take()
    }
}

/// An exact record of used tokens for quinn.
#[derive(Default)]
struct Log(Mutex<HashSet<u128>>);

impl TokenLog for Log {
    fn check_and_insert(
        &self,
        nonce: u128,
        _: SystemTime,
        _: Duration,
    ) -> Result<(), TokenReuseError> {
        let is_new = self.0.lock().expect("no panic").insert(nonce);
        if is_new { Ok(()) } else { Err(TokenReuseError) }
    }
}

#[tokio::test]
async fn quinn_client_returns_with_a_token_of_courser() {
    let mut world = World::default();
    let config = world.courser_server_config().retry(RetryPolicy::Always);
    let server = courser::Endpoint::server(config, loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let tokens = Tokens::new();
    let mut client = quinn::Endpoint::client(loopback()).expect("a port");
    let mut config = world.quinn_client_config();
    config.token_store(tokens.clone());
    client.set_default_client_config(config);

    let pair = within(20, connect_quinn(client, server, address)).await;
    tokens.wait().await;
    pair.client.close(0u32.into(), b"");
    let replayed = tokens.kept.lock().expect("no panic").last().cloned();

    let connecting = pair
        .client_endpoint
        .connect(address, "localhost")
        .expect("configured");
    let incoming = within(20, pair.server_endpoint.accept())
        .await
        .expect("open");
    assert!(incoming.remote_address_validated());
    let (again, _) = within(20, async { tokio::join!(connecting, incoming) }).await;
    again.expect("handshake");
    let retries = pair.server_endpoint.stats().retries_sent;
    assert_eq!(
        retries, CLIENT_HELLO_DATAGRAMS,
        "for the first connection only"
    );

    // A token is valid once: this connection has to follow a Retry again.
    tokens.kept.lock().expect("no panic").clear();
    tokens.put(replayed.expect("arrived"));
    let client = pair.client_endpoint.clone();
    let thrice = within(
        20,
        connect_quinn(client, pair.server_endpoint.clone(), address),
    )
    .await;
    assert_eq!(
        thrice.server_endpoint.stats().retries_sent,
        2 * CLIENT_HELLO_DATAGRAMS
    );
}

#[tokio::test]
async fn courser_client_returns_with_a_token_of_quinn() {
    let mut world = World::default();
    let mut config = world.quinn_server_config();
    let mut validation = quinn::ValidationTokenConfig::default();
    validation.sent(2).log(Arc::new(Log::default()));
    config.validation_token_config(validation);
    let server = quinn::Endpoint::server(config, loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let tokens = Tokens::new();
    let config = world
        .courser_client_config()
        .token_store(Some(tokens.clone()));
    let mut client = courser::Endpoint::client(loopback()).expect("a port");
    client.set_default_client_config(config);

    let pair = within(20, connect_courser(client, server, address)).await;
    tokens.wait().await;
    pair.client.close(0u32.into(), b"");

    let connecting = pair
        .client_endpoint
        .connect(address, "localhost")
        .expect("configured");
    let incoming = within(20, pair.server_endpoint.accept())
        .await
        .expect("open");
    assert!(incoming.remote_address_validated());
    let (again, _) = within(20, async { tokio::join!(connecting, incoming) }).await;
    again.expect("handshake");
}

/// Waits for data from the server that follows the session tickets.
async fn data_from_the_server<C: Stack, S: Stack>(client: &C, server: &S) {
    let mut send = server.open_uni().await;
    send.write_all(b"data").await.expect("enough credit");
    send.shutdown().await.expect("not finished");
    let mut data = Vec::new();
    client
        .accept_uni()
        .await
        .read_to_end(&mut data)
        .await
        .expect("sent");
    assert_eq!(data, b"data");
}

#[tokio::test]
async fn courser_client_resumes_a_session_with_quinn() {
    let mut world = World::default();
    let (client, server) = (world.courser_client(), world.quinn_server());
    let address = server.local_addr().expect("bound");
    let first = within(20, connect_courser(client, server, address)).await;
    within(20, data_from_the_server(&first.client, &first.server)).await;
    assert!(!first.client.handshake_data().expect("connected").resumed);
    first.client.close(0u32.into(), b"");
    let ends = (first.client_endpoint.clone(), first.server_endpoint.clone());
    let second = within(20, connect_courser(ends.0, ends.1, address)).await;
    assert!(second.client.handshake_data().expect("connected").resumed);
    within(20, exchange(&second.client, &second.server, SOME)).await;
}

#[tokio::test]
async fn quinn_client_resumes_a_session_with_courser() {
    let mut world = World::default();
    let (client, server) = (world.quinn_client(), world.courser_server());
    let address = server.local_addr().expect("bound");
    let first = within(20, connect_quinn(client, server, address)).await;
    within(20, data_from_the_server(&first.client, &first.server)).await;
    assert!(!first.server.handshake_data().expect("connected").resumed);
    first.client.close(0u32.into(), b"");
    let ends = (first.client_endpoint.clone(), first.server_endpoint.clone());
    let second = within(20, connect_quinn(ends.0, ends.1, address)).await;
    assert!(second.server.handshake_data().expect("connected").resumed);
    within(20, exchange(&second.client, &second.server, SOME)).await;
}
