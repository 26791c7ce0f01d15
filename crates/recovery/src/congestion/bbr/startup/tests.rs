use super::super::tests::harness::*;

/// Appendix "Exiting STARTUP on Bandwidth Plateau".
#[test]
fn three_rounds_without_growth_end_startup() {
    let mut bench = Bench::new();
    for megabits in [1, 2, 4, 8, 10] {
        bench.round(Round::at(megabits));
        assert_eq!(bench.bbr.state(), STARTUP, "{megabits} Mbit/s");
    }
    for round in 1..=3 {
        assert_eq!(bench.bbr.state(), STARTUP, "round {round}");
        bench.round(Round {
            inflight: 200 * SIZE,
            ..Round::at(11)
        });
    }
    assert!(bench.bbr.model.full_pipe.is_now && bench.bbr.model.full_pipe.is_reached);
    assert_eq!(bench.bbr.state(), "drain");
}

/// Appendix "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss".
#[test]
fn app_limited_rounds_never_end_startup() {
    let mut bench = Bench::new();
    for _ in 0..60 {
        bench.round(Round {
            is_app_limited: true,
            ..Round::at(5)
        });
    }
    assert_eq!(bench.bbr.state(), STARTUP);
}

/// A flow limited by the peer's window sends each window at once and then pauses.
#[test]
fn more_in_flight_than_the_path_holds_ends_an_app_limited_startup() {
    let mut bench = Bench::new();
    for megabits in [2, 4, 8, 10] {
        bench.round(Round::at(megabits));
    }
    let first = Round {
        is_app_limited: true,
        tx_in_flight: SIZE,
        inflight: 200 * SIZE,
        ..Round::at(9)
    };
    let last = Round {
        tx_in_flight: Round::at(10).tx_in_flight * 5 / 4,
        rtt: RTT * 5 / 4,
        ..first
    };
    for round in 1..=3 {
        assert_eq!(bench.bbr.state(), STARTUP, "round {round}");
        // The end of the window met a queue in the middle of a round.
        bench.now += RTT / 4;
        bench.ack(last, 0);
        bench.round(first);
    }
    assert_eq!(bench.bbr.state(), "drain");
}

#[test]
fn more_in_flight_without_a_queue_does_not_end_startup() {
    let mut bench = Bench::new();
    bench.round(Round::at(10));
    let burst = Round {
        is_app_limited: true,
        tx_in_flight: Round::at(10).tx_in_flight * 2,
        ..Round::at(9)
    };
    for _ in 0..12 {
        bench.round(burst);
        assert_eq!(bench.bbr.state(), STARTUP);
    }
}

#[test]
fn more_in_flight_and_more_delivered_is_growth() {
    let mut bench = Bench::new();
    let mut round = Round::at(1);
    for _ in 0..12 {
        round = Round {
            is_app_limited: true,
            rate: round.rate.scaled(5, 4),
            tx_in_flight: round.tx_in_flight * 5 / 4,
            rtt: RTT * 3 / 2,
            ..round
        };
        bench.round(round);
        assert_eq!(bench.bbr.state(), STARTUP);
    }
}

/// Appendix "Exiting STARTUP on Loss When Application-Limited".
#[test]
fn a_lossy_round_ends_startup_even_when_app_limited() {
    let mut bench = Bench::new();
    let round = Round {
        is_app_limited: true,
        inflight: 200 * SIZE,
        ..Round::at(10)
    };
    bench.round(round);
    bench.lose(6, round.tx_in_flight);
    bench.round(Round {
        lost: 6 * SIZE,
        ..round
    });
    bench.round(Round {
        lost: 6 * SIZE,
        ..round
    });
    assert_eq!(bench.bbr.state(), "drain");
    assert!(bench.bbr.model.full_pipe.is_reached && bench.bbr.model.full_pipe.is_now);
    assert!(
        bench
            .bbr
            .model
            .bounds
            .long_term
            .is_some_and(|bound| bound >= round.tx_in_flight)
    );
}

#[test]
fn few_losses_do_not_end_startup() {
    let mut bench = Bench::new();
    for megabits in [2, 4, 8] {
        let round = Round {
            lost: 5 * SIZE,
            ..Round::at(megabits)
        };
        bench.round(round);
        bench.lose(5, round.tx_in_flight);
    }
    assert_eq!(bench.bbr.state(), STARTUP);
}

/// A gap of many packets is one event: a burst, perhaps of another flow.
#[test]
fn one_long_gap_does_not_end_startup() {
    let mut bench = Bench::new();
    let round = Round::at(10);
    bench.round(round);
    let sent = bench.now;
    let gap: Vec<_> = (100..130)
        .map(|number| crate::LostPacket {
            number,
            bytes: SIZE,
            sent,
            tx_in_flight: round.tx_in_flight,
            lost_since_sent: (number - 99) * SIZE,
            is_app_limited: false,
        })
        .collect();
    bench.report_lost(&gap, sent, false);
    for megabits in [15, 20] {
        bench.round(Round {
            lost: 30 * SIZE,
            ..Round::at(megabits)
        });
    }
    assert_eq!(bench.bbr.state(), STARTUP);
}

#[test]
fn marks_in_a_round_end_startup() {
    let mut bench = Bench::new();
    bench.round(Round::at(10));
    for _ in 0..6 {
        bench.mark();
    }
    bench.round(Round::at(20));
    bench.round(Round::at(40));
    assert_eq!(bench.bbr.state(), "drain");
}

#[test]
fn the_window_grows_by_acknowledged_bytes_and_the_rate_by_its_gain() {
    let mut bench = Bench::new();
    bench.round(Round::at(1));
    let window = bench.bbr.window();
    bench.round(Round::at(2));
    let acked = Round::at(2).rate.bytes_in(RTT);
    assert_eq!(bench.bbr.window(), window + acked);
    bench.round(Round::at(4));
    let expected = Round::at(4).rate.scaled(277 * 99, 10_000);
    assert_eq!(bench.pacing_rate(), expected);
    bench.round(Round::at(3));
    assert_eq!(
        bench.pacing_rate(),
        expected,
        "never slower before the pipe is full"
    );
}
