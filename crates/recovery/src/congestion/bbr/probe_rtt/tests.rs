use super::super::tests::harness::*;
use super::*;

/// A round with a queue, so that there is no lower round-trip time.
fn queued(megabits: u64) -> Round {
    Round {
        rtt: RTT * 5 / 4,
        ..Round::at(megabits)
    }
}

/// Runs rounds until ProbeRTT. Returns the time until then.
fn wait_for_probe_rtt(bench: &mut Bench, round: Round) -> Duration {
    let began = bench.now;
    while bench.bbr.state() != PROBE_RTT {
        bench.round(round);
        assert!(bench.now - began < Duration::from_secs(60), "no ProbeRTT");
    }
    bench.now - began
}

/// Appendix "Entering and Exiting PROBE_RTT".
#[test]
fn halves_bytes_in_flight_for_a_round_and_two_hundred_milliseconds() {
    let mut bench = Bench::cruising(20);
    let waited = wait_for_probe_rtt(&mut bench, queued(20));
    assert!((4400..=5200).contains(&waited.as_millis()), "{waited:?}");
    let bdp = Round::at(20).tx_in_flight;
    assert_eq!(bench.bbr.window(), bdp / 2);
    assert_eq!(bench.bbr.state(), "probe_rtt");
    // The time counts from when the flight is small.
    let low = Round {
        inflight: bdp / 2,
        ..Round::at(10)
    };
    bench.round(low);
    let began = bench.now;
    while bench.bbr.state() == "probe_rtt" {
        bench.round(low);
    }
    let lasted = bench.now - began;
    assert!((200..=260).contains(&lasted.as_millis()), "{lasted:?}");
    assert_eq!(bench.bbr.state(), CRUISE);
    assert!(bench.bbr.window() > bdp, "{} restored", bench.bbr.window());
    assert_eq!(
        bench.bbr.model.max_bw.get(),
        Round::at(20).rate,
        "low samples do not count"
    );
}

/// Appendix "Entering and Exiting PROBE_RTT During STARTUP".
#[test]
fn startup_continues_after_probe_rtt() {
    let mut bench = Bench::new();
    bench.round(Round::at(1));
    let slow = Round {
        is_app_limited: true,
        ..queued(2)
    };
    wait_for_probe_rtt(&mut bench, slow);
    let low = Round {
        inflight: SIZE,
        ..slow
    };
    for _ in 0..6 {
        bench.round(low);
    }
    assert_eq!(bench.bbr.state(), STARTUP);
}

#[test]
fn a_lower_round_trip_time_postpones_probe_rtt() {
    let mut bench = Bench::cruising(20);
    for _ in 0..4 {
        for _ in 0..60 {
            bench.round(queued(20));
            assert_ne!(bench.bbr.state(), "probe_rtt");
        }
        let lower = bench
            .bbr
            .model
            .min_rtt
            .get()
            .expect("the minimum RTT is known")
            - Duration::from_micros(10);
        bench.round(Round {
            rtt: lower,
            ..Round::at(20)
        });
    }
}

/// The draft's interval applies where it costs what the draft intends.
#[test]
fn short_paths_probe_every_five_seconds_without_a_queue_too() {
    let mut bench = Bench::cruising(20);
    let waited = wait_for_probe_rtt(&mut bench, Round::at(20));
    assert!(waited < Duration::from_millis(5200), "{waited:?}");
}

fn long(megabits: u64, rtt: Duration) -> Round {
    let inflight = Round::at(megabits).rate.bytes_in(rtt);
    Round {
        rtt,
        inflight,
        tx_in_flight: inflight,
        ..Round::at(megabits)
    }
}

#[test]
fn long_paths_without_a_queue_wait_fifty_round_trips() {
    let mut bench = Bench::new();
    let rtt = Duration::from_millis(400);
    let waited = wait_for_probe_rtt(&mut bench, long(20, rtt));
    assert!((19..=25).contains(&waited.as_secs()), "{waited:?}");
}

#[test]
fn long_paths_with_a_queue_wait_no_longer_than_others() {
    let mut bench = Bench::new();
    bench.round(long(20, Duration::from_millis(400)));
    let queued = long(20, Duration::from_millis(600));
    let waited = wait_for_probe_rtt(&mut bench, queued);
    assert!(waited <= Duration::from_secs(6), "{waited:?}");
}

/// On a long path a queue may empty and fill again before a round is over.
#[test]
fn one_packet_without_delay_shows_an_empty_queue_on_long_paths() {
    let mut bench = Bench::new();
    let empty = long(20, Duration::from_millis(400));
    let queued = long(20, Duration::from_millis(600));
    bench.round(empty);
    for _ in 0..3 {
        for _ in 0..7 {
            bench.round(queued);
            assert_ne!(bench.bbr.state(), "probe_rtt", "at {:?}", bench.now);
        }
        // In the middle of a round whose mean stays more than an eighth above the minimum.
        bench.now += Duration::from_millis(100);
        let near = empty.rtt + Duration::from_millis(10);
        bench.ack(Round { rtt: near, ..empty }, 0);
    }
    let waited = wait_for_probe_rtt(&mut bench, queued);
    assert!(waited <= Duration::from_secs(6), "{waited:?}");
}
