use std::time::Duration;

use courser_base::{Rate, Time};

use super::bandwidth::MaxBandwidth;
use super::*;
use crate::congestion::window::initial_window;
use crate::congestion::{AckSample, Algorithm, LossSample, SpuriousLoss};
use crate::rtt::RttEstimator;

mod figures;
pub(super) mod harness;
mod path;
mod properties;

use harness::*;

#[test]
fn starts_with_the_initial_window_unpaced() {
    let bench = Bench::new();
    assert_eq!(bench.bbr.window(), initial_window(MTU));
    assert_eq!(bench.bbr.state(), "startup");
    assert!(bench.bbr.in_slow_start());
    // No round-trip time is known: the window in a millisecond, times 2.77 (§5.6.2).
    let expected = Rate::from_bytes_per_second(12_000_000).scaled(277, 100);
    assert_eq!(bench.pacing_rate(), expected);
}

#[test]
fn first_round_trip_time_sets_the_first_rate() {
    let mut bench = Bench::new();
    let little = Round {
        is_app_limited: true,
        ..Round::at(0)
    };
    bench.round(little);
    let expected = Rate::from_bytes_in(12_000, RTT).scaled(277, 100);
    assert_eq!(bench.pacing_rate(), expected);
}

#[test]
fn a_larger_datagram_enlarges_only_an_untouched_window() {
    let mut bench = Bench::new();
    bench.bbr.on_mtu_update(1400);
    assert_eq!(bench.bbr.window(), initial_window(1400));
    bench.round(Round::at(10));
    let window = bench.bbr.window();
    bench.bbr.on_mtu_update(1452);
    assert_eq!(bench.bbr.window(), window);
}

/// The largest controller determines the memory of each path.
#[test]
fn the_model_does_not_make_other_controllers_large() {
    let size = size_of::<crate::CongestionController>();
    assert!(size <= 544, "{size} bytes");
}

/// Appendix "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn an_idle_period_replaces_probe_rtt() {
    let mut bench = Bench::cruising(20);
    bench.round(Round {
        inflight: 0,
        ..Round::at(20)
    });
    bench.now += Duration::from_secs(6);
    bench.bbr.on_sent(bench.now, SIZE, 1, SIZE);
    assert!(bench.bbr.idle.is_restart);
    bench.round(Round::at(20));
    assert_ne!(bench.bbr.state(), "probe_rtt");
    assert!(!bench.bbr.idle.is_restart, "something was delivered");
}

/// §5.4.1: paced at the bandwidth, regardless of the gain of the phase.
#[test]
fn restart_paces_at_the_bandwidth() {
    let mut bench = Bench::probing(20);
    bench.ack(
        Round {
            inflight: 0,
            ..Round::at(20)
        },
        0,
    );
    assert!(bench.pacing_rate() > Rate::from_bytes_per_second(2_500_000));
    bench.now += Duration::from_secs(1);
    bench.bbr.on_sent(bench.now, SIZE, 1, SIZE);
    let expected = Rate::from_bytes_per_second(2_500_000).scaled(99, 100);
    assert_eq!(bench.pacing_rate(), expected);
}

/// A pipe that is empty between two quanta is not idle.
#[test]
fn waiting_for_the_pacer_is_not_idle() {
    let mut bench = Bench::cruising(1);
    bench.round(Round {
        inflight: 0,
        ..Round::at(1)
    });
    bench
        .bbr
        .on_sent(bench.now + Duration::from_millis(15), SIZE, 1, SIZE);
    assert!(!bench.bbr.idle.is_restart);
}

/// The first packets after an idle period only reflect that there was little to send.
#[test]
fn packets_after_an_idle_period_are_app_limited() {
    let mut bench = Bench::cruising(20);
    let idle = Round {
        inflight: 0,
        ..Round::at(20)
    };
    bench.round(idle);
    bench.now += Duration::from_secs(1);
    bench.bbr.on_sent(bench.now, SIZE, 1, SIZE);
    let prior = bench.delivered;
    bench.bbr.model.max_bw = MaxBandwidth::default();
    bench
        .bbr
        .model
        .max_bw
        .on_sample(Rate::from_bytes_per_second(2_500_000));
    bench.bbr.model.max_bw.advance();
    let before = format!("{:?}", bench.bbr.model.max_bw);
    bench.now += RTT;
    bench.ack(Round::at(1), prior);
    assert_eq!(
        format!("{:?}", bench.bbr.model.max_bw),
        before,
        "an app-limited sample does not count"
    );
    bench.round(Round::at(1));
    assert_ne!(
        format!("{:?}", bench.bbr.model.max_bw),
        before,
        "a later sample counts"
    );
}
