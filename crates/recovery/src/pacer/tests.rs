use proptest::prelude::*;

use super::*;

const MTU: u16 = 1200;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn rtt(sample: Duration) -> RttEstimator {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, sample, Duration::ZERO, None);
    rtt
}

/// Returns a pacer with this rate after its first burst.
fn spent(rate: u64) -> Pacer {
    let mut pacer = Pacer::new(Time::ZERO, MTU);
    pacer.on_sent(u64::MAX);
    pacer.set_rate(Some(Rate::from_bytes_per_second(rate)));
    pacer
}

/// Sends datagrams as fast as permitted for `time`, with timers that are late by `late`.
fn run(pacer: &mut Pacer, time: Duration, late: impl Fn(u64) -> Duration) -> u64 {
    let (rtt, window) = (rtt(ms(50)), 1 << 40);
    let (mut now, mut total) = (Time::ZERO, 0);
    for wakeup in 0.. {
        let budget = pacer.budget(now, &rtt, window, MTU) / u64::from(MTU) * u64::from(MTU);
        pacer.on_sent(budget);
        total += budget;
        now = pacer.next_release(now, u64::MAX, &rtt, window, MTU) + late(wakeup);
        if now > Time::ZERO + time {
            break;
        }
    }
    total
}

/// RFC 9002 §7.7.
#[test]
fn an_initial_window_may_leave_at_once() {
    let mut pacer = Pacer::new(Time::ZERO, MTU);
    let rtt = RttEstimator::default();
    assert_eq!(pacer.budget(Time::ZERO, &rtt, 12_000, MTU), 12_000);
    pacer.on_sent(12_000);
    assert_eq!(pacer.budget(Time::ZERO, &rtt, 12_000, MTU), 0);
}

#[test]
fn default_rate_is_five_quarters_of_a_window_per_round_trip() {
    let mut pacer = spent(0);
    pacer.set_rate(None);
    let release = pacer.next_release(Time::ZERO, u64::MAX, &rtt(ms(100)), 800_000, MTU);
    assert_eq!(release, Time::ZERO + ms(1));
    assert_eq!(pacer.budget(release, &rtt(ms(100)), 800_000, MTU), 10_000);
}

#[test]
fn quantum_is_a_millisecond_within_two_datagrams_and_a_batch() {
    let quantum = |rate| quantum(Rate::from_bytes_per_second(rate), MTU);
    assert_eq!(quantum(0), 2400);
    assert_eq!(quantum(10_000_000), 10_000);
    assert_eq!(quantum(1_000_000_000), 65_536);
    assert_eq!(quantum(u64::MAX), 65_536);
}

#[test]
fn short_paths_are_not_paced() {
    let mut pacer = spent(1);
    assert_eq!(
        pacer.budget(Time::ZERO, &rtt(us(199)), 12_000, MTU),
        u64::MAX
    );
    assert_eq!(
        pacer.next_release(Time::ZERO, u64::MAX, &rtt(us(199)), 12_000, MTU),
        Time::ZERO
    );
    assert_eq!(pacer.budget(Time::ZERO, &rtt(us(200)), 12_000, MTU), 0);
}

#[test]
fn an_idle_period_earns_one_quantum() {
    let mut pacer = spent(10_000_000);
    let now = Time::ZERO + ms(60_000);
    assert_eq!(pacer.budget(now, &rtt(ms(50)), 1 << 40, MTU), 10_000);
}

/// RFC 9002 §7.8: the burst after an idle period has the bound of the first one, and comes once.
#[test]
fn with_nothing_in_flight_an_initial_window_may_leave_at_once() {
    let mut pacer = spent(100_000);
    let (rtt, now) = (rtt(ms(50)), Time::ZERO);
    pacer.on_quiescent(1 << 40, MTU);
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 12_000);
    pacer.on_quiescent(1 << 40, MTU);
    assert_eq!(pacer.reserve(now, 1 << 20, &rtt, 1 << 40, MTU), 12_000);
    pacer.on_sent(12_000);
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 0);
}

#[test]
fn the_burst_with_nothing_in_flight_is_within_the_window() {
    let mut pacer = spent(100_000);
    pacer.on_quiescent(3_000, MTU);
    assert_eq!(pacer.budget(Time::ZERO, &rtt(ms(50)), 3_000, MTU), 3_000);
}

