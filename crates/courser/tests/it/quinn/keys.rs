//! Key updates during transfers.
//!
//! quinn makes an update of its own after 10 to 1000 packets, and none for a few probe timeouts
//! after each. The tests continue until there were enough.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{Pair, World};
use super::stack::Stack;
use super::transfer::Source;
use crate::common::within;

/// Bytes between updates: several round trips of packets with each key.
const PART: usize = 1_000_000;
/// Updates to wait for. quinn's first may be its own, the others are not.
const UPDATES: u64 = 4;
/// Attempts per part: an update has to wait for the acknowledgement of the previous one.
const ATTEMPTS: usize = 10;

/// Sends part by part in both directions and waits for each to arrive, until `is_done`.
/// During each, calls `update` until it returns true.
async fn send_parts<C: Stack, S: Stack>(
    (client, server): (&C, &S),
    is_done: impl Fn() -> bool,
    update: impl Fn() -> bool,
) {
    let (mut up, mut down) = client.open_bi().await;
    up.write_all(b"!").await.expect("enough credit");
    let (mut server_down, mut server_up) = server.accept_bi().await;
    assert_eq!(server_up.read_u8().await.expect("sent"), b'!');
    let mut bytes = vec![0; PART];
    let (mut at_server, mut at_client) = (vec![0; PART], vec![0; PART]);
    let mut seed = 0;
    while !is_done() {
        seed += 1;
        Source::new(seed).fill(&mut bytes);
        let write_up = async {
            let mut is_updated = false;
            for piece in bytes.chunks(PART / ATTEMPTS) {
                is_updated = is_updated || update();
                up.write_all(piece).await.expect("server reads");
            }
        };
        let write_down = async { server_down.write_all(&bytes).await.expect("client reads") };
        let read_up = async {
            server_up
                .read_exact(&mut at_server)
                .await
                .expect("client writes")
        };
        let read_down = async {
            down.read_exact(&mut at_client)
                .await
                .expect("server writes")
        };
        tokio::join!(write_up, write_down, read_up, read_down);
        assert!(
            at_server == bytes && at_client == bytes,
            "part {seed} differs"
        );
    }
}

fn is_updated(connection: &courser::Connection) -> bool {
    connection.stats().key_updates >= UPDATES
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_by_a_courser_client() {
    let Pair { client, server, .. } = World::default().courser_to_quinn().await;
    let update = || client.force_key_update().is_ok();
    within(
        30,
        send_parts((&client, &server), || is_updated(&client), update),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_by_a_courser_server() {
    let Pair { client, server, .. } = World::default().quinn_to_courser().await;
    let update = || server.force_key_update().is_ok();
    within(
        30,
        send_parts((&client, &server), || is_updated(&server), update),
    )
    .await;
}

/// Packet numbers that begin at random are longer at first, and quinn must expand them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_with_random_first_packet_numbers() {
    let world = || {
        let mut world = World::default();
        world.courser.random_packet_numbers = true;
        world
    };
    let Pair { client, server, .. } = world().courser_to_quinn().await;
    let update = || client.force_key_update().is_ok();
    let transfer = send_parts((&client, &server), || is_updated(&client), update);
    within(30, transfer).await;
    let Pair { client, server, .. } = world().quinn_to_courser().await;
    let update = || server.force_key_update().is_ok();
    let transfer = send_parts((&client, &server), || is_updated(&server), update);
    within(30, transfer).await;
}

/// Forces an update, which quinn silently ignores if it is too early.
fn force(connection: &quinn::Connection) -> bool {
    connection.force_key_update();
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_by_a_quinn_client() {
    let Pair { client, server, .. } = World::default().quinn_to_courser().await;
    within(
        30,
        send_parts(
            (&client, &server),
            || is_updated(&server),
            || force(&client),
        ),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_by_a_quinn_server() {
    let Pair { client, server, .. } = World::default().courser_to_quinn().await;
    within(
        30,
        send_parts(
            (&client, &server),
            || is_updated(&client),
            || force(&server),
        ),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_by_both_ends_at_once() {
    let Pair { client, server, .. } = World::default().courser_to_quinn().await;
    let update = || client.force_key_update().is_ok() | force(&server);
    within(
        30,
        send_parts((&client, &server), || is_updated(&client), update),
    )
    .await;
}

/// courser's automatic updates, after so many packets. Each waits until quinn has certainly
/// discarded its keys before the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automatic_updates_interoperate() {
    let mut world = World::default();
    world.courser.key_update_after = 500;
    let Pair { client, server, .. } = world.courser_to_quinn().await;
    within(
        30,
        send_parts((&client, &server), || is_updated(&client), || false),
    )
    .await;
}
