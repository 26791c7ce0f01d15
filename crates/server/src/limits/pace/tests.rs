use super::*;

const RATE: BodyRate = BodyRate {
    bytes_per_second: 100,
    grace: Duration::from_secs(5),
};

/// Delivers a number of bytes every `every` milliseconds. Returns the seconds after which the body is too slow.
fn endurance(every: u64, limit: u64) -> Option<u64> {
    let (mut pace, began) = (Pace::new(RequiredPace::Rate(RATE)), Instant::now());
    let mut now = began;
    while now - began < Duration::from_secs(limit) {
        let due = pace.on_waiting(now);
        now += Duration::from_millis(every);
        if due <= now {
            return Some((due - began).as_secs());
        }
        pace.on_received(now, 1);
    }
    None
}

#[test]
fn slow_bodies_are_allowed_the_grace_period_and_time_for_their_bytes() {
    assert_eq!(endurance(29_000, 100), Some(5), "nothing comes in time");
    // Ten bytes per second extend the time by a tenth.
    assert_eq!(endurance(100, 100), Some(5));
    // 90 bytes per second extend it by nine tenths.
    assert_eq!(endurance(11, 1000), Some(54));
    assert_eq!(endurance(10, 10_000), None, "always fast enough");
}

/// Time in which the service is busy or does not read is not the client's fault.
#[test]
fn time_without_a_waiting_reader_is_not_counted() {
    let (mut pace, mut now) = (Pace::new(RequiredPace::Rate(RATE)), Instant::now());
    for _ in 0..100 {
        now += Duration::from_secs(60);
        assert!(pace.on_waiting(now) > now);
        now += Duration::from_millis(10);
        assert!(pace.on_waiting(now) > now, "still the same wait");
        pace.on_received(now, 1);
    }
    let slow = pace.too_slow(now);
    assert_eq!((slow.received, slow.waited.as_millis()), (100, 1000));
}

/// The reader polled once and then stopped; bytes may have arrived at any time since.
#[test]
fn time_of_a_busy_service_is_not_counted() {
    let (mut pace, mut now) = (Pace::new(RequiredPace::Rate(RATE)), Instant::now());
    let due = pace.on_waiting(now);
    now = due + Duration::from_secs(60);
    pace.on_received(now, 1);
    assert_eq!(pace.on_waiting(now) - now, Duration::from_millis(5010));
}

#[test]
fn huge_bodies_and_settings_do_not_overflow() {
    let rate = BodyRate {
        bytes_per_second: 0,
        grace: Duration::MAX,
    };
    let (mut pace, now) = (Pace::new(RequiredPace::Rate(rate)), Instant::now());
    pace.on_received(now, u64::MAX);
    pace.on_received(now, u64::MAX);
    assert_eq!(pace.on_waiting(now) - now, 2 * LONGEST);
}

/// Limit K360: a stream of gRPC may be slow for any time, but not silent.
#[test]
fn silence_is_limited_between_frames_only() {
    let limit = Duration::from_secs(100);
    let (mut pace, mut now) = (Pace::new(RequiredPace::Silence(limit)), Instant::now());
    for _ in 0..1000 {
        assert_eq!(pace.on_waiting(now) - now, limit);
        now += Duration::from_secs(99);
        pace.on_received(now, 1);
    }
    let due = pace.on_waiting(now);
    assert_eq!(due - now, limit);
    let error = pace.too_slow(due);
    assert_eq!(
        error.to_string(),
        "request body silent for 100s after 1000 bytes"
    );
}
