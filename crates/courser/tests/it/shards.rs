//! Endpoints with several shards: one address, several sockets and tasks.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::telemetry::{Sink, SinkFactory};
use courser::{
    BindError, ClientConfig, Connection, ConnectionError, ConnectionId, ConnectionIdGenerator,
    Endpoint, EndpointConfig, EndpointStats, Identity, Rng, ServerConfig, ServerIdGenerator, Side,
    VarInt,
};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Runtime;

use crate::common::{loopback, pattern, spawn, until, within};
use crate::wakes::Wakes;

const LEN: usize = 200_000;

/// A server of many clients, and what they need to connect.
struct Service {
    server: Endpoint,
    client: ClientConfig,
    address: SocketAddr,
}

fn server_config(identity: &Identity) -> ServerConfig {
    let config = ServerConfig::with_identity(identity).expect("matching key");
    config.alpn(["test"])
}

fn client_config(identity: &Identity) -> ClientConfig {
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    config.alpn(["test"])
}

/// Starts a server with so many shards, which echoes all streams.
fn serve(shards: usize, change: impl FnOnce(ServerConfig) -> ServerConfig) -> Service {
    let identity = Identity::dev().expect("random numbers");
    let config = change(server_config(&identity));
    let builder = Endpoint::builder().server(config).shards(shards);
    let server = builder.bind(loopback()).expect("a port");
    assert_eq!(server.shard_count(), shards);
    echo_all(&server);
    Service {
        address: server.local_addr().expect("bound"),
        client: client_config(&identity),
        server,
    }
}

fn echo_all(server: &Endpoint) {
    let server = server.clone();
    spawn(async move {
        while let Some(incoming) = server.accept().await {
            spawn(async move {
                let Ok(connection) = incoming.await else {
                    return;
                };
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    spawn(async move {
                        let copied = tokio::io::copy(&mut receive, &mut send).await;
                        copied.map(|_| send.finish().expect("not finished"))
                    });
                }
            });
        }
    });
}

impl Service {
    /// Connects from a socket of its own.
    async fn connect(&self) -> (Endpoint, Connection) {
        let mut client = Endpoint::client(loopback()).expect("a port");
        client.set_default_client_config(self.client.clone());
        let connection = self.connect_from(&client).await;
        (client, connection)
    }

    async fn connect_from(&self, client: &Endpoint) -> Connection {
        let connecting = client
            .connect_with(self.client.clone(), self.address, "localhost")
            .expect("reachable");
        within(30, connecting).await.expect("a handshake")
    }

    /// Returns the number of clients that each shard has accepted.
    fn accepted(&self) -> Vec<u64> {
        let each = self.server.shard_stats().into_iter();
        each.map(|stats| stats.accepted).collect()
    }
}

