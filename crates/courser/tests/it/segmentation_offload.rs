//! Tests of whether the system receives batches or single datagrams.

use crate::common::{Pair, pair_with, within};
use courser::{Endpoint, TransportConfig};

const BYTES: usize = 1 << 20;

/// Sends a mebibyte from the client. Returns the number of datagrams and of calls.
async fn send_bulk(pair: &Pair) -> (u64, u64) {
    let before = pair.client.socket_counters();
    let (client, server) = pair.connect().await;
    let receive = async {
        let mut receive = server.accept_uni().await.expect("a stream");
        receive.read_to_end(BYTES).await.expect("complete")
    };
    let send = async {
        let mut send = client.open_uni().await.expect("allowed");
        send.write_all(&vec![7; BYTES]).await.expect("open");
        send.finish().expect("open");
    };
    let ((), received) = tokio::join!(send, receive);
    assert_eq!(received.len(), BYTES);
    let after = pair.client.socket_counters();
    (
        after.sent_datagrams - before.sent_datagrams,
        after.send_calls - before.send_calls,
    )
}

fn pair() -> Pair {
    // On loopback, packets would grow until a batch has room for only one.
    let transport = TransportConfig {
        mtu_discovery: false,
        ..TransportConfig::default()
    };
    pair_with(transport, |config| config)
}

/// Returns true if the system has offload to disable; others, and kernels before 4.18, have not.
fn can_batch(endpoint: &Endpoint) -> bool {
    endpoint.capabilities().gso_segments > 1
}

#[tokio::test]
async fn segmentation_offload_can_be_switched_off_and_on() {
    within(60, async {
        let pair = pair();
        pair.client.set_segmentation_offload(false);
        let (datagrams, calls) = send_bulk(&pair).await;
        assert!(datagrams > 700, "{datagrams}");
        assert_eq!(calls, datagrams);

        pair.client.set_segmentation_offload(true);
        let (datagrams, calls) = send_bulk(&pair).await;
        if can_batch(&pair.client) {
            assert!(calls < datagrams / 2, "{datagrams} in {calls}");
        }
        pair.finish().await;
    })
    .await;
}

#[tokio::test]
async fn batching_is_the_default_and_the_switch_affects_open_connections() {
    within(60, async {
        let pair = pair();
        let (datagrams, calls) = send_bulk(&pair).await;
        if can_batch(&pair.client) {
            assert!(calls < datagrams / 2, "{datagrams} in {calls}");
        }
        let (client, server) = pair.connect().await;
        pair.client.set_segmentation_offload(false);
        let before = pair.client.socket_counters();
        let mut send = client.open_uni().await.expect("allowed");
        send.write_all(&[7; 100_000]).await.expect("open");
        send.finish().expect("open");
        let mut receive = server.accept_uni().await.expect("a stream");
        let received = receive.read_to_end(100_000).await.expect("complete");
        assert_eq!(received.len(), 100_000);
        let after = pair.client.socket_counters();
        assert_eq!(
            after.sent_datagrams - before.sent_datagrams,
            after.send_calls - before.send_calls
        );
        pair.finish().await;
    })
    .await;
}
