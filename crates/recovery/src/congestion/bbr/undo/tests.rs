use super::super::tests::harness::*;
use super::*;

/// Appendix "Handling Spurious Fast Recovery".
#[test]
fn a_probe_is_repeated_after_spurious_losses() {
    let mut bench = Bench::probing(20);
    bench.lose(5, 120 * SIZE);
    assert_eq!(bench.bbr.state(), DOWN);
    assert!(bench.bbr.model.bounds.long_term.is_some());
    bench.acknowledge_lost(4);
    assert_eq!(bench.bbr.state(), DOWN, "one packet is still lost");
    bench.acknowledge_lost(0);
    bench.bbr.on_spurious_loss(&SpuriousLoss {
        now: bench.now,
        bytes: SIZE,
        sent: bench.now,
        lost_at: bench.now,
    });
    assert_eq!(bench.bbr.state(), REFILL);
    assert_eq!(bench.bbr.model.bounds.long_term, None);
}

#[test]
fn startup_continues_after_spurious_losses() {
    let mut bench = Bench::new();
    let round = Round::at(10);
    bench.round(round);
    bench.lose(8, round.tx_in_flight);
    let lossy = Round {
        lost: 8 * SIZE,
        inflight: 300 * SIZE,
        ..Round::at(20)
    };
    let lost_at = bench.now;
    bench.round(lossy);
    bench.round(lossy);
    assert_eq!(bench.bbr.state(), "drain");
    for _ in 0..8 {
        bench.bbr.on_spurious_loss(&SpuriousLoss {
            now: bench.now,
            bytes: SIZE,
            sent: lost_at,
            lost_at,
        });
    }
    assert_eq!(bench.bbr.state(), STARTUP);
    assert!(!bench.bbr.model.full_pipe.is_reached);
    assert_eq!(bench.bbr.model.bounds.long_term, None);
}

#[test]
fn short_term_bounds_are_raised_again() {
    let mut bench = Bench::cruising(20);
    bench.round(Round::at(20));
    let window = bench.bbr.window();
    bench.lose(2, 80 * SIZE);
    let lost_at = bench.now;
    bench.round(Round::at(14));
    bench.round(Round::at(14));
    assert!(bench.bbr.model.bounds.short_term.is_some());
    for _ in 0..2 {
        bench.bbr.on_spurious_loss(&SpuriousLoss {
            now: bench.now,
            bytes: SIZE,
            sent: lost_at,
            lost_at,
        });
    }
    assert_eq!(bench.bbr.model.bounds.short_term, None);
    assert!(bench.bbr.window() >= window);
}

#[test]
fn acknowledging_earlier_losses_does_not_undo() {
    let mut bench = Bench::probing(20);
    let before = bench.now.saturating_sub(RTT);
    bench.lose(5, 120 * SIZE);
    for _ in 0..9 {
        bench.bbr.on_spurious_loss(&SpuriousLoss {
            now: bench.now,
            bytes: SIZE,
            sent: before,
            lost_at: before,
        });
    }
    assert_eq!(bench.bbr.state(), DOWN);
}
