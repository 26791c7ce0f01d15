use std::time::Duration;

use courser_base::Rate;

use super::super::bounds::ShortTerm;
use super::super::tests::harness::*;
use super::wait::MIN_PROBE_WAIT;
use super::*;

/// Appendix "Exiting PROBE_DOWN on Inflight".
#[test]
fn decelerates_until_there_is_headroom() {
    let mut bench = Bench::probing(20);
    bench.bbr.model.bounds.long_term = Some(100 * SIZE);
    bench.bbr.start_probe_bw_down(bench.now);
    bench.round(Round {
        inflight: 86 * SIZE,
        tx_in_flight: 50 * SIZE,
        ..Round::at(20)
    });
    assert_eq!(bench.bbr.state(), DOWN);
    assert_eq!(
        bench.pacing_rate(),
        Round::at(20).rate.scaled(90 * 99, 10_000)
    );
    bench.round(Round {
        inflight: 85 * SIZE,
        tx_in_flight: 50 * SIZE,
        ..Round::at(20)
    });
    assert_eq!(bench.bbr.state(), CRUISE);
    assert_eq!(bench.pacing_rate(), Round::at(20).rate.scaled(99, 100));
}

/// Appendix "Exiting PROBE_DOWN After Max Time".
#[test]
fn probes_again_although_the_queue_did_not_drain() {
    let mut bench = Bench::probing(20);
    bench.bbr.start_probe_bw_down(bench.now);
    let began = bench.now;
    let full = Round {
        inflight: 200 * SIZE,
        ..Round::at(20)
    };
    while bench.bbr.state() == DOWN {
        bench.round(full);
    }
    assert_eq!(bench.bbr.state(), REFILL);
    let waited = bench.now - began;
    let longest = MIN_PROBE_WAIT + Duration::from_secs(1) + RTT;
    assert!((MIN_PROBE_WAIT..longest).contains(&waited), "{waited:?}");
}

/// §5.3.3.8: after as many rounds as Reno needs to recover from a loss.
#[test]
fn small_windows_probe_as_often_as_reno() {
    for seed in 0..8 {
        // 50 ms x 2.4 Mbit/s are 12 datagrams.
        let mut bench = Bench::cruising(2);
        bench.bbr.random = Random::new(seed);
        let round = Round {
            inflight: 5 * SIZE,
            ..Round::at(2)
        };
        bench.bbr.start_probe_bw_down(bench.now);
        let rounds = bench.until(REFILL, round);
        assert!((9..=10).contains(&rounds), "{rounds} rounds, seed {seed}");
    }
}

/// Returns the time until the next probe, after one that had a loss with `packets` in flight.
/// ProbeRTT is postponed.
fn wait_after_loss(packets: u64, rtt: Duration) -> Duration {
    let mut bench = Bench::probing(20);
    bench.lose(packets / 10, packets * SIZE);
    let start = bench.now;
    while bench.bbr.state() != REFILL {
        bench.bbr.model.min_rtt.on_probed(bench.now);
        bench.round(Round {
            rtt,
            inflight: 50 * SIZE,
            tx_in_flight: 50 * SIZE,
            ..Round::at(20)
        });
    }
    bench.now - start
}

/// RFC 9438 §4.2: K is 5.3 s for 200 packets and 3.9 s for 80, plus up to a second at random.
#[test]
fn a_full_path_is_probed_when_cubic_would_have_filled_it() {
    let second = Duration::from_secs(1);
    for (packets, k) in [(80, 3915), (200, 5313)] {
        let wait = wait_after_loss(packets, RTT * 3 / 2);
        let k = Duration::from_millis(k);
        // The bound is a packet below the flight, because a loss of 2 % is tolerable.
        let least = k - Duration::from_millis(20);
        assert!((least..k + second + 2 * RTT).contains(&wait), "{wait:?}");
    }
}

/// The flows that filled the path may have ended.
#[test]
fn a_path_without_a_queue_is_probed_after_the_usual_wait() {
    let wait = wait_after_loss(200, RTT);
    assert!(wait < Duration::from_millis(3200), "{wait:?}");
}

#[test]
fn waits_are_random_and_bounded() {
    let mut random = Random::new(5);
    let waits: Vec<Duration> = (0..50)
        .map(|_| Wait::pick(Time::ZERO, &mut random).length)
        .collect();
    assert!(
        waits
            .iter()
            .all(|wait| (2000..3000).contains(&wait.as_millis()))
    );
    let spread = waits
        .iter()
        .max()
        .expect("there are fifty waits")
        .saturating_sub(*waits.iter().min().expect("there are fifty waits"));
    assert!(spread > Duration::from_millis(500), "{spread:?}");
}