#[test]
fn a_larger_quantum_is_kept_with_nothing_in_flight() {
    let mut pacer = spent(1_000_000_000);
    let (rtt, now) = (rtt(ms(50)), Time::ZERO + ms(100));
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 65_536);
    pacer.on_quiescent(1 << 40, MTU);
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 65_536);
}

#[test]
fn an_early_send_earns_no_credit_for_late_timers() {
    let mut pacer = spent(10_000_000);
    let rtt = rtt(ms(50));
    let release = pacer.next_release(Time::ZERO, u64::MAX, &rtt, 1 << 40, MTU);
    let early = release.saturating_sub(us(500));
    assert_eq!(pacer.budget(early, &rtt, 1 << 40, MTU), 5_000);
    pacer.on_sent(5_000);
    assert_eq!(pacer.budget(release + ms(1000), &rtt, 1 << 40, MTU), 10_000);
}

#[test]
fn a_late_timer_earns_the_missed_bytes() {
    let mut pacer = spent(10_000_000);
    let rtt = rtt(ms(50));
    let release = pacer.next_release(Time::ZERO, u64::MAX, &rtt, 1 << 40, MTU);
    assert_eq!(pacer.budget(release + us(1500), &rtt, 1 << 40, MTU), 25_000);
}

#[test]
fn exact_timers_keep_the_rate() {
    for rate in [50_000, 1_000_000, 30_000_000, 1_000_000_000] {
        let total = run(&mut spent(rate), ms(2000), |_| Duration::ZERO);
        assert!(total <= 2 * rate + 65_536, "{rate}: {total}");
        assert!(total + 65_536 >= 2 * rate * 99 / 100, "{rate}: {total}");
    }
}

#[test]
fn late_timers_keep_the_rate() {
    for rate in [1_000_000, 30_000_000, 1_000_000_000] {
        let total = run(&mut spent(rate), ms(2000), |wakeup| us(wakeup * 397 % 2000));
        let slack = 65_536 + rate / 500;
        assert!(total <= 2 * rate + slack, "{rate}: {total}");
        assert!(total + slack >= 2 * rate * 98 / 100, "{rate}: {total}");
    }
}

#[test]
fn cap_limits_the_rate_of_the_controller_and_of_the_default() {
    for rate in [None, Some(Rate::from_bytes_per_second(50_000_000))] {
        let mut pacer = spent(0);
        pacer.set_rate(rate);
        pacer.set_quantum(Some(60_000));
        pacer.set_cap(Some(Rate::from_bytes_per_second(1_000_000)));
        let sent = run(&mut pacer, ms(1000), |_| Duration::ZERO);
        assert!((950_000..=1_005_000).contains(&sent), "{rate:?}: {sent}");
    }
}

#[test]
fn cap_above_the_rate_has_no_effect() {
    let mut pacer = spent(1_000_000);
    pacer.set_cap(Some(Rate::from_bytes_per_second(9_000_000)));
    let sent = run(&mut pacer, ms(1000), |_| Duration::ZERO);
    assert!((950_000..=1_005_000).contains(&sent), "{sent}");
}

#[test]
fn capped_short_path_is_paced_without_bursts() {
    let mut pacer = spent(1_000_000_000);
    pacer.set_cap(Some(Rate::from_bytes_per_second(1_000_000)));
    pacer.on_quiescent(1 << 30, MTU);
    assert_eq!(pacer.budget(Time::ZERO, &rtt(us(10)), 1 << 30, MTU), 0);
    let release = pacer.next_release(Time::ZERO, u64::MAX, &rtt(us(10)), 1 << 30, MTU);
    assert!(release >= Time::ZERO + ms(2), "{release:?}");
}

#[test]
fn frequent_calls_lose_no_fraction() {
    let mut pacer = spent(100_000);
    for micros in 1..=20_000 {
        pacer.budget(Time::ZERO + us(micros), &rtt(ms(50)), 1 << 40, MTU);
    }
    assert_eq!(
        pacer.budget(Time::ZERO + us(20_000), &rtt(ms(50)), 1 << 40, MTU),
        2_000
    );
}

