//! Attacks on early data (0-RTT). RFC 8446 §8, RFC 9000 §7.4.1, RFC 9001 §9.2.

use std::time::Duration;

use courser::{ClientConfig, EarlyData, Endpoint, h3, runtime};
use courser_sim::identity::identity;

use crate::harness::{attack_at, attack_on_early_data};

const SECOND: Duration = Duration::from_secs(1);

/// The copies arrive from many ports at once, while the server waits for the handshake of the first one and after
/// that handshake has timed out.
#[test]
fn a_replayed_first_flight_is_processed_once() {
    let (outcome, processed) = attack_on_early_data("early-replay", 12 * SECOND);
    assert_eq!(outcome.handshakes, 1, "one ticket: {outcome:?}");
    assert!(outcome.sent > 5_000, "{outcome:?}");
    assert_eq!((processed.early(), processed.late()), (1, 0));
    outcome.assert_peak_below(8 * 1024);
}

#[test]
fn each_ticket_brings_one_early_request() {
    let (outcome, processed) = attack_on_early_data("early-replay", 40 * SECOND);
    assert!(outcome.handshakes > 1, "several tickets: {outcome:?}");
    assert!(processed.early() <= outcome.handshakes, "{outcome:?}");
    assert!(processed.early() >= outcome.handshakes - 1, "{outcome:?}");
    assert_eq!(processed.late(), 0);
}

/// Limit K153 holds for each connection. 64 packets with 1100 bytes arrive in each millisecond.
#[test]
fn endless_early_data_takes_bounded_memory() {
    let (outcome, processed) = attack_on_early_data("early-flood", SECOND / 2);
    assert!(outcome.bytes.0 > 10 << 20, "{outcome:?}");
    outcome.assert_tolerated().assert_peak_below(3 * 1024);
    // Each flood has a connection that obtains its ticket, and one that is flooded.
    let floods = outcome.handshakes.div_ceil(2);
    assert!(floods > 3, "{outcome:?}");
    assert!(
        processed.early() >= floods - 1,
        "{processed:?}, {outcome:?}"
    );
    assert!(processed.early() <= floods, "{processed:?}, {outcome:?}");
    assert_eq!(processed.late(), 0);
}

/// Connects repeatedly, and sends early data as soon as there is a ticket.
async fn resume() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
    let config = config.early_data(true);
    let endpoint = Endpoint::client("10.0.0.2:0".parse()?)?;
    loop {
        let to = "10.0.0.9:20000".parse()?;
        let connecting = endpoint.connect_with(config.clone(), to, "localhost")?;
        if let Ok(connection) = connecting.early().await {
            if connection.early_data() == EarlyData::Offered {
                let (mut send, _receive) = connection.open_bi().await?;
                send.write_all(b"more than one byte").await?;
                connection.closed().await;
            } else {
                connection.authenticated().await?;
                // The tickets arrive meanwhile.
                runtime::sleep(Duration::from_millis(50)).await;
                connection.close(0_u32.into(), b"");
            }
        }
        runtime::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn early_data_accepted_below_the_remembered_limits_is_a_violation() {
    let time = Duration::from_millis(500);
    let outcome = attack_at("10.0.0.2:1", "early-limits", time, |world| {
        let near = world.machine("client", [10, 0, 0, 2]);
        near.spawn(async { resume().await.expect("every attempt starts") });
        world.id_of(&near)
    });
    outcome
        .assert_closed_with("PROTOCOL_VIOLATION")
        .assert_peak_below(2048);
    let violations = outcome.closes["PROTOCOL_VIOLATION"];
    assert!(violations >= 1, "{outcome:?}");
}
