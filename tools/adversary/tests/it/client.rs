//! Attacks of a server on a client.

use std::time::Duration;

use courser::{ClientConfig, Endpoint, h3, runtime};
use courser_sim::identity::identity;

use crate::harness::{Outcome, attack_at};

/// Connects to the hostile server repeatedly, and keeps each connection until it is closed.
async fn reconnect() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    loop {
        let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
        let endpoint = Endpoint::client("10.0.0.2:0".parse()?)?;
        let connecting = endpoint.connect_with(config, "10.0.0.9:20000".parse()?, "localhost")?;
        if let Ok(connection) = connecting.await {
            connection.closed().await;
        }
        runtime::sleep(Duration::from_millis(100)).await;
    }
}

fn attack_client(name: &str) -> Outcome {
    attack_at("10.0.0.2:1", name, Duration::from_millis(500), |world| {
        let near = world.machine("client", [10, 0, 0, 2]);
        near.spawn(reconnect());
        world.id_of(&near)
    })
}

#[test]
fn endless_tickets_exceed_the_crypto_buffer() {
    attack_client("big-tickets")
        .assert_closed_with("CRYPTO_BUFFER_EXCEEDED")
        .assert_peak_below(2048);
}

#[test]
fn endless_tokens_are_a_violation() {
    attack_client("big-tokens")
        .assert_closed_with("PROTOCOL_VIOLATION")
        .assert_peak_below(2048);
}

#[test]
fn forged_preferred_address_is_not_used() {
    let outcome = attack_client("forged-preferred");
    outcome.assert_tolerated().assert_peak_below(2048);
    assert!(outcome.received > 10, "the client stays: {outcome:?}");
}
