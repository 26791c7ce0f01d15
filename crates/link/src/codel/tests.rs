use super::*;

const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);

fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Returns the times in milliseconds at which a queue with this standing delay is signalled.
fn signals(codel: &mut CoDel, from: u64, to: u64, sojourn: Duration) -> Vec<u64> {
    (from..to)
        .filter(|&now| codel.decide(millis(now), sojourn, false) == CoDelDecision::Signal)
        .collect()
}

#[test]
fn standing_queue_is_signalled_faster_and_faster() {
    let mut codel = CoDel::new(TARGET, INTERVAL);
    let times = signals(&mut codel, 0, 600, Duration::from_millis(20));
    // After one interval; then 100 / sqrt(1), 100 / sqrt(2), ... later.
    assert_eq!(times, [100, 200, 271, 329, 379, 424, 464, 502, 538, 571]);
}

#[test]
fn short_bursts_below_an_interval_pass() {
    let mut codel = CoDel::new(TARGET, INTERVAL);
    for round in 0..50 {
        let from = round * 100;
        assert_eq!(
            signals(&mut codel, from, from + 99, Duration::from_millis(50)),
            [0_u64; 0]
        );
        assert_eq!(
            signals(&mut codel, from + 99, from + 100, Duration::from_millis(4)),
            [0_u64; 0]
        );
    }
}

#[test]
fn queue_of_one_packet_is_not_signalled() {
    let mut codel = CoDel::new(TARGET, INTERVAL);
    let long = Duration::from_secs(1);
    let signalled =
        (0..1_000).any(|now| codel.decide(millis(now), long, true) == CoDelDecision::Signal);
    assert!(!signalled);
}

#[test]
fn dropping_resumes_at_its_previous_rate_after_a_short_pause() {
    let mut codel = CoDel::new(TARGET, INTERVAL);
    let high = Duration::from_millis(20);
    let before = signals(&mut codel, 0, 571, high).len();
    assert_eq!(before, 9);
    codel.on_empty();
    let again = signals(&mut codel, 600, 900, high);
    // It had counted from 1 to 9, so it resumes at 8 drops, 100 / sqrt(8) = 35 ms apart.
    assert_eq!(again[..3], [700, 736, 769]);
    codel.on_empty();
    let much_later = signals(&mut codel, 10_000, 10_210, high);
    assert_eq!(much_later, [10_100, 10_200]);
}

#[test]
fn gaps_follow_the_square_root_to_the_nanosecond() {
    assert_eq!(gap(INTERVAL, 1), INTERVAL);
    assert_eq!(gap(INTERVAL, 4), INTERVAL / 2);
    assert_eq!(gap(INTERVAL, 2), Duration::from_nanos(70_710_678));
    assert_eq!(gap(INTERVAL, 0), INTERVAL);
}
