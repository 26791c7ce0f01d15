//! PING as a call.

use std::time::Duration;

use courser::ConnectionError;
use futures_util::FutureExt;

use crate::common::{pair, within};

#[tokio::test]
async fn ping_measures_a_round_trip() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let time = within(10, client.ping()).await.expect("open");
    assert!(time > Duration::ZERO);
    let (one, other, back) = within(10, async {
        tokio::join!(client.ping(), client.ping(), server.ping())
    })
    .await;
    for time in [one, other, back] {
        assert!(time.expect("open") < Duration::from_secs(10));
    }
    pair.finish().await;
}

#[tokio::test]
async fn ping_fails_after_the_connection_closes() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    let (lost, ()) = tokio::join!(client.ping(), async {
        client.close(0u32.into(), b"");
    });
    assert_eq!(lost, Err(ConnectionError::LocallyClosed));
    assert_eq!(client.ping().await, Err(ConnectionError::LocallyClosed));
}

#[tokio::test]
async fn dropped_ping_leaves_no_state() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    {
        let ping = std::pin::pin!(client.ping());
        let first = ping.now_or_never();
        assert!(first.is_none(), "there was no answer yet");
    }
    within(10, client.ping()).await.expect("open");
    pair.finish().await;
}
