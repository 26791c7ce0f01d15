//! Effects of dropping handles, on this end and on the peer.

use std::time::Duration;

use crate::common::{pair, until, within};
use courser::{Connection, ConnectionError, ReadError};

/// Returns true if the connection was closed by the drop of the peer's last handle.
fn is_dropped(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ApplicationClosed { code, reason }
        if code.value() == 0 && reason.is_empty())
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let clone = client.clone();
    drop(client);
    let early = tokio::time::timeout(Duration::from_millis(50), server.closed()).await;
    assert!(early.is_err(), "a handle is left");
    drop(clone);
    assert!(is_dropped(&within(10, server.closed()).await));
    within(10, pair.client.wait_idle()).await;
}

#[tokio::test]
async fn streams_keep_their_connection_open() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (mut send, mut receive) = client.open_bi().await.expect("open");
    drop(client);
    send.write_all(b"still here").await.expect("written");
    send.finish().expect("not finished");
    let (mut answer, mut question) = within(10, server.accept_bi()).await.expect("opened");
    assert_eq!(
        question.read_to_end(100).await.expect("read"),
        b"still here"
    );
    answer.write_all(b"so am I").await.expect("written");
    answer.finish().expect("not finished");
    assert_eq!(
        within(10, receive.read_to_end(100)).await.expect("read"),
        b"so am I"
    );
    drop((send, receive));
    assert!(is_dropped(&within(10, server.closed()).await));
}

#[tokio::test]
async fn dropped_sender_finishes_its_stream() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    send.write_all(&[7; 100_000]).await.expect("written");
    drop(send);
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    let all = within(10, receive.read_to_end(100_000))
        .await
        .expect("read");
    assert_eq!(all.len(), 100_000);
}

#[tokio::test]
async fn sender_dropped_after_a_reset_does_not_finish() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    send.write_all(b"never mind").await.expect("written");
    send.reset(4u32.into()).expect("open");
    drop(send);
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    let error = within(10, receive.read_to_end(100))
        .await
        .expect_err("reset");
    assert!(error.is_reset());
}

#[tokio::test]
async fn dropped_receiver_stops_its_stream() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    send.write_all(b"hello?").await.expect("written");
    drop(within(10, server.accept_uni()).await.expect("opened"));
    assert_eq!(within(10, send.stopped()).await, Ok(Some(0u32.into())));
}

#[tokio::test]
async fn receiver_dropped_at_its_end_sends_no_stop_sending() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    send.write_all(b"all").await.expect("written");
    send.finish().expect("not finished");
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    receive.read_to_end(10).await.expect("read");
    drop(receive);
    assert_eq!(within(10, send.stopped()).await, Ok(None));
}

#[tokio::test]
async fn connections_outlive_their_endpoint() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    drop(pair);
    let mut send = client.open_uni().await.expect("open");
    send.write_all(b"on our own").await.expect("written");
    send.finish().expect("not finished");
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    assert_eq!(
        within(10, receive.read_to_end(100)).await.expect("read"),
        b"on our own"
    );
    client.close(1u32.into(), b"");
    assert!(matches!(
        within(10, server.closed()).await,
        ConnectionError::ApplicationClosed { .. }
    ));
}

#[tokio::test]
async fn endpoint_without_handles_refuses_later_clients() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    drop(pair.server);
    let connecting = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    let error = within(10, connecting).await.expect_err("not accepted");
    assert!(
        matches!(error, ConnectionError::ConnectionClosed(_)),
        "{error:?}"
    );
    assert_eq!(client.close_reason(), None);
}

#[tokio::test]
async fn port_is_free_after_the_last_handle() {
    let pair = pair();
    let address = pair.address;
    let (client, server) = pair.connect().await;
    drop((client, server));
    pair.client.wait_idle().await;
    pair.server.wait_idle().await;
    drop(pair);
    // The drivers continue until the connections are drained.
    until(|| std::net::UdpSocket::bind(address).is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handles_dropped_at_the_same_time() {
    let pair = pair();
    for _ in 0..50 {
        let (client, server) = within(10, pair.connect()).await;
        let tasks: Vec<_> = [client, server]
            .into_iter()
            .map(|it| crate::common::spawn(churn(it)))
            .collect();
        for task in tasks {
            within(10, task).await.expect("no panic");
        }
    }
    pair.finish().await;
}

/// Opens streams and drops everything in various states.
async fn churn(connection: Connection) {
    for index in 0..10u32 {
        let Ok((mut send, mut receive)) = connection.open_bi().await else {
            return;
        };
        let _ = send.write_all(&vec![0; index as usize * 1000]).await;
        match index % 4 {
            0 => drop(receive),
            1 => drop(send),
            2 => {
                let _ = (send.reset(1u32.into()), receive.stop(2u32.into()));
            }
            _ => {
                let waiting = crate::common::spawn(async move { receive.read_chunk(1).await });
                waiting.abort();
            }
        }
    }
}

#[tokio::test]
async fn half_of_a_stream_can_move_to_another_task() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (mut send, mut receive) = client.open_bi().await.expect("open");
    let reader = crate::common::spawn(async move { receive.read_chunk(100).await });
    send.write_all(b"x").await.expect("written");
    let (_answer, _question) = within(10, server.accept_bi()).await.expect("opened");
    server.close(9u32.into(), b"");
    let error = within(10, reader)
        .await
        .expect("no panic")
        .expect_err("closed");
    assert!(matches!(error, ReadError::ConnectionLost(_)));
}
