//! Datagrams (RFC 9221) over real sockets.

use std::time::Duration;

use crate::common::{pair, pair_with, within};
use bytes::Bytes;
use courser::{ConnectionError, DatagramFate, DatagramOptions, SendDatagramError, TransportConfig};

#[tokio::test]
async fn thousands_of_datagrams_arrive_in_order_if_the_sender_waits() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    const COUNT: u32 = 5_000;
    let send = async {
        for number in 0..COUNT {
            let data = Bytes::copy_from_slice(&number.to_be_bytes());
            client.send_datagram_wait(data).await.expect("open");
            // The queue of unread datagrams is bounded: a sender without a limit would lose its
            // own.
            if number % 32 == 31 {
                within(20, client.read_datagram()).await.expect("open");
            }
        }
    };
    let receive = async {
        for number in 0..COUNT {
            let data = within(20, server.read_datagram()).await.expect("open");
            assert_eq!(data[..], number.to_be_bytes());
            if number % 32 == 31 {
                server.send_datagram(Bytes::new()).expect("open");
            }
        }
    };
    within(60, async { tokio::join!(send, receive) }).await;
    assert_eq!(client.stats().datagrams.unsent_dropped, 0);
    assert_eq!(server.stats().datagrams.unread_dropped, 0);
    pair.finish().await;
}

#[tokio::test]
async fn burst_that_the_network_can_carry_is_not_dropped_locally() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    // More than the queue holds, without a pause in which another task could send them.
    for _ in 0..100 {
        client
            .send_datagram(Bytes::from_static(b"tick"))
            .expect("open");
    }
    let stats = client.stats().datagrams;
    assert_eq!(stats.unsent_dropped, 0, "{stats:?}");
    pair.finish().await;
}

#[tokio::test]
async fn delivered_datagram_is_reported_as_acknowledged() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let options = DatagramOptions::new().max_age(Duration::from_secs(10));
    let fate = client
        .send_datagram_tracked(Bytes::from_static(b"important"), options)
        .expect("open");
    assert_eq!(within(20, fate).await, Ok(DatagramFate::Acked));
    let data = within(20, server.read_datagram()).await.expect("open");
    assert_eq!(&data[..], b"important");
    pair.finish().await;
}

#[tokio::test]
async fn expired_datagram_is_not_sent() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    let options = DatagramOptions::new().max_age(Duration::ZERO);
    let fate = client
        .send_datagram_tracked(Bytes::from_static(b"late"), options)
        .expect("open");
    assert_eq!(within(20, fate).await, Ok(DatagramFate::Expired));
    let stats = client.stats().datagrams;
    assert_eq!((stats.sent, stats.expired), (0, 1));
    pair.finish().await;
}

#[tokio::test]
async fn pending_datagram_calls_end_with_the_connection() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    client
        .send_datagram(Bytes::from_static(b"last words"))
        .expect("open");
    let received = {
        let server = server.clone();
        async move {
            // Both are available: first the datagram from before the end, then the end.
            let first = server.read_datagram().await;
            (first, server.read_datagram().await)
        }
    };
    let close = async {
        while server.stats().datagrams.received == 0 {
            tokio::task::yield_now().await;
        }
        client.close(7u32.into(), b"done");
    };
    let ((first, second), ()) = within(20, async { tokio::join!(received, close) }).await;
    assert_eq!(first.expect("arrived")[..], b"last words"[..]);
    assert!(matches!(
        second,
        Err(ConnectionError::ApplicationClosed { .. })
    ));
    let refused = client.send_datagram(Bytes::new());
    let lost = ConnectionError::LocallyClosed;
    assert_eq!(refused, Err(SendDatagramError::ConnectionLost(lost)));
    assert_eq!(client.max_datagram_size(), None);
    pair.finish().await;
}

