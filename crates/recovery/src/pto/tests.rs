use courser_base::Time;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn rtt() -> RttEstimator {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO, None);
    rtt
}

/// RFC 9002 §6.2.1.
#[test]
fn period_is_smoothed_plus_four_variations_plus_ack_delay() {
    assert_eq!(Pto::period(&rtt(), ms(25), 0), ms(100 + 4 * 50 + 25));
    assert_eq!(Pto::period(&rtt(), Duration::ZERO, 0), ms(300));
}

/// RFC 9002 §6.2.1.
#[test]
fn period_is_never_below_the_granularity() {
    let mut rtt = RttEstimator::default();
    for _ in 0..100 {
        rtt.on_sample(Time::ZERO, Duration::from_nanos(1), Duration::ZERO, None);
    }
    assert!(Pto::period(&rtt, Duration::ZERO, 0) >= crate::TIMER_GRANULARITY);
}

/// RFC 9002 §6.2.1.
#[test]
fn each_expiry_doubles_the_period_and_reset_ends_that() {
    let mut pto = Pto::new();
    for factor in [1, 2, 4, 8] {
        assert_eq!(
            pto.duration(&rtt(), ms(25)),
            ms(325) * factor,
            "after {} expiries",
            pto.count()
        );
        pto.on_timeout();
    }
    pto.reset();
    assert_eq!(pto.duration(&rtt(), ms(25)), ms(325));
}

/// RFC 9002 §6.2.1.
#[test]
fn an_acknowledgement_ends_the_backoff_once_the_address_is_validated() {
    let mut pto = Pto::new();
    pto.on_timeout();
    pto.on_ack_received(false);
    assert_eq!(pto.count(), 1);
    pto.on_ack_received(true);
    assert_eq!(pto.count(), 0);
}

#[test]
fn extreme_exponents_and_delays_saturate() {
    let mut rtt = rtt();
    rtt.on_sample(Time::ZERO, Duration::MAX, Duration::ZERO, None);
    assert_eq!(Pto::period(&rtt, Duration::MAX, u32::MAX), Duration::MAX);
    assert_eq!(
        Pto::period(&rtt, ms(25), u32::MAX),
        Pto::period(&rtt, ms(25), MAX_EXPONENT)
    );
    let mut pto = Pto { count: u32::MAX };
    pto.on_timeout();
    assert_eq!(pto.count(), u32::MAX);
}
