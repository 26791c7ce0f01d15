//! Echoes on single streams, on many streams, and on both runtimes.

use crate::common::{Pair, pair, pattern, within};
use courser::{Connection, Endpoint};

/// Echoes every stream of every connection.
fn spawn_echo(endpoint: Endpoint) {
    crate::common::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            crate::common::spawn(async move {
                let connection = incoming.await.expect("handshake");
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    crate::common::spawn(async move {
                        while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX).await {
                            send.write_chunk(chunk).await.expect("client reads");
                        }
                        send.finish().expect("not finished");
                    });
                }
            });
        }
    });
}

async fn round_trip(connection: &Connection, data: &[u8]) {
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    let write = async {
        send.write_all(data).await.expect("written");
        send.finish().expect("not finished");
    };
    let (back, ()) = tokio::join!(receive.read_to_end(data.len()), write);
    assert!(back.expect("read") == data, "{} bytes differ", data.len());
}

async fn echo_sizes() {
    let pair = pair();
    spawn_echo(pair.server.clone());
    let connection = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let connection = connection.await.expect("handshake");
    for len in [0, 1, 100, 1200, 65_536, 1_000_000, 5_000_000] {
        round_trip(&connection, &pattern(len as u64, len)).await;
    }
    drop(connection);
    pair.finish().await;
}

#[tokio::test]
async fn echo_on_current_thread() {
    within(60, echo_sizes()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn echo_on_two_threads() {
    within(60, echo_sizes()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_streams_in_parallel_keep_their_bytes_apart() {
    within(120, many_streams(1000)).await;
}

#[tokio::test]
async fn many_streams_in_parallel_on_one_thread() {
    within(120, many_streams(500)).await;
}

/// Opens more streams than the peer allows at a time, so that opening has to wait.
async fn many_streams(count: u64) {
    let pair = pair();
    spawn_echo(pair.server.clone());
    let connection = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let connection = connection.await.expect("handshake");
    let tasks: Vec<_> = (0..count)
        .map(|seed| {
            let connection = connection.clone();
            crate::common::spawn(async move {
                round_trip(
                    &connection,
                    &pattern(seed, 100 + seed as usize * 17 % 20_000),
                )
                .await;
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    drop(connection);
    pair.finish().await;
}

#[tokio::test]
async fn small_writes_in_a_row_arrive_in_order() {
    let pair = pair();
    spawn_echo(pair.server.clone());
    let connection = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let connection = connection.await.expect("handshake");
    let data = pattern(7, 50_000);
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    for piece in data.chunks(33) {
        send.write_all(piece).await.expect("written");
    }
    send.finish().expect("not finished");
    let back = within(20, receive.read_to_end(data.len()))
        .await
        .expect("read");
    assert!(back == data);
    let sent = connection.stats().udp_sent.datagrams;
    assert!(sent < 500, "1516 small writes took {sent} datagrams");
}

#[tokio::test]
async fn a_request_and_its_end_share_a_datagram() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    // The handshake's last packets, and their delayed acknowledgements, come first.
    round_trip_by_hand(&client, &server).await;
    let before = client.stats().udp_sent;
    for _ in 0..20 {
        round_trip_by_hand(&client, &server).await;
    }
    let sent = client.stats().udp_sent.datagrams - before.datagrams;
    assert!(sent <= 45, "20 requests took {sent} datagrams");
}

async fn round_trip_by_hand(client: &Connection, server: &Connection) {
    let (mut send, mut receive) = client.open_bi().await.expect("open");
    send.write_all(b"request").await.expect("written");
    send.finish().expect("not finished");
    let answer = async {
        let (mut send, mut receive) = server.accept_bi().await.expect("opened");
        assert_eq!(receive.read_to_end(10).await.expect("read"), b"request");
        send.write_all(b"answer").await.expect("written");
    };
    let (read, ()) = within(10, async { tokio::join!(receive.read_to_end(10), answer) }).await;
    assert_eq!(read.expect("read"), b"answer");
}

#[tokio::test]
async fn several_clients_on_one_socket() {
    let pair = pair();
    spawn_echo(pair.server.clone());
    let Pair {
        client, address, ..
    } = &pair;
    let connections: Vec<_> = (0..10)
        .map(|_| client.connect(*address, "localhost").expect("configured"))
        .collect();
    for (seed, connecting) in (0..).zip(connections) {
        let connection = within(20, connecting).await.expect("handshake");
        round_trip(&connection, &pattern(seed, 10_000)).await;
    }
}
