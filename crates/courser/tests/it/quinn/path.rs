//! Paths that change, paths that lose packets, and datagrams of many sizes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{World, socket};
use super::stack::{Ending, Stack};
use super::transfer::{Plan, Source, exchange};
use crate::common::relay::Relay;
use crate::common::within;

/// Bytes echoed by the server, before and after the change.
const BYTES: usize = 2_000_000;

/// Echoes bytes, changes the path while they are in flight, and echoes more.
///
/// Returns the client's port as the server sees it, before and after.
async fn echo_over_change<C: Stack, S: Stack>(
    client: &C,
    server: &S,
    change: impl FnOnce(),
) -> (u16, u16) {
    let (mut up, mut down) = client.open_bi().await;
    let mut bytes = vec![0; BYTES];
    Source::new(9).fill(&mut bytes);
    let mut echoed = vec![0; BYTES];
    let before = server.peer_port();
    let echo = async {
        let (mut server_down, mut server_up) = server.accept_bi().await;
        tokio::io::copy(&mut server_up, &mut server_down)
            .await
            .expect("client lives");
        server_down.shutdown().await.expect("not finished");
    };
    let write = async {
        up.write_all(&bytes[..BYTES / 2])
            .await
            .expect("server reads");
        change();
        up.write_all(&bytes[BYTES / 2..])
            .await
            .expect("server reads");
        up.shutdown().await.expect("not finished");
    };
    let read = async { down.read_exact(&mut echoed).await.expect("server writes") };
    tokio::join!(echo, write, read);
    assert!(echoed == bytes, "the echo differs");
    // The reported address is that of the peer once it was validated, a round trip later.
    while server.peer_port() == before {
        tokio::task::yield_now().await;
    }
    (before, server.peer_port())
}

