use super::super::tests::harness::*;

fn draining() -> Bench {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.round(Round {
            inflight: 200 * SIZE,
            ..Round::at(10)
        });
    }
    assert_eq!(bench.bbr.state(), "drain");
    bench
}

/// Appendix "Exiting DRAIN Based on Inflight".
#[test]
fn ends_when_the_flight_fits_the_path() {
    let mut bench = draining();
    let expected = Round::at(10).rate.scaled(50 * 99, 10_000);
    assert_eq!(bench.pacing_rate(), expected);
    let bdp = Round::at(10).tx_in_flight;
    bench.ack(
        Round {
            inflight: bdp + 1,
            ..Round::at(10)
        },
        0,
    );
    assert_eq!(bench.bbr.state(), "drain");
    bench.ack(
        Round {
            inflight: bdp,
            ..Round::at(10)
        },
        0,
    );
    assert!(
        bench.bbr.state().starts_with("probe_bw"),
        "{}",
        bench.bbr.state()
    );
}

/// Appendix "Exiting DRAIN Based on Time".
#[test]
fn ends_after_three_rounds_with_a_full_queue() {
    let mut bench = draining();
    let full = Round {
        inflight: 200 * SIZE,
        ..Round::at(10)
    };
    for round in 1..=3 {
        bench.round(full);
        assert_eq!(bench.bbr.state(), "drain", "round {round}");
    }
    bench.round(full);
    assert_eq!(bench.bbr.state(), DOWN);
}
