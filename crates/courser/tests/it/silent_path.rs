//! Silent paths, as programs see them.

use courser::{Connection, ConnectionError, TransportConfig};

use crate::common::relay::Relay;
use crate::common::{Pair, pair_between, within};

/// Connects a client with this limit through a relay. The server's end must be kept.
async fn connected(max_ptos: Option<u32>) -> (Pair, Relay, [Connection; 2]) {
    let of_client = TransportConfig {
        max_ptos,
        ..TransportConfig::default()
    };
    let mut pair = pair_between(of_client, TransportConfig::default(), |config| config);
    let relay = Relay::new(pair.address);
    pair.address = relay.address;
    let (client, server) = within(10, pair.connect()).await;
    (pair, relay, [client, server])
}

#[tokio::test]
async fn silent_path_and_its_recovery_are_reported() {
    let (_pair, relay, [connection, _server]) = connected(None).await;
    within(10, connection.path_responsive())
        .await
        .expect("immediate");
    assert!(!connection.is_path_silent());
    relay.hold_answers();
    let ping = connection.ping();
    let silent = async {
        connection.path_silent().await.expect("open");
        assert!(connection.is_path_silent());
        connection.path_silent().await.expect("immediate");
        relay.release_answers().await;
        connection.path_responsive().await.expect("open");
        assert!(!connection.is_path_silent());
    };
    let (ping, ()) = within(150, async { tokio::join!(ping, silent) }).await;
    ping.expect("answered in the end");
}

#[tokio::test]
async fn probe_timeout_limit_ends_the_connection_and_pending_calls() {
    let (_pair, relay, [connection, _server]) = connected(Some(3)).await;
    relay.hold_answers();
    let (ping, responsive, closed) = within(150, async {
        tokio::join!(
            connection.ping(),
            async {
                let _ = connection.path_silent().await;
                connection.path_responsive().await
            },
            connection.closed()
        )
    })
    .await;
    assert_eq!(ping, Err(ConnectionError::PathSilent));
    assert_eq!(closed, ConnectionError::PathSilent);
    assert!(closed.is_timeout());
    assert_eq!(responsive, Err(ConnectionError::PathSilent));
}
