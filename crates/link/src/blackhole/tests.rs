use std::time::Duration;

use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn blackhole_covers_its_start_but_not_its_end() {
    let hole = Blackhole {
        from: Duration::from_secs(5),
        lasts: Duration::from_secs(2),
        every: None,
    };
    let inside: Vec<u64> = [0, 4_999, 5_000, 6_999, 7_000, 12_500]
        .into_iter()
        .filter(|&millis| is_in_blackhole(&hole, at(millis)))
        .collect();
    assert_eq!(inside, [5_000, 6_999]);
}

#[test]
fn repeated_blackhole_starts_again() {
    let hole = Blackhole {
        from: Duration::from_secs(1),
        lasts: Duration::from_secs(1),
        every: Some(Duration::from_secs(10)),
    };
    let inside: Vec<u64> = (0..32)
        .filter(|&s| is_in_blackhole(&hole, at(s * 1000)))
        .collect();
    assert_eq!(inside, [1, 11, 21, 31]);
}
