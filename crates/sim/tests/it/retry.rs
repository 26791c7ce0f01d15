//! Servers that validate addresses with Retry first. RFC 9000 §8.1.2.

use std::time::Duration;

use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_sim::apps::{Amount, Bulk, TransferDirection};
use courser_transport::{ConnectionError, RetryPolicy, TransportConfig};
use courser_wire::TransportErrorCode;

const MS: Duration = Duration::from_millis(1);

/// The probe timeout before there is a sample: RFC 9002 §6.2.2.
const FIRST_PTO: Duration = Duration::from_millis(999);

fn with_retry(link: &str) -> Setup {
    Setup {
        retry: RetryPolicy::Always,
        ..Setup::on(link)
    }
}

/// The client sends 1000 bytes and closes.
fn small() -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(1000))
}

/// After some losses in a row probes are six seconds apart.
fn with_long_timeouts(config: &mut TransportConfig) {
    config.handshake_timeout = Duration::from_secs(30);
}

fn transfer(seed: u64, setup: Setup, limit: Duration) -> Scene {
    let mut scene = Scene::new(seed, setup, small());
    scene.finish(limit, 1);
    assert_eq!(scene.server_counters().received, 1000);
    scene.assert_clean();
    scene
}

fn handshake_time(scene: &Scene) -> Duration {
    scene
        .stats()
        .handshake_time
        .expect("the handshake has ended")
}

fn retries(scene: &Scene) -> u64 {
    scene.server().endpoint().stats().retries_sent
}

#[test]
fn handshake_with_retry_takes_two_round_trips() {
    let scene = transfer(1, with_retry("rtt=100ms"), MS * 350);
    let time = handshake_time(&scene);
    assert!(time >= MS * 200 && time < MS * 203, "{time:?}");
    assert!(retries(&scene) >= 1);
    assert_eq!(scene.server().endpoint().stats().accepted, 1);
}

/// The client repeats its ClientHello after a probe timeout and gets another Retry.
#[test]
fn lost_retry_is_sent_again() {
    let scene = transfer(
        1,
        with_retry("rtt=50ms;rtt=50ms,first=2"),
        Duration::from_secs(3),
    );
    let time = handshake_time(&scene);
    assert!(time >= FIRST_PTO && time < FIRST_PTO + MS * 103, "{time:?}");
    assert!(scene.back().dropped.listed >= 1 && retries(&scene) >= 2);
}

#[test]
fn second_copy_of_a_retry_is_ignored() {
    let scene = transfer(1, with_retry("rtt=50ms;rtt=50ms,duplicate=100%"), MS * 400);
    assert!(handshake_time(&scene) < MS * 103);
    assert!(scene.back().duplicated >= 1);
}

/// When the first Retry arrives, the client has repeated its ClientHello and another Retry is in
/// flight: a client follows only one (RFC 9000 §17.2.5.2).
#[test]
fn second_retry_for_a_repeated_hello_is_ignored() {
    let scene = transfer(1, with_retry("rtt=1600ms"), Duration::from_secs(6));
    assert!(retries(&scene) >= 2, "{}", retries(&scene));
    assert!(handshake_time(&scene) < MS * 3210);
    assert_eq!(scene.server().endpoint().stats().accepted, 1);
}

#[test]
fn hello_with_the_token_lost_is_sent_again_with_it() {
    let scene = transfer(
        1,
        with_retry("rtt=50ms,drop=3-4;rtt=50ms"),
        Duration::from_secs(4),
    );
    assert_eq!(scene.forward().dropped.listed, 2);
    let time = handshake_time(&scene);
    // The Retry took 50 ms, and the probe timeout after it is three times that.
    assert!(time >= MS * 250 && time < MS * 253, "{time:?}");
    assert_eq!(scene.server().endpoint().stats().accepted, 1);
}

/// The token of the client was issued for its previous address (RFC 9000 §8.1.4).
#[test]
fn token_of_another_address_is_refused() {
    let link = "rtt=50ms,drop=3-4,rebind=addr:100ms:never;rtt=50ms";
    let mut scene = Scene::new(1, with_retry(link), small());
    scene.run_for(Duration::from_secs(12));
    assert_eq!(scene.world.rebindings(scene.link), 1);
    let (at, error) = scene.end().expect("the connection has ended");
    let ConnectionError::ConnectionClosed(close) = error else {
        panic!("{error}");
    };
    assert_eq!(close.code, TransportErrorCode::INVALID_TOKEN);
    // The attempt ends when the repeated ClientHello is answered.
    assert!(
        at.as_nanos() < u64::try_from((MS * 260).as_nanos()).expect("the length fits into usize")
    );
    assert_eq!(scene.server().endpoint().stats().connected, 0);
}

