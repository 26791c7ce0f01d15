use proptest::prelude::*;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sampled(samples: &[(u64, u64)]) -> RttEstimator {
    let mut rtt = RttEstimator::default();
    for (latest, delay) in samples {
        rtt.on_sample(Time::ZERO, ms(*latest), ms(*delay), Some(ms(25)));
    }
    rtt
}

/// RFC 9002 §6.2.2.
#[test]
fn without_samples_the_rtt_is_333_ms() {
    let rtt = RttEstimator::default();
    assert_eq!(rtt.smoothed(), ms(333));
    assert_eq!(rtt.rttvar(), ms(333) / 2);
    assert!(!rtt.has_sample());
    assert_eq!(rtt.pto_base(), ms(999));
}

/// RFC 9002 §5.3.
#[test]
fn first_sample_replaces_the_initial_value() {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::from_nanos(7), ms(100), ms(20), None);
    assert_eq!(
        (rtt.latest(), rtt.smoothed(), rtt.min()),
        (ms(100), ms(100), ms(100))
    );
    assert_eq!(rtt.rttvar(), ms(50));
    assert_eq!(rtt.first_sample_time(), Some(Time::from_nanos(7)));
}

/// RFC 9002 appendix A.7: the deviation uses the previous mean.
#[test]
fn later_samples_are_averaged() {
    let rtt = sampled(&[(100, 0), (180, 0)]);
    assert_eq!(rtt.smoothed(), ms(110));
    assert_eq!(rtt.rttvar(), Duration::from_micros(57_500));
}

/// RFC 9002 §5.2.
#[test]
fn min_rtt_is_the_smallest_sample_with_its_ack_delay() {
    let rtt = sampled(&[(100, 0), (90, 20), (120, 0)]);
    assert_eq!(rtt.min(), ms(90));
}

#[test]
fn ack_delay_is_subtracted() {
    let rtt = sampled(&[(100, 0), (120, 20)]);
    assert_eq!(rtt.smoothed(), ms(100));
}

/// RFC 9002 §5.3.
#[test]
fn ack_delay_is_capped_at_max_ack_delay_once_confirmed() {
    let rtt = sampled(&[(100, 0), (180, 80)]);
    assert_eq!(rtt.smoothed(), (ms(100) * 7 + ms(180 - 25)) / 8);
}

#[test]
fn ack_delay_is_not_capped_before_confirmation() {
    let mut rtt = sampled(&[(100, 0)]);
    rtt.on_sample(Time::ZERO, ms(180), ms(80), None);
    assert_eq!(rtt.smoothed(), ms(100));
}

/// RFC 9002 §5.3.
#[test]
fn ack_delay_is_not_subtracted_below_min_rtt() {
    let rtt = sampled(&[(100, 0), (110, 20)]);
    assert_eq!(rtt.smoothed(), (ms(100) * 7 + ms(110)) / 8);
}

/// RFC 9002 §5.2.
#[test]
fn persistent_congestion_resets_the_minimum() {
    let mut rtt = sampled(&[(50, 0), (200, 0)]);
    rtt.on_persistent_congestion();
    assert_eq!(rtt.min(), ms(200));
}

/// RFC 9002 §6.2.1.
#[test]
fn pto_base_counts_at_least_the_granularity_of_variation() {
    let mut rtt = RttEstimator::default();
    for _ in 0..200 {
        rtt.on_sample(Time::ZERO, ms(10), Duration::ZERO, None);
    }
    assert!(rtt.rttvar() < Duration::from_micros(1));
    assert_eq!(rtt.pto_base(), rtt.smoothed() + TIMER_GRANULARITY);
}

#[test]
fn reset_restores_the_initial_state() {
    let mut rtt = sampled(&[(50, 0), (200, 0)]);
    rtt.reset(INITIAL_RTT);
    assert_eq!(rtt, RttEstimator::default());
}

#[test]
fn ack_delay_of_2_to_the_62_microseconds_does_not_overflow() {
    let delay = Duration::from_micros(1 << 62).saturating_mul(1 << 20);
    let mut rtt = sampled(&[(100, 0)]);
    rtt.on_sample(Time::ZERO, ms(120), delay, None);
    assert_eq!(rtt.smoothed(), (ms(100) * 7 + ms(120)) / 8);
}

#[test]
fn rtt_of_weeks_and_more_does_not_overflow() {
    let mut rtt = RttEstimator::default();
    for sample in [
        ms(14 * 7 * 24 * 3600 * 1000),
        Duration::MAX,
        Duration::ZERO,
        Duration::MAX,
    ] {
        rtt.on_sample(Time::MAX, sample, Duration::MAX, Some(Duration::MAX));
        assert!(rtt.pto_base() < MAX_SAMPLE * 4);
        assert!(rtt.latest() >= MIN_SAMPLE);
    }
}

#[test]
fn samples_are_bounded_to_a_minute() {
    let mut rtt = RttEstimator::default();
    for _ in 0..20 {
        rtt.on_sample(Time::ZERO, ms(3_600_000), Duration::ZERO, None);
    }
    assert_eq!(rtt.latest(), ms(60_000));
    assert_eq!(rtt.smoothed(), ms(60_000));
    assert_eq!(rtt.min(), ms(60_000));
}

proptest! {
    #[test]
    fn estimates_stay_within_the_samples(
        samples in prop::collection::vec((1u64..=10_000_000, 0u64..=u64::MAX, any::<bool>()), 1..50)
    ) {
        let mut rtt = RttEstimator::default();
        for (latest, delay, confirmed) in &samples {
            let max = confirmed.then_some(ms(25));
            rtt.on_sample(
                Time::ZERO, Duration::from_nanos(*latest), Duration::from_nanos(*delay), max);
        }
        let smallest = samples.iter().map(|sample| sample.0).min().unwrap();
        let largest = samples.iter().map(|sample| sample.0).max().unwrap();
        prop_assert_eq!(rtt.min(), Duration::from_nanos(smallest));
        // Rounding down may cost a nanosecond per sample.
        let slack = samples.len() as u64;
        prop_assert!(rtt.smoothed() <= Duration::from_nanos(largest));
        prop_assert!(rtt.smoothed() + Duration::from_nanos(slack) >= rtt.min());
        prop_assert!(rtt.rttvar() <= Duration::from_nanos(largest));
    }
}
