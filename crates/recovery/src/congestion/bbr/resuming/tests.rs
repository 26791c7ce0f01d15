use std::time::Duration;

use courser_base::Rate;

use super::super::tests::harness::*;
use super::*;

const UNVALIDATED: &str = "careful_resume_unvalidated";
const RETREAT: &str = "careful_resume_safe_retreat";

/// Half of what a path of 80 Mbit/s holds.
fn probing_rate() -> Rate {
    Rate::from_bytes_per_second(5_000_000)
}

/// A path of 80 Mbit/s, as an earlier connection has seen it.
fn saved(min_rtt: Duration) -> SavedPath {
    SavedPath {
        window: 2 * probing_rate().bytes_in(min_rtt),
        min_rtt,
    }
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.bbr.start_carefully(saved(RTT));
    bench
}

/// Returns a flow that has begun to send at the rate of the earlier one.
fn resumed() -> Bench {
    let mut bench = bench();
    bench.until(UNVALIDATED, Round::at(2));
    bench
}

#[test]
fn half_of_the_rate_is_sent_once_the_initial_window_is_acknowledged() {
    let mut bench = bench();
    let window = bench.bbr.window();
    assert!(bench.until(UNVALIDATED, Round::at(2)) > 0);
    assert!(bench.delivered >= window);
    assert_eq!(bench.pacing_rate(), probing_rate());
    assert_eq!(bench.bbr.window(), 2 * probing_rate().bytes_in(RTT));
    assert!(bench.bbr.in_slow_start());
}

#[test]
fn validated_rate_is_that_of_startup_after_two_rounds() {
    let mut bench = resumed();
    bench.round(Round::at(40));
    assert_eq!(bench.bbr.state(), UNVALIDATED);
    bench.round(Round::at(40));
    assert_eq!(bench.bbr.state(), STARTUP);
    assert!(bench.pacing_rate() > probing_rate().scaled(5, 2));
}

#[test]
fn rate_is_tried_once() {
    let mut bench = resumed();
    bench.until(STARTUP, Round::at(40));
    for _ in 0..10 {
        bench.round(Round::at(40));
        assert_ne!(bench.bbr.state(), UNVALIDATED);
    }
}

/// The queue holds packets that were sent too fast, and rates that are measured from it do not count.
#[test]
fn loss_drains_the_queue_and_rates_measured_meanwhile_do_not_count() {
    let mut bench = resumed();
    bench.round(Round {
        inflight: 200 * SIZE,
        ..Round::at(8)
    });
    bench.lose(1, 200 * SIZE);
    assert_eq!(bench.bbr.state(), RETREAT);
    let before = bench.bbr.model.max_bw.get();
    bench.round(Round {
        inflight: 100 * SIZE,
        ..Round::at(30)
    });
    assert_eq!(bench.bbr.state(), RETREAT);
    assert_eq!(bench.bbr.model.max_bw.get(), before);
    assert!(bench.pacing_rate() < before, "half of the rate drains");
    bench.until(
        DOWN,
        Round {
            inflight: 0,
            ..Round::at(8)
        },
    );
    bench.round(Round::at(30));
    assert!(
        bench.bbr.model.max_bw.get() > before,
        "rates count after the queue has drained"
    );
}

#[test]
fn mark_ends_the_attempt_as_a_loss_does() {
    let mut bench = resumed();
    bench.mark();
    assert_eq!(bench.bbr.state(), RETREAT);
}

#[test]
fn spurious_loss_returns_to_startup() {
    let mut bench = resumed();
    bench.lose(1, 20 * SIZE);
    assert_eq!(bench.bbr.state(), RETREAT);
    bench.acknowledge_lost(1);
    bench.round(Round::at(4));
    assert_eq!(bench.bbr.state(), STARTUP);
}

#[test]
fn congestion_before_the_attempt_prevents_it() {
    let mut bench = bench();
    bench.lose(1, 10 * SIZE);
    for _ in 0..5 {
        bench.round(Round::at(2));
        assert_ne!(bench.bbr.state(), UNVALIDATED);
    }
}

#[test]
fn another_round_trip_time_or_a_fast_path_prevents_the_attempt() {
    let (other, slow) = (RTT * 3, Round::at(2));
    for (saved, round) in [
        (saved(other), slow),
        (saved(RTT / 11), slow),
        (saved(RTT), Round::at(40)),
    ] {
        let (mut bench, mut plain) = (Bench::new(), Bench::new());
        bench.bbr.start_carefully(saved);
        for _ in 0..6 {
            bench.round(round);
            plain.round(round);
            assert_eq!(bench.pacing_rate(), plain.pacing_rate(), "{saved:?}");
            assert_eq!(bench.bbr.window(), plain.bbr.window(), "{saved:?}");
        }
    }
}

#[test]
fn sender_without_data_postpones_the_attempt() {
    let mut bench = bench();
    for _ in 0..5 {
        bench.round(Round {
            is_app_limited: true,
            ..Round::at(2)
        });
        assert_ne!(bench.bbr.state(), UNVALIDATED);
    }
    assert!(bench.until(UNVALIDATED, Round::at(2)) <= 2);
}