#[test]
fn refill_resets_the_short_term_bounds_and_lasts_a_round() {
    let mut bench = Bench::cruising(20);
    bench.bbr.model.bounds.short_term = Some(ShortTerm {
        bw: Rate::from_bytes_per_second(1_000_000),
        inflight: 10 * SIZE,
    });
    bench.until(REFILL, Round::at(20));
    assert_eq!(bench.bbr.model.bounds.short_term, None);
    assert_eq!(bench.pacing_rate(), Round::at(20).rate.scaled(99, 100));
    let prior = bench.delivered - 1;
    bench.ack(Round::at(20), prior);
    assert_eq!(bench.bbr.state(), REFILL, "the round has not ended");
    bench.round(Round::at(20));
    assert_eq!(bench.bbr.state(), UP);
    assert_eq!(
        bench.pacing_rate(),
        Round::at(20).rate.scaled(125 * 99, 10_000)
    );
}

/// Appendix "Exiting PROBE_UP on Bandwidth Plateau".
#[test]
fn probe_ends_when_the_rate_stops_growing() {
    let mut bench = Bench::probing(20);
    let up = Round {
        tx_in_flight: 130 * SIZE,
        ..Round::at(20)
    };
    assert_eq!(bench.until(DOWN, up), 3);
    assert!(!bench.bbr.feedback.was_too_high);
}

#[test]
fn probe_continues_while_the_rate_grows() {
    let mut bench = Bench::probing(20);
    for megabits in [25, 32, 40, 50, 63, 79] {
        bench.round(Round::at(megabits));
        assert_eq!(bench.bbr.state(), UP, "{megabits} Mbit/s");
    }
    assert_eq!(bench.bbr.model.max_bw.get(), Round::at(79).rate);
}

/// Appendix "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss".
#[test]
fn app_limited_rounds_do_not_end_a_probe() {
    let mut bench = Bench::probing(20);
    for _ in 0..30 {
        bench.round(Round {
            is_app_limited: true,
            ..Round::at(20)
        });
    }
    assert_eq!(bench.bbr.state(), UP);
}

/// Appendix "Handling Loss During PROBE_UP After inflight_longterm is Set" and §5.5.10.2.
#[test]
fn loss_ends_a_probe_and_bounds_bytes_in_flight() {
    let mut bench = Bench::probing(20);
    bench.lose(5, 120 * SIZE);
    assert_eq!(bench.bbr.state(), DOWN);
    assert!(bench.bbr.feedback.was_too_high);
    // 2 % of 119 packets is 2.38: the third one exceeded it.
    let bound = bench
        .bbr
        .model
        .bounds
        .long_term
        .expect("the long-term bound is set");
    assert!((119 * SIZE..120 * SIZE).contains(&bound), "{bound}");
}

#[test]
fn the_bound_never_falls_below_seven_tenths_of_the_target() {
    let mut bench = Bench::probing(20);
    bench.lose(5, 40 * SIZE);
    let target = Round::at(20).tx_in_flight;
    assert_eq!(bench.bbr.model.bounds.long_term, Some(target * 7 / 10));
}

/// Appendix "Exiting PROBE_UP on Loss When Application-Limited".
#[test]
fn app_limited_loss_ends_the_probe_and_leaves_the_bound() {
    let mut bench = Bench::probing(20);
    let sent = bench.now.saturating_sub(RTT / 2);
    let packet = crate::LostPacket {
        number: 1_000_000,
        bytes: SIZE,
        sent,
        tx_in_flight: 20 * SIZE,
        lost_since_sent: SIZE,
        is_app_limited: true,
    };
    bench.report_lost(&[packet], sent, false);
    assert_eq!(bench.bbr.state(), DOWN);
    assert_eq!(bench.bbr.model.bounds.long_term, None);
}

/// §5.3.3.6: the next probe ends at the bound, and the one after it stays there.
#[test]
fn a_probe_after_a_lossy_one_is_cautious() {
    let mut bench = Bench::probing(20);
    bench.lose(5, 120 * SIZE);
    let bound = bench
        .bbr
        .model
        .bounds
        .long_term
        .expect("the long-term bound is set");
    let low = Round {
        inflight: 50 * SIZE,
        tx_in_flight: 50 * SIZE,
        ..Round::at(20)
    };
    bench.until(REFILL, low);
    bench.until(UP, low);
    // The flight had reached the bound before the acknowledgement and is below it afterwards.
    let high = Round {
        inflight: bound - Round::at(20).rate.bytes_in(RTT),
        ..low
    };
    bench.round(high);
    assert_eq!(bench.bbr.state(), DOWN);
    assert!(bench.bbr.feedback.was_precautionary);
    // All its packets were acknowledged without loss, so the next probe follows at once.
    bench.round(low);
    assert_eq!(bench.bbr.state(), REFILL);
    bench.until(UP, low);
    bench.round(high);
    assert_eq!(bench.bbr.state(), UP);
}