/// Checks that after the change the server reaches the client on its own initiative, and a close
/// gets through.
async fn server_sends_first<C: Stack, S: Stack>(client: &C, server: &S) {
    let mut send = server.open_uni().await;
    send.write_all(b"still there?")
        .await
        .expect("enough credit");
    send.shutdown().await.expect("not finished");
    let mut all = Vec::new();
    client
        .accept_uni()
        .await
        .read_to_end(&mut all)
        .await
        .expect("server writes");
    assert_eq!(all, b"still there?");
    server.close(4, b"bye");
    assert_eq!(client.closed().await, Ending::application(4, b"bye"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn courser_server_follows_a_quinn_client_that_changes_its_socket() {
    let pair = World::default().quinn_to_courser().await;
    let next = socket();
    let next_port = next.local_addr().expect("bound").port();
    let change = || pair.client_endpoint.rebind(next).expect("valid socket");
    let (before, after) = within(30, echo_over_change(&pair.client, &pair.server, change)).await;
    assert_ne!(before, next_port);
    assert_eq!(after, next_port);
    within(20, server_sends_first(&pair.client, &pair.server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn courser_server_follows_a_quinn_client_behind_a_nat() {
    let mut relay = None;
    let route = |server| relay.insert(Relay::new(server)).address;
    let pair = World::default().quinn_to_courser_via(route).await;
    let mut relay = relay.expect("on the route");
    let mut next_port = 0;
    let change = || next_port = relay.rebind();
    let (before, after) = within(30, echo_over_change(&pair.client, &pair.server, change)).await;
    assert_ne!(before, next_port);
    assert_eq!(after, next_port);
    within(20, server_sends_first(&pair.client, &pair.server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quinn_server_follows_a_courser_client_that_changes_its_socket() {
    let pair = World::default().courser_to_quinn().await;
    let next = socket();
    let next_port = next.local_addr().expect("bound").port();
    let change = || pair.client_endpoint.rebind(next).expect("valid socket");
    let (before, after) = within(30, echo_over_change(&pair.client, &pair.server, change)).await;
    assert_ne!(before, next_port);
    assert_eq!(after, next_port);
    assert_eq!(pair.client.stats().path_changes, 1);
    within(20, server_sends_first(&pair.client, &pair.server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quinn_server_follows_a_courser_client_behind_a_nat() {
    let mut relay = None;
    let route = |server| relay.insert(Relay::new(server)).address;
    let pair = World::default().courser_to_quinn_via(route).await;
    let mut relay = relay.expect("on the route");
    let mut next_port = 0;
    let change = || next_port = relay.rebind();
    let (before, after) = within(30, echo_over_change(&pair.client, &pair.server, change)).await;
    assert_ne!(before, next_port);
    assert_eq!(after, next_port);
    within(20, server_sends_first(&pair.client, &pair.server)).await;
}

/// 10 MB.
const LOSSY: Plan = Plan {
    bidi: 3,
    uni: 2,
    len: 1_000_000,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_percent_loss_with_a_courser_client() {
    let mut relay = None;
    let route = |server| relay.insert(Relay::with_link(server, "1%")).address;
    let pair = within(20, World::default().courser_to_quinn_via(route)).await;
    within(60, exchange(&pair.client, &pair.server, LOSSY)).await;
    check_losses(
        &relay.expect("on the route"),
        pair.client.lost(),
        pair.server.lost(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_percent_loss_with_a_quinn_client() {
    let mut relay = None;
    let route = |server| relay.insert(Relay::with_link(server, "1%")).address;
    let pair = within(20, World::default().quinn_to_courser_via(route)).await;
    within(60, exchange(&pair.client, &pair.server, LOSSY)).await;
    check_losses(
        &relay.expect("on the route"),
        pair.client.lost(),
        pair.server.lost(),
    );
}

fn check_losses(relay: &Relay, client: u64, server: u64) {
    let [up, down] = relay.dropped();
    assert!(up > 20 && down > 20, "the relay dropped {up} and {down}");
    assert!(client > 0 && server > 0, "noticed {client} and {server}");
}

const SOME: Plan = Plan {
    bidi: 2,
    uni: 2,
    len: 2_000_000,
};

/// Returns a world with larger datagrams than the default on courser's side, and a search for still
/// larger ones on both sides.
fn large_datagrams(upper_bound: u16) -> World {
    let mut world = World::default();
    world.courser.mtu = 1452;
    let mut search = quinn::MtuDiscoveryConfig::default();
    search.upper_bound(upper_bound);
    world.quinn.mtu_discovery_config(Some(search));
    world
}

fn check_mtu<A: Stack>(
    courser: &courser::Connection,
    quinn: &A,
    found: std::ops::RangeInclusive<u16>,
) {
    assert_eq!(courser.mtu(), 1472, "the largest that quinn takes");
    let stats = courser.stats();
    let mean = stats.udp_sent.bytes / stats.udp_sent.datagrams;
    assert!(mean > 1000, "datagrams of {mean} bytes in the mean");
    assert!(found.contains(&quinn.mtu()), "quinn found {}", quinn.mtu());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mtu_search_of_a_quinn_server() {
    let pair = large_datagrams(1452).courser_to_quinn().await;
    within(30, exchange(&pair.client, &pair.server, SOME)).await;
    check_mtu(&pair.client, &pair.server, 1452..=1452);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mtu_search_of_a_quinn_client() {
    let pair = large_datagrams(1452).quinn_to_courser().await;
    within(30, exchange(&pair.client, &pair.server, SOME)).await;
    check_mtu(&pair.server, &pair.client, 1452..=1452);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jumbo_datagrams_of_a_quinn_client() {
    let mut world = large_datagrams(9000);
    // quinn makes batches of ten, and the kernel accepts none above 64 KiB.
    world.quinn.enable_segmentation_offload(false);
    let pair = world.quinn_to_courser().await;
    within(30, exchange(&pair.client, &pair.server, SOME)).await;
    check_mtu(&pair.server, &pair.client, 8900..=9000);
}
