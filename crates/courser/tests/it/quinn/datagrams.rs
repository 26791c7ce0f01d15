//! Datagrams (RFC 9221) in both directions and both roles.

use bytes::Bytes;

use super::setup::World;
use crate::common::within;

/// The calls that have the same names in both stacks.
macro_rules! exchange {
    ($one:expr, $other:expr) => {{
        let (one, other) = (&$one, &$other);
        let max = one.max_datagram_size().expect("both take datagrams");
        assert!(max >= 1100, "{max}");
        for len in [0, 1, 63, 64, 500, max - 3, max - 2, max - 1, max] {
            let data = Bytes::from(vec![7; len]);
            one.send_datagram(data.clone()).expect("small enough");
            let read = within(20, other.read_datagram()).await.expect("open");
            assert_eq!(read, data, "{len}");
        }
        // The path's datagram size may have grown by now.
        let max = one.max_datagram_size().expect("both take datagrams");
        let refused = one.send_datagram(Bytes::from(vec![0; max + 2000]));
        assert!(refused.is_err(), "{max}");
        one.send_datagram_wait(Bytes::from_static(b"waited"))
            .await
            .expect("fits");
        let read = within(20, other.read_datagram()).await.expect("open");
        assert_eq!(&read[..], b"waited");
        assert!(one.datagram_send_buffer_space() > 100_000);
    }};
}

#[tokio::test]
async fn courser_client_and_quinn_server() {
    let mut world = World::default();
    world.courser.mtu_discovery = false;
    world.quinn.mtu_discovery_config(None);
    let pair = world.courser_to_quinn().await;
    exchange!(pair.client, pair.server);
    exchange!(pair.server, pair.client);
    let stats = pair.client.stats().datagrams;
    assert_eq!((stats.sent, stats.received), (10, 10));
}

#[tokio::test]
async fn quinn_client_and_courser_server() {
    let mut world = World::default();
    world.courser.mtu_discovery = false;
    world.quinn.mtu_discovery_config(None);
    let pair = world.quinn_to_courser().await;
    exchange!(pair.client, pair.server);
    exchange!(pair.server, pair.client);
}

#[tokio::test]
async fn quinn_without_datagram_support_is_sent_none() {
    let mut world = World::default();
    world.quinn.datagram_receive_buffer_size(None);
    let pair = world.courser_to_quinn().await;
    assert_eq!(pair.client.max_datagram_size(), None);
    let refused = pair.client.send_datagram(Bytes::from_static(b"x"));
    assert_eq!(refused, Err(courser::SendDatagramError::UnsupportedByPeer));
}

#[tokio::test]
async fn courser_without_datagram_support_is_sent_none() {
    let mut world = World::default();
    world.courser.datagram_receive_buffer_size = None;
    let pair = world.quinn_to_courser().await;
    assert_eq!(pair.client.max_datagram_size(), None);
    let refused = pair.client.send_datagram(Bytes::from_static(b"x"));
    assert_eq!(refused, Err(quinn::SendDatagramError::UnsupportedByPeer));
}
