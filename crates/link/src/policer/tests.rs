use courser_base::Rate;

use super::*;

fn bucket(rate: u64, burst: u64) -> Bucket {
    Bucket::new(Policer {
        rate: Rate::from_bytes_per_second(rate),
        burst,
    })
}

#[test]
fn policer_admits_its_burst_and_then_only_the_rate() {
    let mut bucket = bucket(1_000_000, 10_000);
    let at_once = (0..20).filter(|_| bucket.admits(Time::ZERO, 1_000)).count();
    assert_eq!(at_once, 10);
    // A packet of 1000 bytes each 100 us is ten times the rate.
    let admitted = (1..=100_000_u64)
        .filter(|n| bucket.admits(Time::from_nanos(n * 100_000), 1_000))
        .count();
    assert_eq!(admitted, 10_000);
}

#[test]
fn refills_lose_no_tokens_by_rounding() {
    // A third of a byte per nanosecond cannot be counted in whole bytes.
    let mut bucket = bucket(333_333_333, 1_000);
    assert!(bucket.admits(Time::ZERO, 1_000));
    let mut passed = 0;
    for now in 1..=3_000_u64 {
        passed += u64::from(bucket.admits(Time::from_nanos(now), 1));
    }
    assert_eq!(passed, 999);
}

#[test]
fn bucket_holds_no_more_than_its_burst() {
    let mut bucket = bucket(1_000, 500);
    let late = Time::from_nanos(u64::MAX / 2);
    assert!(bucket.admits(late, 500));
    assert!(!bucket.admits(late, 1));
    assert!(
        !bucket.admits(Time::ZERO, 1),
        "an earlier time counts as the latest"
    );
}
