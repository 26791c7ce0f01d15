use super::super::bounds::ShortTerm;
use super::super::tests::harness::*;
use super::*;

/// The table of §5.6.1.
#[test]
fn gains_are_those_of_the_table() {
    let table = [
        (STARTUP, 277, 200),
        (DRAIN, 50, 200),
        (DOWN, 90, 200),
        (CRUISE, 100, 200),
        (REFILL, 100, 200),
        (UP, 125, 225),
        (PROBE_RTT, 100, 50),
    ];
    let mut bench = Bench::new();
    for (phase, pacing, cwnd) in table {
        bench.put_into(phase);
        let limits = bench.bbr.phase.limits(&bench.bbr.model);
        assert_eq!(bench.bbr.phase.pacing_gain(), pacing, "{phase}");
        assert_eq!(limits.cwnd_gain, cwnd, "{phase}");
    }
}

/// Applies the bounds of this phase to the window.
fn bound(bench: &mut Bench, phase: &str) {
    bench.put_into(phase);
    let model = &bench.bbr.model;
    let limits = bench.bbr.phase.limits(model);
    bench.bbr.control.bound_cwnd_for_model(limits, model);
}

/// The last column of that table.
#[test]
fn each_phase_bounds_bytes_in_flight() {
    let bounds = [(STARTUP, 50), (DOWN, 50), (CRUISE, 50), (UP, 50)];
    let mut bench = Bench::cruising(100);
    let (long, short) = (100 * SIZE, 50 * SIZE);
    for (phase, packets) in bounds {
        bench.bbr.control.cwnd = 1000 * SIZE;
        bench.bbr.model.bounds.long_term = Some(long);
        bench.bbr.model.bounds.short_term = Some(ShortTerm {
            bw: Rate::from_bytes_per_second(1),
            inflight: short,
        });
        bound(&mut bench, phase);
        assert_eq!(bench.bbr.control.cwnd, packets * SIZE, "{phase}");
    }
    let long_only = [(STARTUP, 1000), (DOWN, 100), (CRUISE, 85), (REFILL, 100)];
    for (phase, packets) in long_only {
        bench.bbr.control.cwnd = 1000 * SIZE;
        bench.bbr.model.bounds.short_term = None;
        bound(&mut bench, phase);
        assert_eq!(bench.bbr.control.cwnd, packets * SIZE, "{phase}");
    }
}

#[test]
fn no_bound_is_below_four_datagrams() {
    let mut bench = Bench::cruising(100);
    bench.bbr.model.bounds.long_term = Some(0);
    bound(&mut bench, CRUISE);
    assert_eq!(bench.bbr.window(), 4 * SIZE);
}

/// §5.6.3.
#[test]
fn a_quantum_is_a_millisecond_within_bounds() {
    let cases = [(1, 2 * SIZE), (100, 12_375), (10_000, 64 * 1024)];
    for (megabits, expected) in cases {
        let bench = Bench::cruising(megabits);
        assert_eq!(
            bench.bbr.send_quantum(),
            Some(expected),
            "{megabits} Mbit/s"
        );
    }
}

#[test]
fn window_of_a_full_pipe_is_twice_the_bdp_plus_aggregation() {
    let mut bench = Bench::cruising(100);
    for _ in 0..8 {
        bench.round(Round::at(100));
    }
    let bdp = Round::at(100).tx_in_flight;
    let extra = bench.bbr.model.aggregation.extra_acked();
    assert!(extra > 0 && extra <= bench.bbr.window(), "{extra}");
    assert_eq!(bench.bbr.window(), 2 * bdp + extra);
}

#[test]
fn extreme_values_do_not_overflow() {
    let mut bench = Bench::cruising(100);
    let huge = Round {
        rate: Rate::from_bytes_per_second(1 << 45),
        inflight: 1 << 40,
        tx_in_flight: 1 << 40,
        ..Round::at(100)
    };
    for _ in 0..50 {
        bench.round(huge);
        bench.lose(3, 1 << 40);
    }
    assert!(bench.bbr.window() <= MAX_WINDOW);
}
