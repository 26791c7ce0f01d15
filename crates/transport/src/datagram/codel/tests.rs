use super::*;

const TARGET: Duration = Duration::from_millis(5);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Returns the times in milliseconds at which one datagram a millisecond is dropped, with a delay of `waited`.
fn drops(codel: &mut Codel, from: u64, millis: u64, waited: Duration) -> Vec<u64> {
    (from..from + millis)
        .filter(|now| codel.drops(at(*now), waited, 10_000))
        .collect()
}

#[test]
fn short_delay_drops_nothing() {
    let mut codel = Codel::new(TARGET);
    let waited = Duration::from_micros(4999);
    assert!(drops(&mut codel, 0, 10_000, waited).is_empty());
}

#[test]
fn burst_of_less_than_an_interval_loses_nothing() {
    let mut codel = Codel::new(TARGET);
    for burst in 0..10 {
        let begin = burst * 100;
        assert!(drops(&mut codel, begin, 99, Duration::from_millis(80)).is_empty());
        assert!(!codel.drops(at(begin + 99), Duration::ZERO, 10_000));
    }
}

#[test]
fn lasting_delay_drops_faster_and_faster() {
    let mut codel = Codel::new(TARGET);
    let found = drops(&mut codel, 0, 700, TARGET);
    // 100 ms, then 100 / √1, 100 / √2, 100 / √3 and so on.
    let expected = [
        100, 200, 271, 329, 379, 424, 464, 502, 538, 571, 603, 633, 662, 689,
    ];
    assert_eq!(found, expected);
    // It ends with the delay.
    assert!(!codel.drops(at(700), Duration::ZERO, 10_000));
    assert!(drops(&mut codel, 701, 99, TARGET).is_empty());
}

#[test]
fn delay_that_returns_soon_is_met_with_the_former_pace() {
    let mut codel = Codel::new(TARGET);
    let first = drops(&mut codel, 0, 1000, TARGET);
    assert!(!codel.drops(at(1000), Duration::ZERO, 10_000));
    let again = drops(&mut codel, 1001, 1000, TARGET);
    assert!(again.len() > first.len() * 3 / 2, "{first:?} {again:?}");
    // After a long time it begins slowly.
    assert!(!codel.drops(at(2001), Duration::ZERO, 10_000));
    let later = drops(&mut codel, 10_000, 1000, TARGET);
    assert_eq!(later.len(), first.len());
}

#[test]
fn last_datagram_is_never_dropped() {
    let mut codel = Codel::new(TARGET);
    let behind = FULL_DATAGRAM - 1;
    assert!((0..10_000).all(|now| !codel.drops(at(now), Duration::from_secs(1), behind)));
}
