//! Clients whose network changes.

use std::sync::Arc;
use std::time::Duration;

use courser::client::HttpVersion;
use http::Response;
use tokio::sync::Notify;

use super::server::{Protocols, Server, echo, full, service};
use super::{builder, client, text, within};
use crate::common::relay::Relay;
use crate::common::until;

/// The client waits for a response and sends nothing when a NAT forgets its mapping, so the server answers
/// to a port that leads nowhere. With the hint the client moves at once, which needs a fresh connection ID
/// (RFC 9000 §9.5). Without it the client would send a PING to the old ID, some time later (K230).
///
/// A client without an answer for three probe timeouts also sends its request on a second connection (K286). A busy
/// machine can stall for that long, and the case is then repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_follows_a_client_after_a_network_change() {
    for _ in 0..5 {
        if connections_of_a_moving_client().await == (1, 0) {
            return;
        }
    }
    panic!("each time there was a second connection");
}

/// Moves a client while it waits for responses. Returns the connections that it needed over QUIC and TCP.
async fn connections_of_a_moving_client() -> (usize, usize) {
    let (arrived, answers) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (at_service, goes) = (arrived.clone(), answers.clone());
    let waiting = service(move |_| {
        let (arrived, answers) = (at_service.clone(), goes.clone());
        async move {
            arrived.notify_one();
            answers.notified().await;
            Response::new(full("late"))
        }
    });
    let server = Server::start(Protocols::Quic, waiting).await;
    let mut relay = Relay::new(server.address);
    let client = builder(&server)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("a client");
    let url = format!("https://localhost:{}/", relay.address.port());
    for round in 0..3 {
        let request = {
            let (client, url) = (client.clone(), url.clone());
            crate::common::spawn(
                async move { text(client.get(&url).await.expect("answered")).await },
            )
        };
        within(arrived.notified()).await;
        relay.rebind();
        let ids = relay.connection_ids();
        // A hint may come before the handshake is confirmed, or while an earlier move is being validated. The
        // client cannot move then, sends a PING instead, and needs another hint.
        within(async {
            let mut is_changed = false;
            while !is_changed {
                client.network_changed();
                let change = until(|| relay.connection_ids() > ids);
                is_changed = tokio::time::timeout(PAUSE, change).await.is_ok();
            }
        })
        .await;
        answers.notify_one();
        let answer = tokio::time::timeout(Duration::from_secs(8), request).await;
        let answer = answer.unwrap_or_else(|_| panic!("round {round}: no response"));
        assert_eq!(answer.expect("no panic"), "late", "round {round}");
    }
    server.connections.counts()
}

/// Time between hints.
const PAUSE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn hint_without_a_connection_is_harmless() {
    let server = Server::start(Protocols::Quic, echo()).await;
    let client = client(&server);
    client.network_changed();
    assert!(client.endpoints().is_empty());
}
