//! Attacks on WebTransport sessions.

use std::time::Duration;

use courser::webtransport::{self, Config, Limits};
use courser::{ClientConfig, Endpoint, Side, h3, runtime};
use courser_adversary::sessions;
use courser_sim::identity::identity;

use crate::harness::{Outcome, Storey, attack_at, attack_on_storey};

const SECOND: Duration = Duration::from_secs(1);

fn attack(name: &str, time: Duration) -> Outcome {
    attack_on_storey(name, time, Storey::Sessions(Config::new()))
}

#[test]
fn streams_of_sessions_that_never_come_are_excessive_load() {
    attack("session-early-streams", 2 * SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

#[test]
fn streams_of_sessions_that_are_over_are_refused() {
    let outcome = attack("session-late-streams", 4 * SECOND);
    outcome.assert_expected().assert_peak_below(4 * 1024);
    // Limit K581: 1024 late streams are not charged. Without them, a connection would last for 500 (K17) and
    // those of a round trip. A datagram has three streams.
    let closed = outcome.closes["H3 0x107"];
    assert!(3 * outcome.sent > 1200 * closed, "{outcome:?}");
}

/// Tables do not grow with the number of streams.
#[test]
fn tiny_streams_take_no_memory() {
    let outcome = attack("session-tiny-streams", 3 * SECOND);
    outcome.assert_expected().assert_ran(2, 1000);
    outcome.assert_peak_below(6 * 1024);
}

/// The limits are below those of QUIC here, so that the session ends and not the connection.
#[test]
fn streams_and_bytes_beyond_limits_end_their_session() {
    let limits = Limits {
        max_data: 100_000,
        max_streams_bidi: 8,
        max_streams_uni: 8,
    };
    let config = Config {
        limits,
        max_window: 100_000,
        ..Config::new()
    };
    let outcome = attack_on_storey("session-beyond", SECOND, Storey::Sessions(config));
    outcome.assert_peak_below(4 * 1024);
    let ended = outcome.streams.get(&sessions::FLOW_CONTROL_ERROR);
    assert!(ended >= Some(&2), "{outcome:?}");
}

#[test]
fn numbers_that_are_no_sessions_are_refused() {
    attack("session-numbers", 3 * SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

#[test]
fn signal_inside_of_a_request_is_a_frame_error() {
    attack("session-signal", SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

#[test]
fn streams_that_are_reset_in_their_header_are_excessive_load() {
    attack("session-resets", 8 * SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

#[test]
fn requests_of_sessions_are_bounded() {
    // Each of two connections has 16 sessions, and with them 16 384 streams (K593), which the client never ends.
    attack("session-requests", 3 * SECOND)
        .assert_expected()
        .assert_peak_below(32 * 1024);
    attack("session-open-close", 3 * SECOND)
        .assert_expected()
        .assert_peak_below(6 * 1024);
}

#[test]
fn pages_of_other_origins_are_refused() {
    attack("session-origins", 3 * SECOND)
        .assert_expected()
        .assert_peak_below(8 * 1024);
}

#[test]
fn late_settings_without_requirements_refuse_what_waits() {
    attack("session-late-settings", 8 * SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

/// WT-v-005: requests of sessions wait for SETTINGS for no longer than K52.
#[test]
fn requests_do_not_wait_for_settings_endlessly() {
    let outcome = attack("session-no-settings", 29 * SECOND);
    outcome.assert_tolerated().assert_peak_below(4 * 1024);
    let outcome = attack("session-no-settings", 32 * SECOND);
    assert_eq!(outcome.closes.get("H3 0x10a"), Some(&4), "{outcome:?}");
}

#[test]
fn sessions_that_do_not_end_are_reset() {
    attack("session-no-close", 4 * SECOND)
        .assert_expected()
        .assert_peak_below(6 * 1024);
}

#[test]
fn malformed_messages_end_their_sessions() {
    attack("session-messages", 2 * SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

#[test]
fn unknown_capsules_are_excessive_load() {
    attack("session-unknown-capsules", 2 * SECOND)
        .assert_expected()
        .assert_peak_below(6 * 1024);
}

#[test]
fn invalid_limits_end_their_sessions() {
    attack("session-limits", SECOND)
        .assert_expected()
        .assert_peak_below(4 * 1024);
}

#[test]
fn floods_of_datagrams_are_dropped() {
    let outcome = attack("session-datagrams", SECOND);
    outcome.assert_expected().assert_ran(2, 10_000);
    outcome.assert_peak_below(8 * 1024);
}

/// Opens sessions again and again, and takes nothing of them.
async fn open() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    loop {
        let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
        let endpoint = Endpoint::client("10.0.0.2:0".parse()?)?;
        let connecting = endpoint.connect_with(config, "10.0.0.9:20000".parse()?, "localhost")?;
        if let Ok(connection) = connecting.await {
            let mut settings = h3::Config::new(Side::Client);
            webtransport::enable(&mut settings, Side::Client, Config::new())?;
            let client = h3::Client::with_config(connection.clone(), settings);
            let wish = webtransport::SessionRequest::new("https://localhost/chat".parse()?);
            let session = webtransport::connect(&client, wish).await;
            connection.closed().await;
            drop(session);
        }
        runtime::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn streams_of_a_server_take_bounded_memory_of_a_client() {
    let outcome = attack_at("10.0.0.2:1", "session-server-streams", SECOND, |world| {
        let near = world.machine("client", [10, 0, 0, 2]);
        near.spawn(async { open().await.expect("every attempt starts") });
        world.id_of(&near)
    });
    assert!(outcome.sent > 5000, "{outcome:?}");
    outcome.assert_peak_below(12 * 1024);
}