#[test]
fn a_round_trip_of_weeks_is_paced_at_the_minimum_rate() {
    let mut pacer = spent(0);
    let rtt = rtt(Duration::MAX);
    let release = pacer.next_release(Time::ZERO, u64::MAX, &rtt, 2400, MTU);
    assert!(release <= Time::ZERO + ms(1000));
    assert!(pacer.budget(release, &rtt, 2400, MTU) >= 2400);
}

proptest! {
    /// The limit for any period: the bytes that the rate moves, a quantum, and the credit for late
    /// timers.
    #[test]
    fn sent_bytes_never_exceed_the_rate_and_a_burst(
        rate in 1u64..=2_000_000_000,
        steps in prop::collection::vec((0u64..5_000_000, any::<bool>()), 1..200),
    ) {
        let mut pacer = spent(rate);
        let rate = rate.max(2 * u64::from(MTU));
        let rtt = rtt(ms(50));
        let (mut now, mut total) = (Time::ZERO, 0u64);
        for (wait, waits) in steps {
            now += Duration::from_nanos(wait);
            let budget = pacer.budget(now, &rtt, 1 << 40, MTU);
            pacer.on_sent(budget);
            total += budget;
            if waits {
                let release = pacer.next_release(now, u64::MAX, &rtt, 1 << 40, MTU);
                prop_assert!(release >= now);
            }
            let earned = u128::from(rate) * u128::from(now.as_nanos()) / 1_000_000_000;
            prop_assert!(u128::from(total) <= earned + 1, "{total} {earned}");
        }
    }

    #[test]
    fn extreme_values_do_not_overflow(
        rate in any::<u64>(), nanos in any::<u64>(), window in any::<u64>(), bytes in any::<u64>(),
        sample in any::<u64>(),
    ) {
        let mut pacer = spent(rate);
        let rtt = rtt(Duration::from_nanos(sample));
        for now in [Time::from_nanos(nanos), Time::ZERO, Time::MAX] {
            pacer.budget(now, &rtt, window, MTU);
            pacer.on_sent(bytes);
            prop_assert!(pacer.next_release(now, u64::MAX, &rtt, window, MTU) >= now);
        }
    }
}

/// Returns a pacer at 10 MB/s with a quantum of 10 kB, and the estimator of its path.
fn refilled() -> (Pacer, RttEstimator, Time) {
    let mut pacer = spent(10_000_000);
    let (rtt, now) = (rtt(ms(50)), Time::ZERO + ms(100));
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 10_000);
    (pacer, rtt, now)
}

#[test]
fn a_batch_reserves_bytes_and_returns_the_rest() {
    let (mut pacer, rtt, now) = refilled();
    assert_eq!(pacer.reserve(now, 1 << 20, &rtt, 1 << 40, MTU), 10_000);
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 0);
    pacer.return_unused(4_000);
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 4_000);
    pacer.return_unused(4_000);
    assert_eq!(
        pacer.budget(now, &rtt, 1 << 40, MTU),
        4_000,
        "bytes are returned once"
    );
}

#[test]
fn sent_bytes_settle_a_reservation() {
    let (mut pacer, rtt, now) = refilled();
    for (sent, left) in [(6_000, 4_000), (6_000, 0)] {
        pacer.reserve(now, 5_000, &rtt, 1 << 40, MTU);
        pacer.on_sent(sent);
        assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), left);
    }
}

#[test]
fn a_reservation_without_sending_is_returned() {
    let (mut pacer, rtt, now) = refilled();
    assert_eq!(pacer.reserve(now, 1 << 20, &rtt, 1 << 40, MTU), 10_000);
    assert_eq!(pacer.reserve(now, 1 << 20, &rtt, 1 << 40, MTU), 10_000);
    let later = now + ms(60_000);
    assert_eq!(pacer.reserve(later, 1 << 20, &rtt, 1 << 40, MTU), 10_000);
}

#[test]
fn less_than_a_datagram_is_not_granted() {
    let (mut pacer, rtt, now) = refilled();
    pacer.on_sent(9_000);
    assert_eq!(pacer.reserve(now, 5_000, &rtt, 1 << 40, MTU), 0);
    assert_eq!(pacer.reserve(now, 900, &rtt, 1 << 40, MTU), 900);
}