/// Tokens of a Retry validate the address for ten seconds (limit K23).
#[test]
fn token_that_is_too_old_is_refused() {
    let setup = with_retry("rtt=50ms,drop=3-16;rtt=50ms").both(|config| {
        config.handshake_timeout = Duration::from_secs(60);
        config.max_idle_timeout = Some(Duration::from_secs(60));
    });
    let mut scene = Scene::new(1, setup, small());
    scene.run_for(Duration::from_secs(60));
    let (_, error) = scene.end().expect("the connection has ended");
    let ConnectionError::ConnectionClosed(close) = error else {
        panic!("{error}");
    };
    assert_eq!(close.code, TransportErrorCode::INVALID_TOKEN);
    assert_eq!(scene.forward().dropped.listed, 14);
}

/// Any byte of the ClientHello with the token is corrupted, the token included: it is sent again,
/// and no INVALID_TOKEN is sent (RFC 9000 §8.1.2).
#[test]
fn damaged_token_is_sent_again() {
    for byte in [26, 30, 50, 80, 110] {
        let mut setup = with_retry("rtt=50ms;rtt=50ms,drop=2");
        // Two datagrams of the ClientHello, a Retry for each, and the ClientHello again.
        setup.damaged = vec![(5, byte), (6, byte)];
        let scene = transfer(1, setup, Duration::from_secs(3));
        let time = handshake_time(&scene);
        assert!(time >= MS * 250, "byte {byte}: {time:?}");
        assert!(scene.server().endpoint().stats().datagrams_dropped >= 1);
    }
}

#[test]
fn thirty_percent_loss_fails_no_retry_handshake_of_fifty() {
    let mut lost = 0;
    for_each_seed(50, |seed| {
        let setup = with_retry("rtt=30ms,loss=30%:3").both(with_long_timeouts);
        let scene = transfer(seed, setup, Duration::from_secs(20));
        lost += scene.dropped(|dropped| dropped.loss);
    });
    assert!(lost > 150, "{lost}");
}

#[test]
fn thirty_percent_damaged_fails_no_retry_handshake_of_fifty() {
    let mut damaged = 0;
    for_each_seed(50, |seed| {
        let setup = with_retry("rtt=30ms,corrupt=30%:3").both(with_long_timeouts);
        let mut scene = Scene::new(seed, setup, small());
        scene.finish(Duration::from_secs(20), 1);
        assert_eq!(scene.server_counters().received, 1000);
        assert_eq!(scene.counters().failures, [""; 0]);
        damaged += scene.forward().corrupted + scene.back().corrupted;
    });
    assert!(damaged > 150, "{damaged}");
}

/// The two datagrams of the ClientHello are reordered, with the token and without it.
#[test]
fn reordered_hellos_make_one_connection() {
    for_each_seed(50, |seed| {
        let scene = transfer(seed, with_retry("rtt=100ms,reorder=50%:30ms"), MS * 600);
        assert_eq!(scene.server().endpoint().stats().accepted, 1);
        assert!(handshake_time(&scene) <= MS * 322, "seed {seed}");
    });
}

/// Every subset of the first ten datagrams of both ends together.
#[test]
fn every_subset_of_the_first_ten_datagrams_lost_is_survived() {
    for_each_seed(1 << 10, |seed| {
        let mask = seed - 1;
        let mut setup = with_retry("rtt=20ms").both(|config| {
            config.initial_rtt = MS * 100;
            config.handshake_timeout = Duration::from_secs(60);
            config.max_idle_timeout = Some(Duration::from_secs(60));
        });
        setup.lost = (1..=10)
            .filter(|number| mask >> (number - 1) & 1 == 1)
            .collect();
        let mut scene = Scene::new(seed, setup, small());
        // Ten losses in a row take five probe timeouts of 300 ms, doubled each time: 9.3 s. A token
        // is valid for ten seconds.
        scene.run_until(Duration::from_secs(25), "transfer", |scene| {
            scene.server_counters().received == 1000 && scene.counters().streams == 1
        });
        scene.assert_clean();
    });
}

#[test]
fn client_that_never_answers_leaves_no_state_at_the_server() {
    let mut scene = Scene::new(1, with_retry("rtt=50ms,drop=3-1000;rtt=50ms"), small());
    scene.run_for(MS * 100);
    assert!(retries(&scene) >= 1);
    let stats = scene.server().endpoint().stats();
    assert_eq!(
        (stats.accepted, stats.half_open, stats.connections),
        (0, 0, 0)
    );
    scene.run_for(Duration::from_secs(11));
    assert_eq!(
        scene.end().expect("the connection has ended").1,
        ConnectionError::HandshakeTimedOut
    );
}
