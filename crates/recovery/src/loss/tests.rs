use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

fn packet(time: Time) -> Sent<()> {
    Sent {
        time,
        size: 1200,
        path: 0,
        ack_eliciting: true,
        in_flight: true,
        ecn_marked: false,
        follows_in_batch: false,
        quic_bit_cleared: false,
        order: 0,
        is_mtu_probe: false,
        snapshot: 0,
        tx_in_flight: 0,
        frames: (),
    }
}

/// A round-trip time of 100 ms, with a time threshold of 112.5 ms.
fn rtt() -> RttEstimator {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO, None);
    rtt
}

/// Packets 0, 1, 2, ... sent a millisecond apart, one of them acknowledged.
fn acked(count: u64, acked: u64) -> (SentPackets<()>, LossDetector) {
    let mut sent = SentPackets::new();
    for number in 0..count {
        sent.push(number, packet(at(number)));
    }
    let mut detector = LossDetector::new();
    assert!(detector.on_ack_received(acked));
    sent.take(acked);
    (sent, detector)
}

fn detect(now: Time, sent: &mut SentPackets<()>, detector: &mut LossDetector) -> Vec<u64> {
    let mut lost = Vec::new();
    detector.detect(now, sent, &rtt(), &mut lost);
    lost.into_iter().map(|(number, _)| number).collect()
}

/// RFC 9002 §6.1.1.
#[test]
fn packets_three_below_the_largest_acked_are_lost() {
    let (mut sent, mut detector) = acked(10, 5);
    assert_eq!(detect(at(10), &mut sent, &mut detector), [0, 1, 2]);
    assert_eq!(sent.oldest(), Some(3));
}

/// RFC 9002 §6.1.2.
#[test]
fn packets_below_the_largest_acked_are_lost_after_nine_eighths_rtt() {
    let (mut sent, mut detector) = acked(10, 2);
    assert_eq!(detect(at(10), &mut sent, &mut detector), []);
    let due = Time::ZERO + Duration::from_micros(112_500);
    assert_eq!(detector.loss_time(), Some(due));
    assert_eq!(
        detect(
            due.saturating_sub(Duration::from_nanos(1)),
            &mut sent,
            &mut detector
        ),
        []
    );
    assert_eq!(detect(due, &mut sent, &mut detector), [0]);
    assert_eq!(detector.loss_time(), Some(due + ms(1)));
    assert_eq!(detect(due + ms(1), &mut sent, &mut detector), [1]);
    assert_eq!(detector.loss_time(), None);
}

/// RFC 9002 §6.1.2.
#[test]
fn time_threshold_uses_the_larger_of_smoothed_and_latest() {
    let mut rtt = rtt();
    rtt.on_sample(Time::ZERO, ms(200), Duration::ZERO, None);
    assert_eq!(LossDetector::new().time_threshold(&rtt), ms(225));
    rtt.on_sample(Time::ZERO, ms(50), Duration::ZERO, None);
    assert_eq!(
        LossDetector::new().time_threshold(&rtt),
        rtt.smoothed() + rtt.smoothed() / 8
    );
}

/// RFC 9002 §6.1.2.
#[test]
fn time_threshold_is_at_least_the_granularity() {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, Duration::from_micros(60), Duration::ZERO, None);
    assert_eq!(LossDetector::new().time_threshold(&rtt), TIMER_GRANULARITY);
}

#[test]
fn configured_thresholds_apply_and_are_exceeded_only_by_evidence() {
    let least = LossThresholds::new(5, 1.5);
    let mut detector = LossDetector::with_thresholds(least);
    assert_eq!(detector.packet_threshold(), 5);
    assert_eq!(detector.time_threshold(&rtt()), ms(150));
    let mut sent = SentPackets::new();
    for number in 0..10 {
        sent.push(number, packet(at(number)));
    }
    detector.on_ack_received(6);
    sent.take(6);
    assert_eq!(detect(at(10), &mut sent, &mut detector), [0, 1]);
    // Packet 1 was overtaken by five others and arrives.
    detector.on_spurious_loss(at(20), 1, at(1), &rtt());
    assert_eq!(detector.packet_threshold(), 6);
    assert_eq!(detector.time_threshold(&rtt()), ms(150));
}

#[test]
fn thresholds_are_bounded() {
    assert_eq!(LossThresholds::new(3, 9.0 / 8.0), LossThresholds::RFC_9002);
    let most = LossDetector::with_thresholds(LossThresholds::new(u64::MAX, f32::INFINITY));
    assert_eq!(most.packet_threshold(), MAX_PACKET_THRESHOLD);
    assert_eq!(most.time_threshold(&rtt()), ms(800));
    let least = LossThresholds::new(3, f32::NAN);
    let least = LossDetector::with_thresholds(least).time_threshold(&rtt());
    assert_eq!(least, ms(100));
}

#[test]
fn packets_above_the_largest_acked_are_never_lost() {
    let (mut sent, mut detector) = acked(10, 0);
    assert_eq!(detect(at(1_000_000), &mut sent, &mut detector), []);
    assert_eq!(detector.loss_time(), None);
}

#[test]
fn nothing_is_lost_without_an_acknowledgement() {
    let mut sent = SentPackets::new();
    sent.push(0, packet(at(0)));
    assert_eq!(
        detect(at(1_000_000), &mut sent, &mut LossDetector::new()),
        []
    );
}