#[tokio::test]
async fn received_datagrams_remain_readable_after_the_close() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    client
        .send_datagram(Bytes::from_static(b"last words"))
        .expect("open");
    while server.stats().datagrams.received == 0 {
        tokio::task::yield_now().await;
    }
    client.close(7u32.into(), b"done");
    within(20, pair.client.wait_idle()).await;
    within(20, server.closed()).await;
    within(20, pair.server.wait_idle()).await;
    // The transport has discarded the connection by now.
    let data = within(20, server.read_datagram()).await.expect("kept");
    assert_eq!(&data[..], b"last words");
    assert!(server.read_datagram().await.is_err());
}

#[tokio::test]
async fn cancelled_calls_neither_take_nor_send_a_datagram() {
    let transport = TransportConfig {
        datagram_send_queue: 1,
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    for _ in 0..50 {
        let read = tokio::time::timeout(Duration::from_micros(10), server.read_datagram());
        drop(read.await);
        let data = Bytes::from_static(b"dropped");
        drop(client.send_datagram_wait(data));
    }
    client
        .send_datagram(Bytes::from_static(b"one"))
        .expect("open");
    let data = within(20, server.read_datagram()).await.expect("open");
    assert_eq!(&data[..], b"one");
    assert_eq!(client.stats().datagrams.sent, 1);
    pair.finish().await;
}

#[tokio::test]
async fn disabled_datagrams_have_a_clear_error() {
    let transport = TransportConfig {
        datagram_send_buffer_size: 0,
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let (client, _server) = pair.connect().await;
    let error = client.send_datagram(Bytes::new()).expect_err("disabled");
    assert!(
        error.to_string().contains("datagram_send_buffer_size"),
        "{error}"
    );
    pair.finish().await;
}

/// Nothing is sent, and both ends find the size of the path.
#[tokio::test]
async fn idle_connection_finds_the_size_of_the_path() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    for connection in [&client, &server] {
        let mut size = connection.watch_datagram_size();
        // The interface has more, which nobody needs: the probes have 1452, 1464 and 1472 bytes.
        while connection.stats().path.mtu < 1472 {
            within(5, size.changed()).await.expect("open");
        }
        assert_eq!(connection.stats().path.mtu, 1472);
        assert!(connection.max_datagram_size() > Some(1400));
    }
    pair.finish().await;
}

#[tokio::test]
async fn small_datagrams_find_the_size_of_the_path() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    let mut size = client.watch_datagram_size();
    client
        .send_datagram(Bytes::from_static(b"tick"))
        .expect("open");
    while size.seen() < Some(1400) {
        within(5, size.changed()).await.expect("open");
    }
    pair.finish().await;
}

#[tokio::test]
async fn watch_of_the_size_survives_cancellation_and_ends_with_the_connection() {
    let steady = TransportConfig {
        mtu_discovery: false,
        ..TransportConfig::default()
    };
    let pair = pair_with(steady, |server| server);
    let (client, _server) = pair.connect().await;
    let mut size = client.watch_datagram_size();
    let seen = size.seen();
    for _ in 0..3 {
        let wait = Duration::from_millis(20);
        assert!(tokio::time::timeout(wait, size.changed()).await.is_err());
        assert_eq!(size.seen(), seen);
    }
    let (mut first, mut second) = (size.clone(), size);
    let waiting = async { tokio::join!(first.changed(), second.changed()) };
    let close = async { client.close(3u32.into(), b"over") };
    let (ended, ()) = within(5, async { tokio::join!(waiting, close) }).await;
    let expected = Err(ConnectionError::LocallyClosed);
    assert_eq!(ended, (expected.clone(), expected));
    pair.finish().await;
}

/// The receiver's view of a path without loss, and the sender's of its round trips.
#[tokio::test]
async fn statistics_of_a_call_are_plausible() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    for _ in 0..25 {
        client
            .send_datagram(Bytes::from_static(b"frame"))
            .expect("open");
        within(5, server.read_datagram()).await.expect("open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let heard = server.stats();
    assert_eq!(heard.datagrams.received, 25);
    // A packet number may have been skipped.
    assert!(heard.packets_missing <= 2, "{heard:?}");
    assert!(heard.datagrams.arrival_jitter < Duration::from_millis(100));
    let path = client.stats().path;
    assert!(path.rtt_variance > Duration::ZERO && path.rtt_variance < Duration::from_secs(1));
    pair.finish().await;
}