/// Sends bytes to the echo in parts, with a change between them, and compares what comes back.
async fn ask(connection: &Connection, parts: usize, change: impl AsyncFn()) {
    let question = pattern(3, LEN);
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    let mut answer = vec![0; LEN];
    let write = async {
        for part in question.chunks(LEN / parts) {
            send.write_all(part).await.expect("open");
            change().await;
        }
        send.finish().expect("not finished");
    };
    let read = async { receive.read_exact(&mut answer).await.expect("complete") };
    within(60, async { tokio::join!(write, read) }).await;
    assert!(answer == question, "the echo differs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_served_by_all_shards() {
    for shards in [1, 2, 4, 16] {
        let service = serve(shards, |config| config);
        let mut clients = Vec::new();
        for _ in 0..32 {
            clients.push(service.connect().await);
        }
        for (_, connection) in &clients {
            ask(connection, 2, async || {}).await;
        }
        let accepted = service.accepted();
        assert_eq!((accepted.len(), accepted.iter().sum::<u64>()), (shards, 32));
        let idle = accepted.iter().filter(|count| **count == 0).count();
        // Each shard is missed by all clients with a chance of one in eight at most.
        assert!(idle <= shards / 2, "{accepted:?}");
        let stats = service.server.stats();
        assert_eq!(
            (stats.accepted, stats.connections, stats.half_open),
            (32, 32, 0)
        );
        assert_eq!((stats.strays_dropped, stats.resets_sent), (0, 0));
        assert_eq!(service.server.open_connections(), 32);
        assert!(service.server.socket_counters().received_datagrams > 32);
    }
}

/// Moves clients to other ports while they send and receive.
async fn move_clients(service: &Service) {
    // What arrives from a closed connection may be answered with a reset, so all stay open.
    let mut moved = Vec::new();
    for _ in 0..6 {
        let (client, connection) = service.connect().await;
        for _ in 0..5 {
            let has_moved = AtomicBool::new(false);
            ask(&connection, 4, async || {
                if !has_moved.swap(true, Relaxed) {
                    client.rebind_to(loopback()).expect("a port");
                }
            })
            .await;
        }
        moved.push((client, connection));
    }
    let stats = || service.server.stats();
    assert_eq!((stats().strays_dropped, stats().resets_sent), (0, 0));
    // One may be on its way from shard to shard.
    let has_arrived = |it: EndpointStats| it.strays_sent == it.strays_received;
    until(|| has_arrived(stats())).await;
    assert_eq!(stats().accepted, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_move_stay_with_their_shard() {
    for shards in [2, 4, 16] {
        let service = serve(shards, |config| config);
        move_clients(&service).await;
        assert_eq!(
            service.server.capabilities().warnings.len(),
            warnings_without_shards()
        );
    }
}

/// Returns the number of warnings about sockets on this machine.
fn warnings_without_shards() -> usize {
    let endpoint = Endpoint::client(loopback()).expect("a port");
    endpoint.capabilities().warnings.len()
}

/// The shard is in a byte of the nonce, and the load balancer's bytes stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_balancer_ids_contain_the_shard_too() {
    let ids = ServerIdGenerator::new(1, &[0xc0, 0x01], 7).expect("within the ranges");
    let service = serve(4, |config| config.connection_ids(Arc::new(ids)));
    move_clients(&service).await;
    assert_eq!(service.server.stats().connection_ids_failed, 0);
}

/// Generates connection IDs that do not contain the shard.
#[derive(Debug)]
struct WithoutShard;

impl ConnectionIdGenerator for WithoutShard {
    fn length(&self) -> usize {
        8
    }

    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        ConnectionId::new(&rng.array::<8>()).expect("8 bytes")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_with_ids_that_lack_the_shard_are_forwarded_and_reported() {
    let service = serve(4, |config| config.connection_ids(Arc::new(WithoutShard)));
    move_clients(&service).await;
    assert!(
        service.server.stats().strays_sent > 0,
        "ports decide where datagrams arrive"
    );
    let warnings = service.server.capabilities().warnings;
    let about = |text: &&String| text.contains("no place for the shard");
    assert_eq!(warnings.iter().filter(about).count(), 1, "{warnings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_may_have_shards_too() {
    let service = serve(3, |config| config);
    let client = Endpoint::builder()
        .shards(4)
        .bind(loopback())
        .expect("a port");
    let mut connections = Vec::new();
    for _ in 0..12 {
        connections.push(service.connect_from(&client).await);
    }
    for connection in &connections {
        ask(connection, 2, async || {}).await;
    }
    let connected: Vec<_> = client.shard_stats().iter().map(|it| it.connected).collect();
    assert_eq!(connected, [3, 3, 3, 3], "in turn");
    // All shards move to a port that they share.
    let before = client.local_addr().expect("bound");
    client.rebind_to(loopback()).expect("a port");
    assert_ne!(client.local_addr().expect("bound"), before);
    for connection in &connections {
        ask(connection, 2, async || {}).await;
    }
    let socket = UdpSocket::bind(loopback()).expect("a port");
    let refused = client
        .rebind(socket)
        .expect_err("one socket for four shards");
    assert!(refused.to_string().contains("rebind_to"), "{refused}");
    assert_eq!(client.stats().strays_dropped, 0);
    client.close(VarInt::from_u32(0), b"");
    within(10, client.wait_idle()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_reaches_all_shards_and_frees_the_port() {
    let service = serve(4, |config| config);
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(service.connect().await);
    }
    // Before the end of a handshake the client would get another code (RFC 9000 section 10.2.3).
    until(|| {
        let stats = service.server.stats();
        (stats.accepted, stats.half_open) == (8, 0)
    })
    .await;
    service.server.close(VarInt::from_u32(7), b"the end");
    within(10, service.server.wait_idle()).await;
    assert!(within(5, service.server.accept()).await.is_none());
    for (_, connection) in &clients {
        let error = within(10, connection.closed()).await;
        assert!(
            matches!(error, ConnectionError::ApplicationClosed { .. }),
            "{error:?}"
        );
    }
    let Service {
        server, address, ..
    } = service;
    drop(server);
    until(|| UdpSocket::bind(address).is_ok()).await;
}

/// The shards of an endpoint without handles end together, after their last connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_end_together() {
    let identity = Identity::dev().expect("random numbers");
    let builder = Endpoint::builder()
        .server(server_config(&identity))
        .shards(4);
    let server = builder.bind(loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let client = Endpoint::client(loopback()).expect("a port");
    let connecting = client.connect_with(client_config(&identity), address, "localhost");
    let accept = async {
        server
            .accept()
            .await
            .expect("a client")
            .await
            .expect("a handshake")
    };
    let (at_client, at_server) = within(10, async {
        tokio::join!(connecting.expect("reachable"), accept)
    })
    .await;
    drop(server);
    assert!(UdpSocket::bind(address).is_err(), "a connection is left");
    drop(at_client);
    within(10, at_server.closed()).await;
    drop(at_server);
    until(|| UdpSocket::bind(address).is_ok()).await;
}

/// Starts a server whose runtime can be shut down, as if its process had been killed.
fn run_server(identity: &Identity, shards: usize, address: SocketAddr) -> (Runtime, Endpoint) {
    let runtime = Runtime::new().expect("threads");
    let context = runtime.enter();
    // The same keys after the restart.
    let config = EndpointConfig::from_seed([7; 32]);
    let builder = Endpoint::builder().config(config).shards(shards);
    let server = builder.server(server_config(identity)).bind(address);
    drop(context);
    (runtime, server.expect("the port is free"))
}

/// A server that was killed and restarted with another number of shards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_servers_reset_unknown_connections() {
    let identity = Identity::dev().expect("random numbers");
    let (life, server) = run_server(&identity, 4, loopback());
    let address = server.local_addr().expect("bound");
    let mut connections = Vec::new();
    let mut accepted = Vec::new();
    for _ in 0..8 {
        let client = Endpoint::client(loopback()).expect("a port");
        let connecting = client.connect_with(client_config(&identity), address, "localhost");
        let accept = async { server.accept().await.expect("open").await };
        let both = async { tokio::join!(connecting.expect("reachable"), accept) };
        let (at_client, at_server) = within(20, both).await;
        connections.push((client, at_client.expect("a handshake")));
        accepted.push(at_server.expect("a handshake"));
    }
    // Its drivers are gone before the handles are dropped, so no close is sent.
    let kill = move || life.shutdown_timeout(Duration::from_secs(10));
    std::thread::spawn(kill).join().expect("no panic");
    drop((server, accepted));
    until(|| UdpSocket::bind(address).is_ok()).await;
    let (life, server) = run_server(&identity, 3, address);
    for (_, connection) in &connections {
        // Long enough that the answer can be shorter, and repeated as long as necessary.
        if let Ok(mut send) = connection.open_uni().await {
            let _ = send.write_all(&[0; 500]).await;
        }
        let ending = within(20, connection.closed()).await;
        assert!(matches!(ending, ConnectionError::Reset), "{ending:?}");
    }
    assert!(server.stats().resets_sent >= 8);
    life.shutdown_background();
}

#[tokio::test]
async fn shard_counts_out_of_range_are_refused() {
    for count in [0, 257] {
        let refused = Endpoint::builder().shards(count).bind(loopback());
        let refused = refused.expect_err("not in the range");
        assert!(matches!(refused, BindError::Config(_)), "{refused}");
        let text = format!("transport: shards: is {count}, allowed is 1 to 256");
        assert_eq!(refused.to_string(), text);
    }
    let first = Endpoint::builder()
        .shards(2)
        .bind(loopback())
        .expect("a port");
    let taken = first.local_addr().expect("bound");
    for count in [1, 2] {
        let refused = Endpoint::builder().shards(count).bind(taken);
        assert!(matches!(refused, Err(BindError::Io(_))), "{count}");
    }
}

#[tokio::test]
async fn supplied_socket_has_one_shard_and_a_warning() {
    let socket = UdpSocket::bind(loopback()).expect("a port");
    let endpoint = Endpoint::builder()
        .shards(4)
        .socket(socket)
        .expect("a socket");
    assert_eq!(endpoint.shard_count(), 1);
    let warnings = endpoint.capabilities().warnings;
    let about = |text: &&String| text.contains("one shard instead of 4: a socket was given");
    assert_eq!(warnings.iter().filter(about).count(), 1, "{warnings:?}");
}

/// Blocks the task of a shard, once, until the test releases it.
#[derive(Debug)]
struct BlockingSinks {
    is_wanted: AtomicBool,
    is_reached: AtomicBool,
    released: Mutex<Receiver<()>>,
}

impl SinkFactory for BlockingSinks {
    fn sink(&self, _: &ConnectionId, _: Side) -> Option<Box<dyn Sink>> {
        if self.is_wanted.swap(false, Relaxed) {
            self.is_reached.store(true, Relaxed);
            let released = self.released.lock().expect("no panic").recv();
            assert!(released.is_err(), "the sender was dropped");
        }
        None
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stalled_shard_delays_no_other_shard() {
    let (release, released) = channel::<()>();
    let blocking = Arc::new(BlockingSinks {
        is_wanted: AtomicBool::new(false),
        is_reached: AtomicBool::new(false),
        released: Mutex::new(released),
    });
    let sinks = blocking.clone();
    let service = serve(4, |config| config.sinks(sinks));
    let mut clients = Vec::new();
    for _ in 0..16 {
        clients.push(service.connect().await);
    }
    let most = service.accepted().into_iter().max().expect("four shards");
    let _wakes = Wakes::start();
    blocking.is_wanted.store(true, Relaxed);
    let late = spawn({
        let (client, address) = (service.client.clone(), service.address);
        async move {
            let endpoint = Endpoint::client(loopback()).expect("a port");
            let connecting = endpoint.connect_with(client, address, "localhost");
            connecting.expect("reachable").await.map(|_| ())
        }
    });
    until(|| blocking.is_reached.load(Relaxed)).await;
    let asking = clients
        .iter()
        .map(|(_, connection)| ask(connection, 2, async || {}));
    let mut asking: FuturesUnordered<_> = asking.collect();
    // Only the clients of one shard have to wait.
    for _ in most..16 {
        asking.next().await.expect("one of sixteen");
    }
    assert!(!late.is_finished());
    drop(release);
    while asking.next().await.is_some() {}
    within(30, late)
        .await
        .expect("no panic")
        .expect("a handshake");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn clients_that_follow_a_preferred_address_stay_with_their_shard() {
    let identity = Identity::dev().expect("random numbers");
    let config = server_config(&identity);
    let builder = Endpoint::builder().server(config.clone()).shards(4);
    let server = builder
        .bind(SocketAddr::from(([0, 0, 0, 0], 0)))
        .expect("a port");
    let port = server.local_addr().expect("bound").port();
    let preferred = SocketAddrV4::new([127, 0, 0, 77].into(), port);
    server
        .set_server_config(Some(config.preferred_address(preferred, None)))
        .expect("valid");
    echo_all(&server);
    let service = Service {
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        client: client_config(&identity),
        server,
    };
    for _ in 0..8 {
        let (_client, connection) = service.connect().await;
        until(|| connection.remote_address() == SocketAddr::V4(preferred)).await;
        ask(&connection, 2, async || {}).await;
    }
    let stats = service.server.stats();
    assert_eq!((stats.strays_dropped, stats.resets_sent), (0, 0));
    assert_eq!(stats.accepted, 8);
}
