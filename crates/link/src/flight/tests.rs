use bytes::Bytes;
use courser_base::Ecn;

use super::*;
use crate::Probability;

fn numbered(index: u64) -> Numbered {
    let payload = Bytes::copy_from_slice(&index.to_be_bytes());
    let end = ([10, 0, 0, 1], 1).into();
    let packet = Packet {
        source: end,
        destination: end,
        ecn: Ecn::NotEct,
        payload,
    };
    Numbered { index, packet }
}

fn index(packet: &Packet) -> u64 {
    let bytes = packet.payload[..]
        .try_into()
        .expect("the payload has 8 bytes");
    u64::from_be_bytes(bytes)
}

/// Launches packets 1 to `count`, one each millisecond, and returns the arrival of each.
fn run(flight: &mut Flight, count: u64) -> Vec<(u64, Time)> {
    for index in 1..=count {
        flight.launch(Time::from_nanos(index * 1_000_000), numbered(index));
    }
    let mut arrived = Vec::new();
    while let Some(next) = flight.next_time() {
        let (at, packet) = flight
            .pop(next)
            .expect("a packet arrives at the announced time");
        assert_eq!(at, next);
        arrived.push((index(&packet), at));
    }
    assert_eq!(arrived.len() as u64, count);
    assert!(arrived.is_sorted_by_key(|(_, at)| *at));
    arrived
}

#[test]
fn delay_is_exact() {
    let mut flight = Flight::new(1, 0);
    flight.set_delay(Duration::from_nanos(40_000_001));
    for (index, at) in run(&mut flight, 100) {
        assert_eq!(at.as_nanos(), index * 1_000_000 + 40_000_001);
    }
}

#[test]
fn jitter_spreads_delays_and_keeps_order() {
    let mut flight = Flight::new(1, 0);
    flight.set_delay(Duration::from_millis(10));
    flight.set_jitter(Duration::from_millis(4));
    let arrived = run(&mut flight, 5_000);
    assert!(arrived.is_sorted_by_key(|(index, _)| *index));
    let extra = |&(index, at): &(u64, Time)| at.as_nanos() - index * 1_000_000 - 10_000_000;
    assert!(arrived.iter().map(extra).all(|extra| extra <= 4_000_000));
    assert!(arrived.iter().map(extra).max() > Some(3_900_000));
    assert!(arrived.iter().map(extra).min() < Some(200_000));
}

#[test]
fn late_packets_stay_below_the_limit_and_others_are_on_time() {
    let mut flight = Flight::new(1, 0);
    flight.set_delay(Duration::from_millis(10));
    flight.set_reorder(Some(Reorder {
        probability: Probability::from_percent(5),
        by: Duration::from_millis(25),
    }));
    let arrived = run(&mut flight, 20_000);
    let late: Vec<u64> = arrived
        .iter()
        .map(|(index, at)| at.as_nanos() - index * 1_000_000 - 10_000_000)
        .filter(|lateness| *lateness > 0)
        .collect();
    assert!((880..1_120).contains(&late.len()), "{}", late.len());
    assert!(late.iter().all(|&lateness| lateness <= 25_000_000));
    assert!(late.iter().max() > Some(&24_000_000));
    assert!(!arrived.is_sorted_by_key(|(index, _)| *index));
}

#[test]
fn shorter_delay_causes_no_reordering() {
    let mut flight = Flight::new(1, 0);
    flight.set_delay(Duration::from_millis(100));
    flight.launch(Time::ZERO, numbered(1));
    flight.set_delay(Duration::from_millis(1));
    flight.launch(Time::from_nanos(1), numbered(2));
    let at = Time::from_nanos(100_000_000);
    assert_eq!(flight.pop(Time::from_nanos(99_999_999)), None);
    assert_eq!(flight.pop(at).map(|(_, packet)| index(&packet)), Some(1));
    assert_eq!(flight.pop(at).map(|(_, packet)| index(&packet)), Some(2));
}

#[test]
fn aggregated_packets_arrive_together_at_multiples_of_the_period() {
    let mut flight = Flight::new(1, 0);
    flight.set_delay(Duration::from_micros(500));
    flight.set_aggregate(Some(Duration::from_millis(10)));
    let arrived = run(&mut flight, 100);
    assert!(arrived.is_sorted_by_key(|(index, _)| *index));
    for (index, at) in arrived {
        let sent = index * 1_000_000 + 500_000;
        assert_eq!(at.as_nanos(), sent.next_multiple_of(10_000_000));
    }
}

#[test]
fn aggregates_near_the_largest_time_do_not_overflow() {
    let mut flight = Flight::new(1, 0);
    flight.set_aggregate(Some(Duration::MAX));
    flight.launch(Time::from_nanos(u64::MAX - 1), numbered(1));
    assert_eq!(flight.next_time(), Some(Time::MAX));
}
