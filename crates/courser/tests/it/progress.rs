//! The progress of streams: statistics, acknowledged bytes, writers that wait.

use std::time::Duration;

use courser::{BlockedBy, ConnectionError, Rate, ResetAtError, TransportConfig, WriteError};
use futures_util::FutureExt;

use crate::common::{pair, pair_between, until, within};

#[tokio::test]
async fn stats_of_a_stream_follow_its_bytes() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("allowed");
    send.write_all(&[7; 5000]).await.expect("enough credit");
    within(10, send.acknowledged()).await.expect("arrived");
    let sent = send.stats().expect("open");
    assert_eq!((sent.written, sent.sent, sent.acked), (5000, 5000, 5000));
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    receive.read_exact(&mut [0; 2000]).await.expect("arrived");
    let received = receive.stats().expect("open");
    assert_eq!((received.received, received.read), (5000, 2000));
    assert_eq!(received.final_size, None);
    send.finish().expect("open");
    assert_eq!(
        receive.read_to_end(5000).await.expect("complete").len(),
        3000
    );
    assert!(receive.stats().is_err(), "it is over");
    pair.finish().await;
}

#[tokio::test]
async fn each_write_is_completed_by_its_acknowledgement() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("allowed");
    let nothing = send.acknowledged();
    assert_eq!(nothing.now_or_never(), Some(Ok(())));
    send.write_all(&[1; 1000]).await.expect("enough credit");
    let first = send.acknowledged();
    send.write_all(&[2; 50_000]).await.expect("enough credit");
    let second = send.acknowledged();
    let dropped = send.acknowledged();
    drop(dropped);
    let (first, second) = within(10, async { tokio::join!(first, second) }).await;
    assert_eq!((first, second), (Ok(()), Ok(())));
    send.finish().expect("open");
    assert_eq!(within(10, send.stopped()).await, Ok(None));
    assert_eq!(within(10, send.acknowledged()).await, Ok(()));
    pair.finish().await;
}

#[tokio::test]
async fn bytes_of_a_stream_that_ends_early_are_not_acknowledged() {
    // Few bytes may be in flight, so that most of them wait.
    let of_server = TransportConfig {
        stream_receive_window: 1000,
        stream_receive_window_max: 1000,
        ..TransportConfig::default()
    };
    let pair = pair_between(TransportConfig::default(), of_server, |config| config);
    let (client, server) = pair.connect().await;
    let mut reset = client.open_uni().await.expect("allowed");
    reset.write(&[7; 5000]).await.expect("some room");
    reset.write(&[7; 5000]).await.expect("some room");
    let mut stopped = client.open_uni().await.expect("allowed");
    stopped.write(&[7; 5000]).await.expect("some room");
    stopped.write(&[7; 5000]).await.expect("some room");
    let lost = stopped.acknowledged();
    let pending = reset.acknowledged();
    reset.reset(3u32.into()).expect("open");
    assert_eq!(within(10, pending).await, Err(WriteError::ClosedStream));
    assert_eq!(
        within(10, reset.acknowledged()).await,
        Err(WriteError::ClosedStream)
    );
    let pending = stopped.acknowledged();
    drop(within(10, server.accept_uni()).await.expect("opened"));
    let mut second = within(10, server.accept_uni()).await.expect("opened");
    second.stop(9u32.into()).expect("open");
    let code = Err(WriteError::Stopped(9u32.into()));
    assert_eq!(within(10, pending).await, code);
    assert_eq!(within(10, lost).await, code);
    let mut open = client.open_uni().await.expect("allowed");
    open.write(&[7; 5000]).await.expect("some room");
    open.write(&[7; 5000]).await.expect("some room");
    let pending = open.acknowledged();
    client.close(0u32.into(), b"");
    assert_eq!(
        within(10, pending).await,
        Err(WriteError::ConnectionLost(ConnectionError::LocallyClosed))
    );
}

#[tokio::test]
async fn another_task_can_see_why_a_writer_waits() {
    let of_server = TransportConfig {
        stream_receive_window: 1000,
        stream_receive_window_max: 1000,
        ..TransportConfig::default()
    };
    let pair = pair_between(TransportConfig::default(), of_server, |config| config);
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("allowed");
    let mut blocked = Box::pin(send.blocked());
    assert_eq!((&mut blocked).now_or_never(), None, "it does not write");
    let write = send.write_all(&[7; 100_000]);
    let (limit, ()) = within(10, async {
        tokio::select! {
            limit = blocked => (limit, ()),
            _ = write => panic!("the peer reads nothing"),
        }
    })
    .await;
    assert!(limit.is_ok());
    until(|| send.blocked().now_or_never() == Some(Ok(BlockedBy::StreamFlowControl))).await;
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    receive.stop(4u32.into()).expect("open");
    let over = within(10, send.stopped()).await;
    assert_eq!(over, Ok(Some(4u32.into())));
    assert_eq!(
        within(10, send.blocked()).await,
        Err(WriteError::Stopped(4u32.into()))
    );
    pair.finish().await;
}