#[test]
fn a_smaller_acknowledgement_changes_nothing() {
    let (_, mut detector) = acked(10, 5);
    assert!(!detector.on_ack_received(5));
    assert!(!detector.on_ack_received(3));
    assert_eq!(detector.largest_acked(), Some(5));
}

#[test]
fn packets_not_in_flight_are_never_lost() {
    let mut sent = SentPackets::new();
    for number in 0..5 {
        sent.push(
            number,
            Sent {
                in_flight: false,
                ack_eliciting: false,
                ..packet(at(0))
            },
        );
    }
    let mut detector = LossDetector::new();
    detector.on_ack_received(4);
    assert_eq!(detect(at(1_000), &mut sent, &mut detector), []);
    assert_eq!(detector.loss_time(), None);
}

#[test]
fn clocks_that_stand_still_or_run_back_do_not_declare_losses() {
    let (mut sent, mut detector) = acked(10, 2);
    assert_eq!(detect(Time::ZERO, &mut sent, &mut detector), []);
}

#[test]
fn the_largest_time_does_not_overflow() {
    let mut sent = SentPackets::new();
    sent.push(0, packet(Time::MAX));
    sent.push(1, packet(Time::MAX));
    let mut detector = LossDetector::new();
    detector.on_ack_received(u64::MAX);
    sent.take(1);
    assert_eq!(detect(Time::MAX, &mut sent, &mut detector), [0]);
}

proptest! {
    /// The model applies both thresholds of RFC 9002 §6.1 to every packet.
    #[test]
    fn detector_agrees_with_the_naive_model(
        steps in prop::collection::vec((0u64..3, 1u64..20, 0u64..30, 0u64..4, 1u64..60), 1..60)
    ) {
        let (mut sent, mut detector, mut model) =
            (SentPackets::new(), LossDetector::new(), BTreeMap::new());
        let (mut next, mut now, mut largest) = (0, Time::ZERO, None::<u64>);
        for (skip, count, back, len, wait) in steps {
            next += skip;
            for number in next..next + count {
                sent.push(number, packet(now));
                model.insert(number, now);
            }
            next += count;
            now += ms(wait);
            let top = (next - 1).saturating_sub(back);
            if model.contains_key(&top) {
                detector.on_ack_received(top);
                largest = largest.max(Some(top));
                sent.take_range(top.saturating_sub(len)..=top, |_, _| {});
                model.retain(|number, _| !(top.saturating_sub(len)..=top).contains(number));
            }
            let lost = detect(now, &mut sent, &mut detector);
            let limit = Duration::from_micros(112_500);
            let is_lost = |number: u64, time: Time| {
                largest.is_some_and(|largest| number <= largest
                    && (largest - number >= 3 || time + limit <= now))
            };
            let expected: Vec<_> =
                model.iter().filter(|(n, t)| is_lost(**n, **t)).map(|(n, _)| *n).collect();
            prop_assert_eq!(lost, expected);
            model.retain(|number, time| !is_lost(*number, *time));
            let due = model.iter().filter(|(n, _)| largest.is_some_and(|largest| **n <= largest));
            prop_assert_eq!(detector.loss_time(), due.map(|(_, time)| *time + limit).min());
            prop_assert_eq!(sent.len(), model.len());
            if let (Some(oldest), Some(largest)) = (sent.oldest(), largest) {
                prop_assert!(oldest + PACKET_THRESHOLD > largest, "at most three packets are examined");
            }
        }
    }
}

#[test]
fn a_spurious_loss_raises_both_thresholds() {
    let rtt = rtt();
    let mut loss = LossDetector::new();
    loss.on_ack_received(50);
    // Packet 20 was overtaken by 30 others and acknowledged after one and a half round trips.
    loss.on_spurious_loss(at(150), 20, at(0), &rtt);
    assert_eq!(loss.packet_threshold(), 31);
    let threshold = loss.time_threshold(&rtt);
    assert!(threshold > ms(150) && threshold < ms(160), "{threshold:?}");
    // Less reordering changes nothing.
    loss.on_spurious_loss(at(160), 45, at(40), &rtt);
    assert_eq!(loss.packet_threshold(), 31);
    assert_eq!(loss.time_threshold(&rtt), threshold);
}

#[test]
fn the_time_threshold_is_limited_and_falls_on_a_path_that_keeps_order() {
    let rtt = rtt();
    let mut loss = LossDetector::new();
    loss.on_ack_received(50);
    loss.on_spurious_loss(at(60_000), 0, at(0), &rtt);
    assert_eq!(loss.time_threshold(&rtt), ms(200));
    let (mut sent, mut lost) = (SentPackets::<()>::new(), Vec::new());
    for minute in 2..10 {
        loss.detect(at(minute * 60_000), &mut sent, &rtt, &mut lost);
    }
    assert_eq!(loss.packet_threshold(), PACKET_THRESHOLD);
    assert_eq!(loss.time_threshold(&rtt), ms(100) + ms(100) / 8);
}

/// Attack A49: late acknowledgements must not keep packets in the ring indefinitely.
#[test]
fn the_packet_threshold_has_a_limit() {
    let mut loss = LossDetector::new();
    loss.on_ack_received(100_000);
    loss.on_spurious_loss(at(150), 0, at(0), &rtt());
    assert_eq!(loss.packet_threshold(), MAX_PACKET_THRESHOLD);
}
