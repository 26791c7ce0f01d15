//! The distribution of packets over time.

use std::time::Duration;

use crate::common;
use crate::common::lab::{
    CONTROLLERS, MS, SECOND, assert_clean, controlled, finish_exchanges, there, transfer_down,
};
use crate::common::requests::Requests;
use crate::common::slow::{Fault, SlowScene};
use crate::common::{SERVER, Scene};
use courser_recovery::Algorithm;
use courser_sim::apps::Exchange;

/// A link ten times faster than the bottleneck behind it forwards bursts. While the window is below
/// a BDP, the longest queue of the bottleneck is one burst. Datagrams of 1472 bytes with headers,
/// sixteen in a batch.
const BURST: u64 = 16 * 1500;

/// One window per request, a second apart: after a pause the window is unchanged, and it does not
/// leave in one burst (RFC 9002 §7.7, §7.8).
#[test]
fn window_is_not_sent_at_once_after_idle() {
    for &algorithm in CONTROLLERS {
        let app = Exchange::new(SERVER, 150_000, 1, Some(8)).every(SECOND);
        // BDP 250 kB: responses never fill the path, so that only bursts wait.
        let mut scene = Scene::new(1, controlled("20mbit,rtt=100ms,queue=1s", algorithm), app);
        finish_exchanges(&mut scene, 8, SECOND * 30);
        let most = there(&scene).max_queue_bytes;
        assert!(most <= 3 * BURST, "{algorithm}: {most}");
    }
}

/// Ten seconds of silence: the first flight is at most the initial window, or it is paced.
#[test]
fn long_idle_ends_without_a_burst() {
    for &algorithm in CONTROLLERS {
        let app = Exchange::new(SERVER, 400_000, 1, Some(3)).every(SECOND * 10);
        let mut scene = Scene::new(1, controlled("50mbit,rtt=100ms,queue=1s", algorithm), app);
        finish_exchanges(&mut scene, 3, SECOND * 60);
        let most = there(&scene).max_queue_bytes;
        assert!(most <= 3 * BURST, "{algorithm}: {most}");
    }
}

/// Slow start paces at twice the window per round trip, so a queue of a BDP need not hold a
/// whole window.
#[test]
fn first_window_is_spread_over_the_round_trip() {
    let setup = controlled("100mbit,rtt=100ms,queue=1s", Algorithm::Cubic);
    let (scene, _) = transfer_down(1, setup, 300_000, SECOND * 5);
    let most = common::lab::back(&scene).max_queue_bytes;
    assert!(most <= 2 * BURST, "{most}");
    assert_eq!(scene.server_stats().packets_lost, 0);
}

/// Loses nothing with a queue of twenty packets before the window exceeds the BDP.
#[test]
fn short_transfer_fits_a_short_queue() {
    for &algorithm in CONTROLLERS {
        let setup = controlled("20mbit,rtt=100ms,queue=20p", algorithm);
        let (scene, _) = transfer_down(1, setup, 150_000, SECOND * 5);
        let link = common::lab::back(&scene);
        assert_eq!(link.dropped.total(), 0, "{algorithm}: {link:?}");
        assert!(link.max_queue_packets > 0);
    }
}

fn paced_by_late_timers(late: Duration) -> Duration {
    let setup = controlled("20mbit,rtt=40ms,queue=2bdp", Algorithm::Cubic);
    let faults = [Fault::LateTimers(late), Fault::LateTimers(late)];
    let mut scene = SlowScene::new(1, setup, common::lab::up(3_000_000), faults);
    scene.finish_up(3_000_000, SECOND * 20)
}

/// Timers are a millisecond late, as on real systems, and the pacer compensates.
#[test]
fn release_one_millisecond_late_costs_nothing() {
    let (on_time, late) = (
        paced_by_late_timers(Duration::ZERO),
        paced_by_late_timers(MS),
    );
    assert!(late < on_time.mul_f64(1.1), "{on_time:?} {late:?}");
}

/// Ten milliseconds late is a quarter of the round trip; at least half of the rate is left.
#[test]
fn release_ten_milliseconds_late_leaves_half_the_rate() {
    let (on_time, late) = (
        paced_by_late_timers(Duration::ZERO),
        paced_by_late_timers(MS * 10),
    );
    assert!(late < on_time * 2, "{on_time:?} {late:?}");
}

/// Consecutive requests are not delayed by the pacer: 50 round trips and little more.
#[test]
fn pings_are_not_paced() {
    let app = Exchange::ping(SERVER, Duration::ZERO, Some(50));
    let mut scene = Scene::new(1, controlled("100mbit,rtt=20ms", Algorithm::Cubic), app);
    finish_exchanges(&mut scene, 50, SECOND * 5);
    let slowest = scene
        .counters()
        .exchanges
        .iter()
        .map(|(_, took)| *took)
        .max();
    assert!(
        slowest.expect("there are fifty exchanges") < MS * 21,
        "{slowest:?}"
    );
    assert_clean(&scene);
}

/// A response of an initial window on an idle connection does not wait for its own tail: one round
/// trip and its transmission time, whatever the window was before. Prague differs: L4S queues mark
/// bursts.
#[test]
fn short_answers_after_idle_take_one_round_trip() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        // Nine datagrams: 1.1 ms at this rate.
        let app = Exchange::new(SERVER, 12_000, 1, Some(10)).every(SECOND);
        let setup = controlled("100mbit,rtt=50ms,queue=1s", algorithm);
        let mut scene = Scene::new(1, setup, app);
        finish_exchanges(&mut scene, 10, SECOND * 30);
        let exchanges = &scene.counters().exchanges;
        let times: Vec<_> = exchanges.iter().map(|(_, took)| *took).collect();
        // The first one waits for the connection, the second one goes behind an MTU probe.
        assert!(
            times[2..].iter().all(|took| *took < MS * 52),
            "{algorithm}: {times:?}"
        );
        assert!(times[1] < MS * 55, "{algorithm}: {times:?}");
    }
}

/// The end of a message comes a millisecond after data that used the quantum and most of the
/// window. It waits neither for a quantum, here 5 ms, nor for room for a whole datagram.
#[test]
fn end_of_a_message_is_sent_without_delay() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        let app = Requests::new(SERVER, 1, 11_000, 100)
            .beginning_at(SECOND)
            .finishing_after(MS);
        let setup = controlled("100mbit,rtt=50ms,queue=1s", algorithm);
        let mut scene = Scene::new(1, setup, app);
        let time = scene.run_until(SECOND * 3, "answer", |scene| scene.counters().streams == 1);
        // The round trip, that millisecond, one for the link, and one step of `run_until`.
        let most = SECOND + MS * 53;
        assert!(time < most, "{algorithm}: {time:?}");
        assert_clean(&scene);
    }
}

/// Data that a client sends together with the end of its handshake fills the window, which grows
/// with it: 30 kB take the handshake, a flight of ten packets and one of twenty.
#[test]
fn first_flight_of_a_client_grows_its_window() {
    let setup = controlled("rtt=50ms", Algorithm::Cubic);
    let (_, time) = common::lab::transfer_up(1, setup, 30_000, SECOND);
    // The second flight is spread over half a round trip at most.
    assert!(time < MS * (50 + 25 + 50 + 25), "{time:?}");
}
