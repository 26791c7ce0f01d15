//! Ends of connections, and the peer's view of them.

use std::time::{Duration, Instant};

use super::setup::{Pair, World, connect_courser, connect_quinn, socket};
use super::stack::{Ending, Stack};
use crate::common::{Random, within};

/// Closes from one end, and checks that both ends report the same.
async fn closes<A: Stack, B: Stack>(from: &A, to: &B) {
    from.close(0x1234_5678, b"that was it");
    assert_eq!(
        to.closed().await,
        Ending::application(0x1234_5678, b"that was it")
    );
    assert_eq!(from.closed().await, Ending::Here);
}

#[tokio::test]
async fn close_of_a_courser_client_carries_code_and_reason() {
    let pair = World::default().courser_to_quinn().await;
    within(20, closes(&pair.client, &pair.server)).await;
    within(20, pair.client_endpoint.wait_idle()).await;
}

#[tokio::test]
async fn close_of_a_courser_server_carries_code_and_reason() {
    let pair = World::default().quinn_to_courser().await;
    within(20, closes(&pair.server, &pair.client)).await;
    within(20, pair.server_endpoint.wait_idle()).await;
}

#[tokio::test]
async fn close_of_a_quinn_client_carries_code_and_reason() {
    let pair = World::default().quinn_to_courser().await;
    within(20, closes(&pair.client, &pair.server)).await;
}

#[tokio::test]
async fn close_of_a_quinn_server_carries_code_and_reason() {
    let pair = World::default().courser_to_quinn().await;
    within(20, closes(&pair.server, &pair.client)).await;
}

#[tokio::test]
async fn largest_code_and_a_long_reason_fit() {
    let reason = vec![b'x'; 10_000];
    let pair = World::default().courser_to_quinn().await;
    pair.client.close(courser::VarInt::MAX, &reason);
    let Ending::Application {
        code,
        reason: received,
    } = Stack::closed(&pair.server).await
    else {
        panic!("closed by the application");
    };
    assert_eq!(code, (1 << 62) - 1);
    assert!(
        received.len() == 512 && reason.starts_with(&received),
        "{} bytes",
        received.len()
    );
}

/// CONNECTION_REFUSED, RFC 9000 §20.1.
const REFUSED: u64 = 0x02;

