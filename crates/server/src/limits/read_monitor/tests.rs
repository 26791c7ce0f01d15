use super::*;

const SECOND: Duration = Duration::from_secs(1);

const RATE: ReadRate = ReadRate {
    bytes_per_second: 100,
    grace: Duration::from_secs(60),
};

fn watch(longest_pause: Option<Duration>, rate: Option<ReadRate>) -> (ReadMonitor, Instant) {
    let now = Instant::now();
    (
        ReadMonitor::new(longest_pause, rate, Sample::default(), now),
        now,
    )
}

/// Takes a sample every second until the client is disconnected, and returns the number of seconds.
fn endurance(limit: u64, client: impl Fn(u64) -> Sample) -> Option<u64> {
    let (mut monitor, began) = watch(Some(60 * SECOND), Some(RATE));
    (1..=limit).find(|second| monitor.on_sample(began + *second as u32 * SECOND, client(*second)))
}

/// Returns a sample of a client that has read `taken` of a waiting megabyte.
fn holding(taken: u64) -> Sample {
    Sample {
        taken,
        waiting: 1_000_000,
        is_blocked: true,
        ended: 0,
    }
}

#[test]
fn single_bytes_do_not_hold_a_response() {
    let drip = |every: u64| endurance(1000, |second| holding(second / every));
    assert_eq!(drip(50), Some(62), "two bytes earn nothing");
    assert_eq!(drip(1), Some(62));
    assert_eq!(endurance(1000, |_| holding(0)), Some(60), "no byte at all");
}

#[test]
fn clients_at_the_minimum_rate_are_not_disconnected() {
    assert_eq!(endurance(10_000, |second| holding(second * 100)), None);
    // At nine tenths of the rate, a tenth of the time counts.
    assert_eq!(endurance(10_000, |second| holding(second * 90)), Some(601));
    // Ten kilobytes arrive every fifty seconds.
    let pieces = |second: u64| holding(second / 50 * 10_000);
    assert_eq!(endurance(10_000, pieces), None);
}

#[test]
fn fast_reading_at_first_does_not_offset_slow_reading_later() {
    let given_up = endurance(1000, |second| holding(1_000_000_000 * second.min(10)));
    assert_eq!(given_up, Some(70));
}

/// The response is computed slowly, and each event waits for a round trip.
#[test]
fn events_that_are_read_at_once_do_not_count() {
    let events = |second: u64| Sample {
        taken: second * 10 - 10,
        waiting: 10,
        ..Sample::default()
    };
    assert_eq!(endurance(10_000, events), None);
    // The same events, each read a second later.
    let late = |second: u64| Sample {
        taken: (second * 10).saturating_sub(20),
        waiting: 20,
        ..Sample::default()
    };
    assert!(endurance(10_000, late).is_some());
}

#[test]
fn time_without_waiting_data_does_not_count() {
    // Data waits for five of seven seconds.
    let by_turns = |second: u64| match second % 7 {
        0 | 1 => Sample::default(),
        _ => holding(0),
    };
    assert_eq!(endurance(10_000, by_turns), None);
}

/// Browsers leave a paused video unread and continue with other requests.
#[test]
fn completed_requests_excuse_an_unread_response() {
    let paused = |second: u64| Sample {
        taken: second / 50,
        ended: second / 50,
        ..holding(0)
    };
    assert_eq!(endurance(10_000, paused), None);
}

#[test]
fn nothing_is_sampled_without_limits() {
    let (monitor, _) = watch(None, None);
    assert_eq!(monitor.pause(SECOND), None);
    let (mut monitor, now) = watch(None, Some(RATE));
    assert!(!monitor.on_sample(now + 59 * SECOND, holding(0)));
    let (mut monitor, now) = watch(Some(SECOND), None);
    assert!(!monitor.on_sample(now + SECOND / 2, holding(0)));
    assert!(monitor.on_sample(now + SECOND, holding(0)));
}

#[test]
fn connections_are_sampled_more_often_while_data_waits() {
    let (mut monitor, now) = watch(Some(80 * SECOND), Some(RATE));
    assert_eq!(monitor.pause(SECOND), Some(15 * SECOND));
    assert!(!monitor.on_sample(now, holding(0)));
    assert_eq!(monitor.pause(Duration::ZERO), Some(SECOND));
    assert_eq!(monitor.pause(SECOND), Some(3 * SECOND), "round trips");
    assert_eq!(
        monitor.pause(60 * SECOND),
        Some(Duration::from_millis(7500))
    );
}

#[test]
fn huge_numbers_do_not_overflow() {
    let rate = ReadRate {
        bytes_per_second: 0,
        grace: Duration::MAX,
    };
    let mut arrears = Arrears::new(rate);
    arrears.on_taken(u64::MAX, Duration::MAX);
    arrears.on_taken(0, Duration::MAX);
    arrears.on_taken(0, Duration::MAX);
    assert_eq!(arrears.remaining(), Duration::ZERO);
    let (monitor, _) = watch(None, Some(rate));
    assert!(monitor.pause(Duration::MAX / 4).is_some());
}
