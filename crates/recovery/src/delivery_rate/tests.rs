use super::*;

const MS: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(40);

fn at(ms: u64) -> Time {
    Time::ZERO + MS * ms as u32
}

fn rate(bytes: u64, time: Duration) -> Rate {
    Rate::from_bytes_in(bytes, time)
}

#[test]
fn the_rate_of_a_steady_flow_is_measured() {
    // One packet of 1000 bytes every millisecond, acknowledged 40 ms later: 1 MB/s.
    let mut path = DeliveryRate::new();
    let ids: Vec<u32> = (0..40)
        .map(|ms| path.on_sent(at(ms), if ms == 0 { 0 } else { ms * 1000 }))
        .collect();
    let mut last = None;
    for (ms, id) in (0..40).zip(ids) {
        path.on_acked(1000, id, at(ms), 40_000);
        last = path.sample(at(40 + ms), RTT);
        path.remove_before(Some(id));
        path.on_sent(at(40 + ms), 39_000);
    }
    // The first flight is measured from its first packet.
    let sample = last.expect("a packet was delivered");
    assert_eq!(sample.delivered, 40_000);
    assert_eq!(sample.interval, MS * 79);
    // The packet sent at 40 ms had 1000 bytes delivered before it, at 40 ms.
    let id = path.first + 1;
    path.on_acked(1000, id, at(40), 40_000);
    let sample = path.sample(at(80), RTT).expect("a packet was delivered");
    assert_eq!(sample.rate, rate(40_000, MS * 40));
}

#[test]
fn aggregated_acknowledgements_do_not_raise_the_rate() {
    let mut path = DeliveryRate::new();
    let first = path.on_sent(at(0), 0);
    let ids: Vec<u32> = (1..=10).map(|ms| path.on_sent(at(ms * 10), 1000)).collect();
    path.on_acked(1000, first, at(0), 1000);
    path.sample(at(40), RTT);
    // Ten packets were sent over 100 ms and are acknowledged at once.
    for (number, id) in (1..=10).zip(ids) {
        path.on_acked(1000, id, at(number * 10), 1000);
    }
    let sample = path.sample(at(140), RTT).expect("a packet was delivered");
    assert!(sample.interval >= MS * 90, "{sample:?}");
}

#[test]
fn samples_are_app_limited_until_their_bytes_are_delivered() {
    let mut path = DeliveryRate::new();
    let busy = path.on_sent(at(0), 0);
    path.on_app_limited(at(1), MS);
    let idle = path.on_sent(at(5), 1000);
    path.on_acked(1000, busy, at(0), 1000);
    let sample = path.sample(at(40), RTT).expect("a packet was delivered");
    assert!(!sample.is_app_limited);
    path.on_acked(1000, idle, at(5), 2000);
    let sample = path.sample(at(45), RTT).expect("a packet was delivered");
    assert!(sample.is_app_limited);
    assert!(!path.is_app_limited(), "the limited packet has arrived");
}

#[test]
fn idle_time_is_not_measured() {
    let mut path = DeliveryRate::new();
    let id = path.on_sent(at(0), 0);
    path.on_acked(1000, id, at(0), 1000);
    path.sample(at(40), RTT);
    path.remove_before(None);
    let id = path.on_sent(at(10_000), 0);
    path.on_acked(1000, id, at(10_000), 1000);
    let sample = path
        .sample(at(10_040), RTT)
        .expect("a packet was delivered");
    assert_eq!(sample.interval, RTT);
}

#[test]
fn losses_are_counted_since_the_packet_was_sent() {
    let mut path = DeliveryRate::new();
    let first = path.on_sent(at(0), 0);
    let second = path.on_sent(at(1), 3000);
    assert_eq!(path.on_lost(1000, first), (1000, false));
    assert_eq!(path.on_lost(1000, second), (2000, false));
    path.on_acked(1000, second, at(1), 4000);
    let sample = path.sample(at(50), RTT).expect("a packet was delivered");
    assert_eq!((sample.lost, sample.tx_in_flight), (2000, 4000));
}

#[test]
fn newest_packet_counts_in_any_order_and_across_the_wrap() {
    let mut path = DeliveryRate {
        first: u32::MAX - 1,
        ..DeliveryRate::new()
    };
    let ids: Vec<u32> = (0..4).map(|ms| path.on_sent(at(ms), ms * 1000)).collect();
    assert_eq!(ids, [u32::MAX - 1, u32::MAX, 0, 1]);
    for index in [2, 3, 0, 1] {
        path.on_acked(1000, ids[index], at(index as u64), index as u64);
    }
    let sample = path.sample(at(50), RTT).expect("a packet was delivered");
    assert_eq!(sample.tx_in_flight, 3);
    path.remove_before(Some(1));
    assert_eq!((path.first, path.snapshots.len()), (1, 1));
}

#[test]
fn intervals_shorter_than_a_round_trip_give_no_sample() {
    let mut path = DeliveryRate::new();
    let id = path.on_sent(at(0), 0);
    path.on_acked(1000, id, at(0), 1000);
    assert_eq!(path.sample(at(39), RTT), None);
    assert_eq!(
        path.sample(at(50), RTT),
        None,
        "no packet was acknowledged since"
    );
}

#[test]
fn a_short_pause_of_the_writer_is_not_app_limited() {
    let mut path = DeliveryRate::new();
    path.on_sent(at(0), 0);
    path.on_app_limited(at(1), MS);
    path.on_sent(at(2), 1000);
    assert!(!path.is_app_limited());
    // After a long pause the pipe is empty, so there is no gap in it.
    path.on_app_limited(at(2), MS);
    path.on_sent(at(900), 0);
    assert!(!path.is_app_limited());
}

#[test]
fn sample_of_a_lone_probe_is_app_limited_and_the_next_is_not() {
    let mut path = DeliveryRate::new();
    for (sent, is_app_limited) in [(0, true), (100, false)] {
        if is_app_limited {
            path.on_lone_probe(1400);
        }
        let id = path.on_sent(at(sent), 0);
        path.on_acked(1400, id, at(sent), 1400);
        let sample = path.sample(at(sent + 40), RTT).expect("delivered");
        assert_eq!(sample.is_app_limited, is_app_limited);
    }
}
