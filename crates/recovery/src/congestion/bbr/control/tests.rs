use super::super::model::ShortTerm;
use super::super::tests::harness::*;
use super::*;

/// The table of §5.6.1.
#[test]
fn gains_are_those_of_the_table() {
    let drain = State::Drain { start_round: 0 };
    let probe_rtt = State::ProbeRtt {
        done: None,
        is_round_done: false,
    };
    let table = [
        (State::Startup, 277, 200),
        (drain, 50, 200),
        (State::Down, 90, 200),
        (State::Cruise, 100, 200),
        (State::Refill, 100, 200),
        (State::Up, 125, 225),
        (probe_rtt, 100, 50),
    ];
    let mut bench = Bench::new();
    for (state, pacing, cwnd) in table {
        bench.bbr.state = state;
        assert_eq!(bench.bbr.pacing_gain(), pacing, "{state:?}");
        assert_eq!(bench.bbr.cwnd_gain(), cwnd, "{state:?}");
    }
}

/// The last column of that table.
#[test]
fn each_phase_has_its_bounds_on_what_is_in_flight() {
    let bounds = [
        (State::Startup, 50),
        (State::Down, 50),
        (State::Cruise, 50),
        (State::Up, 50),
    ];
    let mut bench = Bench::cruising(100);
    let (long, short) = (100 * SIZE, 50 * SIZE);
    for (state, packets) in bounds {
        bench.bbr.state = state;
        bench.bbr.cwnd = 1000 * SIZE;
        bench.bbr.inflight_longterm = Some(long);
        bench.bbr.short_term = Some(ShortTerm {
            bw: Rate::from_bytes_per_second(1),
            inflight: short,
        });
        bench.bbr.bound_cwnd_for_model();
        assert_eq!(bench.bbr.cwnd, packets * SIZE, "{state:?}");
    }
    let long_only = [
        (State::Startup, 1000),
        (State::Down, 100),
        (State::Cruise, 85),
        (State::Refill, 100),
    ];
    for (state, packets) in long_only {
        bench.bbr.state = state;
        bench.bbr.cwnd = 1000 * SIZE;
        bench.bbr.short_term = None;
        bench.bbr.bound_cwnd_for_model();
        assert_eq!(bench.bbr.cwnd, packets * SIZE, "{state:?}");
    }
}

#[test]
fn no_bound_is_below_four_datagrams() {
    let mut bench = Bench::cruising(100);
    bench.bbr.inflight_longterm = Some(0);
    bench.bbr.bound_cwnd_for_model();
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
fn a_full_pipe_holds_twice_what_the_path_does_and_what_comes_in_lumps() {
    let mut bench = Bench::cruising(100);
    for _ in 0..8 {
        bench.round(Round::at(100));
    }
    let bdp = Round::at(100).tx_in_flight;
    let extra = bench.bbr.aggregation.extra_acked();
    assert!(extra > 0 && extra <= bench.bbr.window(), "{extra}");
    assert_eq!(bench.bbr.window(), 2 * bdp + extra);
}

#[test]
fn hostile_numbers_do_not_overflow() {
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
