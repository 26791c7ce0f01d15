use super::super::tests::harness::*;
use super::*;

/// §5.5.10.3: once per round, to what was delivered, but by at most three tenths.
#[test]
fn a_round_with_loss_lowers_the_short_term_bounds() {
    let mut bench = Bench::cruising(20);
    bench.round(Round::at(20));
    bench.lose(1, 80 * SIZE);
    assert_eq!(
        bench.bbr.model.bounds.short_term, None,
        "bounds fall at the end of the round"
    );
    bench.round(Round::at(19));
    let first = bench
        .bbr
        .model
        .bounds
        .short_term
        .expect("the loss lowers the bounds");
    assert_eq!(
        first.bw,
        Round::at(20).rate,
        "the rate delivered in the round"
    );
    bench.lose(30, 80 * SIZE);
    bench.round(Round::at(5));
    let second = bench
        .bbr
        .model
        .bounds
        .short_term
        .expect("the loss lowers the bounds");
    assert_eq!(second.bw, Round::at(19).rate);
    bench.lose(30, 80 * SIZE);
    bench.round(Round::at(5));
    let third = bench
        .bbr
        .model
        .bounds
        .short_term
        .expect("the loss lowers the bounds");
    assert_eq!(third.bw, second.bw.scaled(7, 10));
    assert_eq!(bench.bbr.model.bw, third.bw);
}

#[test]
fn a_round_without_loss_lowers_nothing() {
    let mut bench = Bench::cruising(20);
    bench.round(Round::at(20));
    bench.round(Round::at(4));
    assert_eq!(bench.bbr.model.bounds.short_term, None);
}

#[test]
fn a_mark_lowers_the_short_term_bounds_like_a_loss() {
    let mut bench = Bench::cruising(20);
    bench.round(Round::at(20));
    bench.mark();
    bench.round(Round::at(10));
    bench.round(Round::at(10));
    assert!(bench.bbr.model.bounds.short_term.is_some());
}

#[test]
fn loss_while_probing_changes_only_the_long_term_bound() {
    let mut bench = Bench::probing(20);
    bench.lose(1, 200 * SIZE);
    bench.round(Round::at(20));
    bench.round(Round::at(20));
    assert_eq!(bench.bbr.state(), UP, "one of two hundred is tolerable");
    assert_eq!(bench.bbr.model.bounds.short_term, None);
}

/// Returns a flow on a path that loses 3 % at any rate.
fn noisy() -> Bench {
    let mut bench = Bench::cruising(100);
    let round = Round {
        inflight: 300 * SIZE,
        ..Round::at(100)
    };
    for _ in 0..10 {
        bench.lose(16, round.tx_in_flight);
        bench.round(Round {
            lost: 16 * SIZE,
            ..round
        });
    }
    bench
}

#[test]
fn ambient_loss_without_a_queue_leaves_the_bounds() {
    let mut bench = noisy();
    bench.bbr.model.bounds.short_term = None;
    for _ in 0..10 {
        bench.lose(16, 520 * SIZE);
        bench.round(Round {
            inflight: 300 * SIZE,
            ..Round::at(100)
        });
    }
    assert_eq!(bench.bbr.model.bounds.short_term, None);
}

#[test]
fn loss_above_the_ambient_share_lowers_the_bounds() {
    let mut bench = noisy();
    bench.bbr.model.bounds.short_term = None;
    bench.lose(60, 520 * SIZE);
    bench.round(Round::at(100));
    bench.round(Round::at(100));
    assert!(bench.bbr.model.bounds.short_term.is_some());
}

#[test]
fn ambient_loss_with_a_queue_lowers_the_bounds() {
    let mut bench = noisy();
    let queued = Round {
        rtt: RTT * 3 / 2,
        inflight: 300 * SIZE,
        ..Round::at(100)
    };
    bench.round(queued);
    bench.bbr.model.bounds.short_term = None;
    for _ in 0..3 {
        bench.lose(16, 520 * SIZE);
        bench.round(queued);
    }
    assert!(bench.bbr.model.bounds.short_term.is_some());
}

#[test]
fn ambient_loss_does_not_end_a_probe_and_more_does() {
    let mut bench = noisy();
    let round = Round {
        inflight: 300 * SIZE,
        ..Round::at(100)
    };
    while bench.bbr.state() != UP {
        bench.lose(16, round.tx_in_flight);
        bench.round(round);
    }
    bench.lose(20, 520 * SIZE);
    assert_eq!(bench.bbr.state(), UP);
    bench.lose(80, 520 * SIZE);
    assert_eq!(bench.bbr.state(), DOWN);
}

/// §5.5.10.2, with a "packet" of 40 kB: losses exceed 2 % within it.
#[test]
fn the_threshold_is_found_within_a_burst() {
    let packet = LostPacket {
        number: 1,
        bytes: 40_000,
        sent: Time::ZERO,
        tx_in_flight: 140_000,
        lost_since_sent: 40_500,
        is_app_limited: false,
    };
    // (0.02 * 100 000 - 500) / 0.98
    assert_eq!(inflight_at_loss(&packet), 100_000 + 1530);
    let all_before = LostPacket {
        lost_since_sent: 60_000,
        ..packet
    };
    assert_eq!(inflight_at_loss(&all_before), 100_000);
}

/// RFC 9002 §7.6.2; §5.6.4.4 for the end of recovery.
#[test]
fn persistent_congestion_sets_the_minimum_window_until_recovery_ends() {
    let mut bench = Bench::cruising(20);
    bench.round(Round::at(20));
    let before = bench.bbr.window();
    let sent = bench.now;
    let packet = LostPacket {
        number: 7_000_000,
        bytes: SIZE,
        sent,
        tx_in_flight: 80 * SIZE,
        lost_since_sent: SIZE,
        is_app_limited: false,
    };
    bench.report_lost(&[packet], sent, true);
    assert_eq!(bench.bbr.window(), 2 * SIZE);
    bench.now += RTT;
    bench.round(Round::at(20));
    let after = bench.bbr.window();
    assert!(after > before / 2 && after <= before, "{after} of {before}");
}