#[test]
fn no_more_is_returned_than_was_granted() {
    let (mut pacer, rtt, now) = refilled();
    assert_eq!(pacer.reserve(now, 2_000, &rtt, 1 << 40, MTU), 2_000);
    pacer.return_unused(u64::MAX);
    assert_eq!(pacer.budget(now, &rtt, 1 << 40, MTU), 10_000);
}

#[test]
fn a_short_path_grants_all_bytes_without_tokens() {
    let mut pacer = spent(1);
    let rtt = rtt(us(100));
    assert_eq!(
        pacer.reserve(Time::ZERO, 1 << 30, &rtt, 12_000, MTU),
        1 << 30
    );
    pacer.return_unused(1 << 30);
    assert_eq!(pacer.tokens, 0);
}

#[test]
fn the_controller_may_choose_the_quantum() {
    let (mut pacer, rtt, now) = refilled();
    pacer.set_quantum(Some(2_500));
    let (mut batches, mut at) = (0, now);
    while at < now + ms(10) {
        let granted = pacer.reserve(at, 1 << 20, &rtt, 1 << 40, MTU);
        pacer.on_sent(granted);
        batches += u64::from(granted > 0);
        at = pacer.next_release(at, u64::MAX, &rtt, 1 << 40, MTU);
    }
    assert!((39..=41).contains(&batches), "{batches}");
    pacer.set_quantum(Some(1));
    assert_eq!(pacer.quantum_at(Rate::default(), MTU), u64::from(MTU));
    pacer.set_quantum(Some(u64::MAX));
    assert_eq!(pacer.quantum_at(Rate::default(), MTU), 65_536);
}

proptest! {
    /// A reservation that is returned as a whole has no effect.
    #[test]
    fn returned_reservations_have_no_effect(
        rate in 1_000_000u64..=2_000_000_000,
        steps in prop::collection::vec((0u64..3_000_000, 0u64..100_000, 0u64..=100), 1..100),
    ) {
        let (mut pacer, mut twin) = (spent(rate), spent(rate));
        let rtt = rtt(ms(50));
        let mut now = Time::ZERO;
        for (wait, requested, part) in steps {
            now += Duration::from_nanos(wait);
            let untouched = pacer.reserve(now, requested, &rtt, 1 << 40, MTU);
            pacer.return_unused(untouched);
            let granted = pacer.reserve(now, requested, &rtt, 1 << 40, MTU);
            prop_assert_eq!(untouched, granted);
            let used = granted * part / 100;
            pacer.return_unused(granted - used);
            twin.budget(now, &rtt, 1 << 40, MTU);
            if used > 0 {
                twin.on_sent(used);
            }
            prop_assert_eq!(pacer.tokens, twin.tokens);
            let release = pacer.next_release(now, u64::MAX, &rtt, 1 << 40, MTU);
            prop_assert_eq!(release, twin.next_release(now, u64::MAX, &rtt, 1 << 40, MTU));
        }
    }

    /// The same limit holds for all reservations and returns: the rate, a quantum and the credit
    /// for late timers.
    #[test]
    fn reservations_never_exceed_the_rate(
        rate in 1u64..=2_000_000_000,
        quantum in prop::option::of(any::<u64>()),
        steps in prop::collection::vec((0u64..5_000_000, any::<u64>(), any::<u64>()), 1..200),
    ) {
        let mut pacer = spent(rate);
        pacer.set_quantum(quantum);
        let rate = rate.max(2 * u64::from(MTU));
        let rtt = rtt(ms(50));
        let (mut now, mut total) = (Time::ZERO, 0u64);
        for (wait, requested, back) in steps {
            now += Duration::from_nanos(wait);
            let granted = pacer.reserve(now, requested, &rtt, 1 << 40, MTU);
            let back = back % (granted + 1);
            pacer.return_unused(back);
            total += granted - back;
            prop_assert!(pacer.next_release(now, u64::MAX, &rtt, 1 << 40, MTU) >= now);
            let earned = u128::from(rate) * u128::from(now.as_nanos()) / 1_000_000_000;
            prop_assert!(u128::from(total) <= earned + 1, "{total} {earned}");
        }
    }
}
