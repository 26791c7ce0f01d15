//! Connection IDs from generators of the application, and restarts of a server that has one.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use courser::{
    ClientConfig, Connection, ConnectionError, ConnectionId, ConnectionIdGenerator,
    ConnectionIdRotation, Endpoint, EndpointConfig, Identity, RandomIdGenerator, Rng, ServerConfig,
    ServerIdGenerator,
};

use crate::common::{loopback, pair_with, until, within};

fn server_ids() -> Arc<dyn ConnectionIdGenerator> {
    Arc::new(ServerIdGenerator::new(1, &[0xc0, 0x01], 7).expect("within the ranges"))
}

/// Sends a message and reads the answer.
async fn ask(client: &Connection, server: &Connection) {
    let exchange = async {
        let (mut send, mut receive) = client.open_bi().await.expect("open");
        send.write_all(b"question").await.expect("open");
        send.finish().expect("not finished");
        let (mut reply, mut request) = server.accept_bi().await.expect("open");
        assert_eq!(
            request.read_to_end(20).await.expect("complete"),
            b"question"
        );
        reply.write_all(b"answer").await.expect("open");
        reply.finish().expect("not finished");
        assert_eq!(receive.read_to_end(20).await.expect("complete"), b"answer");
    };
    within(20, exchange).await;
}

/// Starts a server whose runtime can be shut down, as if its process had been killed.
fn run_server(socket: UdpSocket, identity: &Identity) -> (tokio::runtime::Runtime, Endpoint) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a thread");
    let server = ServerConfig::with_identity(identity)
        .expect("matching key")
        .alpn(["test"]);
    // The same keys after the restart.
    let mut config = EndpointConfig::from_seed([7; 32]);
    config.connection_ids = Some(server_ids());
    let context = runtime.enter();
    let endpoint = Endpoint::new(config, Some(server), socket).expect("valid socket");
    drop(context);
    (runtime, endpoint)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_server_with_the_same_key_and_generator_resets_its_clients() {
    let identity = Identity::dev().expect("random numbers");
    let socket = UdpSocket::bind(loopback()).expect("a port");
    let again = socket.try_clone().expect("valid socket");
    let (life, server) = run_server(socket, &identity);
    let address = server.local_addr().expect("bound");
    let client = Endpoint::client(loopback()).expect("a port");
    let config = ClientConfig::with_roots([identity.certificate()])
        .expect("a certificate")
        .alpn(["test"]);
    let connecting = client
        .connect_with(config, address, "localhost")
        .expect("configured");
    let accept = async { server.accept().await.expect("open").await };
    let (connection, accepted) = within(20, async { tokio::join!(connecting, accept) }).await;
    let (connection, accepted) = (connection.expect("handshake"), accepted.expect("handshake"));
    ask(&connection, &accepted).await;
    // Its driver is gone before the handles are dropped, so no close is sent.
    let kill = move || life.shutdown_timeout(Duration::from_secs(10));
    std::thread::spawn(kill).join().expect("no panic");
    drop((server, accepted));
    let (life, server) = run_server(again, &identity);
    // Long enough that the answer can be shorter, and repeated as long as necessary.
    if let Ok(mut send) = connection.open_uni().await {
        let _ = send.write_all(&[0; 500]).await;
    }
    let ending = within(20, connection.closed()).await;
    assert!(matches!(ending, ConnectionError::Reset), "{ending:?}");
    let stats = server.stats();
    assert!(
        stats.resets_sent > 0 && stats.datagrams_foreign == 0,
        "{stats:?}"
    );
    life.shutdown_background();
}

#[tokio::test]
async fn servers_and_clients_may_supply_generators() {
    let mut pair = pair_with(Default::default(), |server| {
        server.connection_ids(server_ids())
    });
    let mut config = EndpointConfig::from_seed([8; 32]);
    config.connection_ids = Some(Arc::new(RandomIdGenerator::new(0).expect("no bytes")));
    let mut client = Endpoint::bind(config, None, loopback()).expect("a port");
    client.set_default_client_config(pair.client_config.clone());
    pair.client = client;
    let (client, server) = within(20, pair.connect()).await;
    ask(&client, &server).await;
    pair.finish().await;
}

#[tokio::test]
async fn connection_outlives_the_replacement_of_its_ids() {
    let rotation = ConnectionIdRotation {
        lifetime: None,
        datagrams: Some(10),
    };
    let pair = pair_with(Default::default(), |server| {
        server.connection_ids(Arc::new(RandomIdGenerator::default().rotate(rotation)))
    });
    let (client, server) = within(20, pair.connect()).await;
    let retired = || client.stats().frames_sent.retire_connection_id;
    let begun = std::time::Instant::now();
    while retired() < 8 && begun.elapsed() < Duration::from_secs(20) {
        ask(&client, &server).await;
    }
    assert!(retired() >= 8, "two sets of four IDs are retired");
    ask(&client, &server).await;
    pair.finish().await;
}

/// A generator that announces another length than it makes.
#[derive(Debug)]
struct Faulty;

impl ConnectionIdGenerator for Faulty {
    fn length(&self) -> usize {
        8
    }

    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        ConnectionId::new(&rng.array::<5>()).expect("5 bytes")
    }
}

#[tokio::test]
async fn faulty_generator_fails_connections_with_a_named_error() {
    let mut pair = pair_with(Default::default(), |server| {
        server.connection_ids(Arc::new(Faulty))
    });
    let connecting = pair.client.connect(pair.address, "localhost");
    let connecting = connecting.expect("configured");
    let incoming = within(20, pair.server.accept()).await.expect("open");
    let error = within(20, async { incoming.await })
        .await
        .expect_err("no ID");
    assert!(error.to_string().contains("5 bytes"), "{error}");
    until(|| pair.server.stats().connection_ids_failed == 1).await;
    drop(connecting);

    let mut config = EndpointConfig::from_seed([8; 32]);
    config.connection_ids = Some(Arc::new(Faulty));
    pair.client = Endpoint::bind(config, None, loopback()).expect("a port");
    let error = pair
        .client
        .connect_with(pair.client_config.clone(), pair.address, "localhost")
        .expect_err("no ID");
    assert!(error.to_string().contains("5 bytes"), "{error}");
}
