use crate::SentPackets;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A sample of 100 ms at time zero: the duration is (100 + 200 + 25) * 3 = 975 ms.
fn rtt() -> RttEstimator {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO, None);
    rtt
}

fn packet(millis: u64) -> Sent<()> {
    Sent {
        time: Time::ZERO + ms(millis),
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

/// The numbers are also the order of sending.
fn on_packets_lost(state: &mut PersistentCongestion, lost: &[(u64, Sent<()>)]) -> bool {
    let in_order = |(number, packet): &(u64, Sent<()>)| {
        let order = *number as u32;
        (*number, Sent { order, ..*packet })
    };
    let lost: Vec<_> = lost.iter().map(in_order).collect();
    state.on_packets_lost(&lost, &rtt(), ms(25))
}

/// RFC 9002 §7.6.1.
#[test]
fn duration_is_three_probe_timeouts() {
    let duration = |state: PersistentCongestion| state.duration(&rtt(), ms(25));
    assert_eq!(duration(PersistentCongestion::new()), ms(975));
    let mut longer = PersistentCongestion::with_threshold(5);
    assert_eq!(duration(longer), ms(1625));
    longer.reset();
    assert_eq!(duration(longer), ms(1625));
}

/// RFC 9002 §7.6.2.
#[test]
fn two_losses_further_apart_than_the_duration_establish_it() {
    let lost = |span: u64| [(1, packet(10)), (2, packet(500)), (3, packet(10 + span))];
    assert!(!on_packets_lost(
        &mut PersistentCongestion::new(),
        &lost(975)
    ));
    assert!(on_packets_lost(
        &mut PersistentCongestion::new(),
        &lost(976)
    ));
}

/// RFC 9002 §7.6.2.
#[test]
fn an_acknowledged_packet_between_breaks_the_run() {
    let lost = [(1, packet(10)), (3, packet(2000))];
    assert!(!on_packets_lost(&mut PersistentCongestion::new(), &lost));
}

/// RFC 9002 §7.6.2.
#[test]
fn both_ends_must_be_ack_eliciting() {
    let plain = |millis| Sent {
        ack_eliciting: false,
        ..packet(millis)
    };
    let lost = [
        (1, plain(10)),
        (2, packet(1500)),
        (3, packet(1600)),
        (4, plain(9000)),
    ];
    assert!(!on_packets_lost(&mut PersistentCongestion::new(), &lost));
}

/// RFC 9002 §7.6.2.
#[test]
fn packets_sent_before_the_first_sample_do_not_count() {
    let lost = [(1, packet(0)), (2, packet(2000))];
    assert!(!on_packets_lost(&mut PersistentCongestion::new(), &lost));
    let unsampled = RttEstimator::default();
    let lost = [(1, packet(1)), (2, packet(1_000_000))];
    assert!(!PersistentCongestion::new().on_packets_lost(&lost, &unsampled, ms(25)));
}

/// RFC 9000 §14.4.
#[test]
fn mtu_probes_do_not_count() {
    let probe = |millis| Sent {
        is_mtu_probe: true,
        ..packet(millis)
    };
    let lost = [(1, probe(10)), (2, packet(1500)), (3, probe(9000))];
    assert!(!on_packets_lost(&mut PersistentCongestion::new(), &lost));
}

#[test]
fn a_run_may_be_reported_in_parts() {
    let mut state = PersistentCongestion::new();
    assert!(!on_packets_lost(&mut state, &[(1, packet(10))]));
    assert!(!on_packets_lost(&mut state, &[]));
    assert!(on_packets_lost(&mut state, &[(2, packet(1000))]));
    assert!(
        !on_packets_lost(&mut state, &[(3, packet(1010))]),
        "the period was already reported"
    );
}

#[test]
fn numbers_that_were_not_in_flight_do_not_break_the_run() {
    let mut sent = SentPackets::new();
    let only_ack = Sent {
        in_flight: false,
        ack_eliciting: false,
        ..packet(15)
    };
    sent.push(1, packet(10));
    (2..200).for_each(|number| sent.push(number, only_ack));
    sent.push(300, packet(2000));
    let mut lost = Vec::new();
    sent.take_range(0..=300, |number, packet| lost.push((number, packet)));
    assert!(PersistentCongestion::new().on_packets_lost(&lost, &rtt(), ms(25)));
}

#[test]
fn an_acknowledged_packet_between_skipped_numbers_breaks_the_run() {
    let mut sent = SentPackets::new();
    for (number, millis) in [(1, 10), (5, 1000), (9, 2000)] {
        sent.push(number, packet(millis));
    }
    sent.take(5);
    let mut lost = Vec::new();
    sent.take_range(0..=9, |number, packet| lost.push((number, packet)));
    assert_eq!(lost.len(), 2);
    assert!(!PersistentCongestion::new().on_packets_lost(&lost, &rtt(), ms(25)));
}

#[test]
fn numbers_that_fall_begin_a_new_run() {
    let mut state = PersistentCongestion::new();
    assert!(!on_packets_lost(&mut state, &[(7, packet(10))]));
    assert!(!on_packets_lost(&mut state, &[(7, packet(2000))]));
    assert!(!on_packets_lost(&mut state, &[(3, packet(4000))]));
}

#[test]
fn reset_ends_the_run() {
    let mut state = PersistentCongestion::new();
    on_packets_lost(&mut state, &[(1, packet(10))]);
    state.reset();
    assert!(!on_packets_lost(&mut state, &[(2, packet(2000))]));
}
