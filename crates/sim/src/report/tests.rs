use std::time::Duration;

use courser_base::Time;

use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn full_series_is_thinned_evenly() {
    let mut series = Series::new(100);
    for step in 0..1000 {
        series.push(at(step), step);
    }
    let points = series.points();
    assert!((50..=100).contains(&points.len()), "{}", points.len());
    let gaps: Vec<u64> = points
        .windows(2)
        .map(|pair| pair[1].value - pair[0].value)
        .collect();
    assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
    assert!(points.last().expect("the series has points").value >= 980);
}

#[test]
fn percentile_counts_from_a_time() {
    let mut series = Series::default();
    for step in 0..=100 {
        series.push(at(step), step);
    }
    assert_eq!(series.percentile(Time::ZERO, 50), Some(50));
    assert_eq!(series.percentile(at(50), 50), Some(75));
    assert_eq!(series.percentile(at(50), 100), Some(100));
    assert_eq!(series.percentile(at(101), 50), None);
}

#[test]
fn merged_buckets_keep_the_sum() {
    let mut buckets = Buckets::new(Duration::from_millis(1), 10);
    for step in 0..100 {
        buckets.add(at(step), 3);
    }
    assert!(buckets.sums().len() <= 10);
    assert_eq!(buckets.total(), 300);
    assert_eq!(buckets.width(), Duration::from_millis(16));
}

#[test]
fn buckets_cut_at_the_ends_of_a_window() {
    let mut buckets = Buckets::new(Duration::from_millis(10), 100);
    buckets.add(at(5), 100);
    buckets.add(at(15), 100);
    assert_eq!(buckets.between(at(5), at(15)), 100);
    assert_eq!(buckets.between(Time::ZERO, at(20)), 200);
    assert_eq!(buckets.between(at(20), at(90)), 0);
}

#[test]
fn rates_are_per_second() {
    let mut buckets = Buckets::new(Duration::from_millis(10), 100);
    buckets.add(at(12), 50);
    let rates = buckets.rates();
    assert_eq!(rates[0].value, 0);
    assert_eq!(
        rates[1],
        Point {
            at: at(15),
            value: 5000
        }
    );
}

#[test]
fn jain_is_one_for_equal_shares_and_half_if_one_of_two_gets_all() {
    assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
    assert_eq!(jain(&[1.0, 0.0]), Some(0.5));
    assert_eq!(jain(&[0.0, 0.0]), None);
}