#[tokio::test]
async fn refused_quinn_client_gets_the_error() {
    let mut world = World::default();
    let (client, server) = (world.quinn_client(), world.courser_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    within(20, server.accept()).await.expect("open").refuse();
    let received = Ending::from(within(20, connecting).await.expect_err("refused"));
    assert!(
        matches!(received, Ending::Transport { code: REFUSED, .. }),
        "{received:?}"
    );
    assert_eq!(server.stats().refused, 1);
}

#[tokio::test]
async fn refused_courser_client_gets_the_error() {
    let mut world = World::default();
    let (client, server) = (world.courser_client(), world.quinn_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    within(20, server.accept()).await.expect("open").refuse();
    let received = Ending::from(within(20, connecting).await.expect_err("refused"));
    assert!(
        matches!(received, Ending::Transport { code: REFUSED, .. }),
        "{received:?}"
    );
}

/// APPLICATION_ERROR, which hides the application's code before the handshake is confidential, RFC
/// 9000 §10.2.3.
const HIDDEN: u64 = 0x0c;

#[tokio::test]
async fn courser_client_that_closes_early_hides_its_reason() {
    let mut world = World::default();
    let (client, server) = (world.courser_client(), world.quinn_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    let incoming = within(20, server.accept()).await.expect("open");
    drop(connecting);
    let received = within(20, incoming.into_future())
        .await
        .map(|_| ())
        .map_err(Ending::from);
    assert_eq!(
        received,
        Err(Ending::Transport {
            code: HIDDEN,
            reason: Default::default()
        })
    );
}

#[tokio::test]
async fn early_close_of_a_quinn_client_is_received() {
    let mut world = World::default();
    let (client, server) = (world.quinn_client(), world.courser_server());
    let address = server.local_addr().expect("bound");
    let connecting = client.connect(address, "localhost").expect("configured");
    let incoming = within(20, server.accept()).await.expect("open");
    drop(connecting);
    let received = within(20, incoming.into_future())
        .await
        .map(|_| ())
        .map_err(Ending::from);
    assert_eq!(
        received,
        Err(Ending::Transport {
            code: HIDDEN,
            reason: Default::default()
        })
    );
}

#[tokio::test]
async fn endpoint_close_reaches_both_stacks() {
    let pair = World::default().courser_to_quinn().await;
    pair.client_endpoint.close(9u32.into(), b"all of them");
    let received = within(20, Stack::closed(&pair.server)).await;
    assert_eq!(received, Ending::application(9, b"all of them"));
    let pair = World::default().quinn_to_courser().await;
    pair.server_endpoint.close(9u32.into(), b"all of them");
    let received = within(20, Stack::closed(&pair.client)).await;
    assert_eq!(received, Ending::application(9, b"all of them"));
}

/// Checks that the smaller of both ends' idle timeouts applies, whichever end announced it.
async fn idle_out<C: Stack, S: Stack>(client: &C, server: &S, since: Instant) {
    let (at_client, at_server) =
        within(20, async { tokio::join!(client.closed(), server.closed()) }).await;
    assert_eq!((at_client, at_server), (Ending::TimedOut, Ending::TimedOut));
    assert!(since.elapsed() >= SHORT, "after {:?}", since.elapsed());
}

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn idle_timeout_announced_by_courser_ends_both() {
    let mut world = World::default();
    world.courser.max_idle_timeout = Some(SHORT);
    let since = Instant::now();
    let pair = world.courser_to_quinn().await;
    idle_out(&pair.client, &pair.server, since).await;
}

#[tokio::test]
async fn idle_timeout_announced_by_quinn_ends_both() {
    let mut world = World::default();
    world
        .quinn
        .max_idle_timeout(Some(SHORT.try_into().expect("fits")));
    let since = Instant::now();
    let pair = world.quinn_to_courser().await;
    idle_out(&pair.client, &pair.server, since).await;
}

/// A packet to be answered with a reset: long enough that the answer can be shorter (RFC 9000
/// §10.3.3), and repeated as long as necessary.
const UNKNOWN_PACKET: &[u8] = &[0; 500];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quinn_client_notices_that_a_courser_server_restarted() {
    let mut world = World::default();
    let client = world.quinn_client();
    let socket = socket();
    let again = socket.try_clone().expect("valid socket");
    let config = courser::EndpointConfig::from_seed([7; 32]);
    let first = Process::start();
    let server = first.run({
        let (config, server) = (config.clone(), world.courser_server_config());
        async move { courser::Endpoint::new(config, Some(server), socket).expect("valid socket") }
    });
    let address = server.local_addr().expect("bound");
    let Pair {
        client,
        server,
        server_endpoint,
        ..
    } = within(20, connect_quinn(client, server, address)).await;
    // Killed before it can send a close.
    first.kill();
    drop((server, server_endpoint));
    let reborn = courser::Endpoint::new(config, Some(world.courser_server_config()), again);
    let reborn = reborn.expect("valid socket");
    // The answer to an acknowledgement may already have been the reset.
    if let Ok(mut send) = client.open_uni().await {
        let _ = send.write_all(UNKNOWN_PACKET).await;
    }
    assert_eq!(within(20, Stack::closed(&client)).await, Ending::Reset);
    assert!(reborn.stats().resets_sent > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn courser_client_notices_that_a_quinn_server_restarted() {
    let mut world = World::default();
    let client = world.courser_client();
    let socket = socket();
    let again = socket.try_clone().expect("valid socket");
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &[7; 32]);
    let mut config = quinn::EndpointConfig::new(std::sync::Arc::new(key));
    config.cid_generator(|| Box::new(Ids(Random(0x1d))));
    let mut start = |socket| {
        let (config, server) = (config.clone(), world.quinn_server_config());
        async move {
            let runtime = std::sync::Arc::new(quinn::TokioRuntime);
            quinn::Endpoint::new(config, Some(server), socket, runtime).expect("valid socket")
        }
    };
    let first = Process::start();
    let server = first.run(start(socket));
    let address = server.local_addr().expect("bound");
    let Pair {
        client,
        server,
        server_endpoint,
        ..
    } = within(20, connect_courser(client, server, address)).await;
    first.kill();
    drop((server, server_endpoint));
    let _reborn = start(again).await;
    if let Ok(mut send) = client.open_uni().await {
        let _ = send.write_all(UNKNOWN_PACKET).await;
    }
    assert_eq!(within(20, Stack::closed(&client)).await, Ending::Reset);
}

/// quinn does not answer connection IDs that it does not recognise as its own, and its generator
/// recognises those of one lifetime. This one recognises all.
struct Ids(Random);

impl quinn::ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> quinn::ConnectionId {
        quinn::ConnectionId::new(&self.0.next().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A runtime that can be taken from an endpoint, as if its process had died.
struct Process(tokio::runtime::Runtime);

impl Process {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a thread");
        Self(runtime)
    }

    fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let (send, receive) = std::sync::mpsc::channel();
        self.0
            .spawn(async move { send.send(task.await).expect("receiver waits") });
        receive.recv().expect("no panic")
    }

    /// Returns when no task is running any more.
    fn kill(self) {
        tokio::task::block_in_place(|| drop(self.0));
    }
}
