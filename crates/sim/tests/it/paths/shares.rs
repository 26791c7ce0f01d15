//! The part of the sum of two links that a transfer reaches (M-1 to M-6).

use courser_recovery::{Algorithm, PathSchedule};
use courser_sim::apps::TransferDirection;
use courser_transport::PathSchedulerChoice;

use super::lab::{BOTH, Plan, part_of_best, share_of_sum, time};

const DIRECTIONS: [TransferDirection; 2] = [TransferDirection::Up, TransferDirection::Down];
const SEEDS: std::ops::Range<u64> = 1..4;

/// Compares what `measure` returns for each direction and controller with a bar, and returns all figures.
fn measure(
    bytes: u64,
    window: Option<u64>,
    measure: impl Fn(u64, &Plan) -> f64,
) -> Vec<(Algorithm, TransferDirection, f64)> {
    let mut figures = Vec::new();
    for algorithm in BOTH {
        for direction in DIRECTIONS {
            let mut plan = Plan::new(algorithm, direction, bytes);
            plan.window = window;
            let all: Vec<f64> = SEEDS.map(|seed| measure(seed, &plan)).collect();
            eprintln!("{algorithm:?} {direction:?}: {all:.3?}");
            let figure = all.iter().sum::<f64>() / all.len() as f64;
            figures.push((algorithm, direction, figure));
        }
    }
    figures
}

fn assert_sum(name: &str, links: [&str; 2], bar: f64) {
    let bytes = std::env::var("COURSER_PATHS_BYTES").ok();
    let bytes = bytes
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(30_000_000);
    let figures = measure(bytes, None, |seed, plan| share_of_sum(seed, links, plan));
    eprintln!("{name} {links:?}: {figures:.3?}");
    assert!(
        figures.iter().all(|(.., share)| *share >= bar),
        "{name}: {figures:.3?}"
    );
}

#[test]
fn equal_round_trips_reach_the_sum() {
    assert_sum(
        "M-1",
        ["50mbit,rtt=30ms,queue=40ms", "30mbit,rtt=30ms,queue=40ms"],
        0.9,
    );
}

#[test]
fn slower_link_with_a_longer_round_trip_adds_its_rate() {
    let (fast, slow) = ("50mbit,rtt=20ms,queue=40ms", "30mbit,rtt=60ms,queue=40ms");
    assert_sum("M-2", [fast, slow], 0.9);
    assert_sum("M-2", [slow, fast], 0.9);
}

#[test]
fn very_different_links_reach_the_sum() {
    assert_sum(
        "M-3",
        [
            "100mbit,rtt=10ms,queue=40ms",
            "10mbit,rtt=200ms,queue=100ms",
        ],
        0.85,
    );
}

#[test]
fn loss_on_one_link_costs_only_its_share() {
    let (fast, slow) = ("50mbit,rtt=20ms,queue=40ms", "30mbit,rtt=60ms,queue=40ms");
    assert_sum("M-4", [&format!("{fast},loss=1%"), slow], 0.85);
    assert_sum("M-4", [fast, &format!("{slow},loss=1%")], 0.85);
}

#[test]
fn small_window_is_not_filled_by_a_slow_link() {
    let links = ["50mbit,rtt=20ms,queue=40ms", "30mbit,rtt=200ms,queue=40ms"];
    let figures = measure(20_000_000, Some(1_000_000), |seed, plan| {
        part_of_best(seed, links, plan)
    });
    eprintln!("M-5: {figures:.3?}");
    assert!(
        figures.iter().all(|(.., part)| *part <= 1.02),
        "{figures:.3?}"
    );
}

#[test]
fn small_transfers_take_no_longer_than_over_the_best_link() {
    let links = ["50mbit,rtt=20ms,queue=40ms", "30mbit,rtt=60ms,queue=40ms"];
    for bytes in [20_000, 100_000, 1_000_000] {
        let figures = measure(bytes, None, |seed, plan| part_of_best(seed, links, plan));
        eprintln!("M-6 {bytes}: {figures:.3?}");
        assert!(
            figures.iter().all(|(.., part)| *part <= 1.05),
            "{bytes}: {figures:.3?}"
        );
    }
}

/// Returns the times of an upload with `Earliest` and with `Fastest`.
fn with_each_scheduler(links: [&str; 2], bytes: u64, window: Option<u64>) -> [f64; 2] {
    let mut plan = Plan::new(Algorithm::Cubic, TransferDirection::Up, bytes);
    plan.window = window;
    [PathSchedule::Earliest, PathSchedule::Fastest].map(|schedule| {
        plan.scheduler = PathSchedulerChoice::Builtin(schedule);
        time(1, &links, &plan).as_secs_f64()
    })
}

/// A slow link that may be used whenever it has room fills a small window, and keeps the end of a transfer.
#[test]
fn scheduler_by_arrival_is_faster_with_a_small_window_and_with_a_very_slow_link() {
    let fast = "50mbit,rtt=20ms,queue=40ms";
    for (slow, bytes, window) in [
        ("30mbit,rtt=200ms,queue=40ms", 20_000_000, Some(300_000)),
        ("10mbit,rtt=400ms,queue=40ms", 30_000_000, None),
    ] {
        let [earliest, fastest] = with_each_scheduler([fast, slow], bytes, window);
        assert!(
            fastest > earliest * 1.1,
            "{slow}: {earliest} and {fastest} s"
        );
    }
}

/// Copies fill the gaps sooner than the credit expects.
#[test]
fn scheduler_by_round_trip_is_faster_with_a_window_of_a_few_bandwidth_delay_products() {
    let links = ["50mbit,rtt=20ms,queue=40ms", "30mbit,rtt=200ms,queue=40ms"];
    let [earliest, fastest] = with_each_scheduler(links, 20_000_000, Some(1_000_000));
    assert!(fastest < earliest * 0.95, "{earliest} and {fastest} s");
}