/// Returns the bound in datagrams before and after each of four rounds that it limits.
fn rise_of_the_bound(round: impl Fn(u64) -> Round) -> Vec<u64> {
    let mut bench = Bench::probing(20);
    bench.bbr.model.bounds.long_term = Some(bench.bbr.control.cwnd);
    let mut before = bench.bbr.control.cwnd;
    let mut bounds = vec![before / SIZE];
    for _ in 0..4 {
        bench.bbr.control.cwnd = before;
        bench
            .bbr
            .on_sent(bench.now, SIZE, 0, bench.bbr.control.cwnd);
        bench.round(round(before));
        before = bench
            .bbr
            .model
            .bounds
            .long_term
            .expect("the long-term bound is set");
        bounds.push(before / SIZE);
    }
    bounds
}

/// §5.3.3.5: 1, 2, 4, 8, ... datagrams per round.
#[test]
fn the_bound_is_raised_faster_each_round() {
    let bounds = rise_of_the_bound(|window| {
        let rate = Round::at(20).rate;
        let rtt = rate.time_for(window) + Duration::from_micros(1);
        Round {
            rtt,
            ..Round::at(20)
        }
    });
    let growth: Vec<u64> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(growth, [1, 2, 4, 8]);
}

/// The rate rises in proportion without a queue, so the path is another one.
#[test]
fn the_bound_rises_with_the_rate_on_a_path_that_has_grown() {
    let bounds = rise_of_the_bound(|window| Round {
        rate: Rate::from_bytes_in(window, RTT),
        ..Round::at(20)
    });
    assert_eq!(bounds[1], bounds[0] + 1, "it is not known yet");
    for pair in bounds[1..].windows(2) {
        let percent = pair[1] * 100 / pair[0];
        assert!((120..=130).contains(&percent), "{bounds:?}");
    }
}

/// Each acknowledgement raises the bound, which keeps the rate from growing by a quarter in a
/// round.
#[test]
fn a_probe_continues_while_each_acknowledgement_raises_the_bound() {
    let mut bench = Bench::probing(20);
    let mut window = bench.bbr.control.cwnd;
    bench.bbr.model.bounds.long_term = Some(window);
    for round in 0..8 {
        bench.bbr.control.cwnd = window;
        bench.bbr.on_sent(bench.now, SIZE, 0, window);
        bench.round(Round {
            rate: Rate::from_bytes_in(window, RTT),
            ..Round::at(20)
        });
        assert_eq!(bench.bbr.state(), UP, "round {round}");
        window = bench
            .bbr
            .model
            .bounds
            .long_term
            .expect("the long-term bound is set");
    }
}

/// Appendix "Handling Application-Limited Sending During PROBE_REFILL".
#[test]
fn app_limited_refill_leaves_the_bandwidth_unchanged() {
    let mut bench = Bench::cruising(20);
    bench.until(REFILL, Round::at(20));
    bench.round(Round {
        is_app_limited: true,
        ..Round::at(2)
    });
    assert_eq!(bench.bbr.state(), UP);
    assert_eq!(bench.bbr.model.max_bw.get(), Round::at(20).rate);
}

/// §5.5.6: the maximum of two cycles ago has expired.
#[test]
fn bandwidth_is_remembered_for_two_cycles() {
    let mut bench = Bench::cruising(20);
    let slow = Round {
        inflight: 40 * SIZE,
        ..Round::at(10)
    };
    for cycle in 0..3 {
        bench.bbr.model.min_rtt.on_probed(bench.now);
        bench.until(REFILL, slow);
        if cycle < 2 {
            assert_eq!(
                bench.bbr.model.max_bw.get(),
                Round::at(20).rate,
                "cycle {cycle}"
            );
        }
        bench.until(DOWN, slow);
    }
    bench.round(slow);
    assert_eq!(bench.bbr.model.max_bw.get(), Round::at(10).rate);
}

#[test]
fn a_mark_ends_a_probe() {
    let mut bench = Bench::probing(20);
    bench.mark();
    bench.round(Round {
        ce: 1,
        tx_in_flight: 110 * SIZE,
        ..Round::at(20)
    });
    assert_eq!(bench.bbr.state(), DOWN);
    assert_eq!(bench.bbr.model.bounds.long_term, Some(110 * SIZE));
}