#[tokio::test]
async fn weak_handle_does_not_keep_the_connection() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let weak = client.downgrade();
    let again = weak.upgrade().expect("a handle exists");
    assert_eq!(again.stable_id(), client.stable_id());
    drop(client);
    assert!(weak.upgrade().is_some(), "a handle is left");
    drop(again);
    assert!(weak.clone().upgrade().is_none());
    within(10, server.closed()).await;
}

#[tokio::test]
async fn reset_with_a_reliable_size_delivers_the_beginning() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("allowed");
    send.write_all(b"header").await.expect("enough credit");
    let header = send.acknowledged();
    send.write_all(&[7; 10_000]).await.expect("enough credit");
    let rest = send.acknowledged();
    send.reset_at(9u32.into(), 6).expect("open");
    assert_eq!(within(10, rest).await, Err(WriteError::ClosedStream));
    assert_eq!(within(10, header).await, Ok(()));
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    let mut header = [0; 6];
    within(10, receive.read_exact(&mut header))
        .await
        .expect("reliable");
    assert_eq!(&header, b"header");
    let end = within(10, receive.read_to_end(20_000)).await;
    assert!(end.expect_err("reset").is_reset());
    assert_eq!(client.stats().frames_sent.reset_stream_at, 1);
    assert_eq!(within(10, send.stopped()).await, Ok(None));
    pair.finish().await;
}

#[tokio::test]
async fn reset_stream_at_is_not_sent_to_a_peer_without_support() {
    let of_server = TransportConfig {
        reset_stream_at: false,
        ..TransportConfig::default()
    };
    let pair = pair_between(TransportConfig::default(), of_server, |config| config);
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("allowed");
    send.write_all(b"header").await.expect("enough credit");
    let refused = send.reset_at(9u32.into(), 6);
    assert_eq!(refused, Err(ResetAtError::Unsupported));
    send.reset(9u32.into()).expect("open");
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    let reset = within(10, receive.read_to_end(10))
        .await
        .expect_err("reset");
    assert!(reset.is_reset(), "{reset:?}");
    pair.finish().await;
}

#[tokio::test]
async fn stream_is_reset_when_its_deadline_passes() {
    let of_server = TransportConfig {
        stream_receive_window: 1000,
        stream_receive_window_max: 1000,
        ..TransportConfig::default()
    };
    let pair = pair_between(TransportConfig::default(), of_server, |config| config);
    let (client, server) = pair.connect().await;
    let mut late = client.open_uni().await.expect("allowed");
    let mut early = client.open_uni().await.expect("allowed");
    early.write_all(b"in time").await.expect("enough credit");
    early.finish().expect("open");
    within(10, early.stopped()).await.expect("delivered");
    assert!(
        early
            .set_deadline(Some(Duration::ZERO), 5u32.into())
            .is_err()
    );
    late.set_deadline(Some(Duration::from_millis(30)), 5u32.into())
        .expect("open");
    let written = within(10, late.write_all(&[7; 100_000])).await;
    assert_eq!(written, Err(WriteError::DeadlinePassed), "without a reader");
    let acknowledged = within(10, late.acknowledged()).await;
    assert_eq!(acknowledged, Err(WriteError::DeadlinePassed));
    let mut first = within(10, server.accept_uni()).await.expect("opened");
    let end = within(10, first.read_to_end(200_000)).await;
    assert!(end.expect_err("reset").is_reset());
    let mut second = within(10, server.accept_uni()).await.expect("opened");
    assert_eq!(second.read_to_end(10).await.expect("complete"), b"in time");
    pair.finish().await;
}

#[tokio::test]
async fn send_rate_stays_below_its_limit() {
    let of_client = TransportConfig {
        max_send_rate: Some(Rate::from_bytes_per_second(1_000_000)),
        ..TransportConfig::default()
    };
    let pair = pair_between(of_client, TransportConfig::default(), |config| config);
    let (client, server) = pair.connect().await;
    let begun = std::time::Instant::now();
    let mut send = client.open_uni().await.expect("allowed");
    let mut receive = within(10, async {
        send.write_all(&[7; 1000]).await.expect("enough credit");
        server.accept_uni().await.expect("opened")
    })
    .await;
    let write = async {
        send.write_all(&[7; 199_000]).await.expect("enough credit");
        send.finish().expect("open");
    };
    let ((), all) = within(20, async {
        tokio::join!(write, receive.read_to_end(200_000))
    })
    .await;
    assert_eq!(all.expect("complete").len(), 200_000);
    // At most the first ten datagrams leave at once.
    let least = Duration::from_millis(200 - 15 - 10);
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    pair.finish().await;
}
