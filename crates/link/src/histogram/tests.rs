use proptest::prelude::*;

use super::*;

#[test]
fn empty_histogram_is_zero() {
    let empty = Histogram::new();
    assert_eq!(
        (empty.median(), empty.max(), empty.mean()),
        Default::default()
    );
}

#[test]
fn quantiles_are_within_three_percent() {
    let mut histogram = Histogram::new();
    for micros in 1..=10_000 {
        histogram.record(Duration::from_micros(micros));
    }
    for per_mille in [1, 10, 500, 900, 990, 999] {
        let exact = Duration::from_micros(u64::from(per_mille) * 10);
        let got = histogram.quantile(per_mille);
        let tolerated = exact + exact / 32;
        assert!((exact..=tolerated).contains(&got), "{per_mille}: {got:?}");
    }
    assert_eq!(histogram.quantile(1000), Duration::from_millis(10));
    assert_eq!(histogram.mean(), Duration::from_nanos(5_000_500));
    assert_eq!(histogram.count(), 10_000);
}

#[test]
fn added_histogram_counts_both() {
    let (mut a, mut b) = (Histogram::new(), Histogram::new());
    a.record(Duration::from_nanos(3));
    b.record(Duration::from_secs(3));
    a.add(&b);
    assert_eq!((a.count(), a.max()), (2, Duration::from_secs(3)));
    assert_eq!(a.median(), Duration::from_nanos(3));
}

proptest! {
    #[test]
    fn every_duration_is_in_a_bucket_at_most_a_32nd_too_high(nanos: u64) {
        let highest = highest(bucket(nanos));
        prop_assert!(highest >= nanos);
        prop_assert!(highest - nanos <= nanos / 32);
    }
}
