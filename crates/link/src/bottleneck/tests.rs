use bytes::Bytes;

use super::*;
use crate::packet::Packet;

fn numbered(index: u64, ecn: Ecn) -> Numbered {
    let end = ([10, 0, 0, 1], 1).into();
    let packet = Packet {
        source: end,
        destination: end,
        ecn,
        payload: Bytes::new(),
    };
    Numbered { index, packet }
}

/// The result of a run through one queue.
#[derive(Default, Debug)]
struct Outcome {
    passed: u64,
    full: u64,
    marked_out: u64,
    delays: Histogram,
    stats: LinkStats,
}

/// Offers 1000-byte packets every `gap` to 10 Mbyte/s for `seconds`: 100 us each.
fn overload(aqm: Aqm, ecn: Ecn, gap: Duration, seconds: u64) -> Outcome {
    let rate = Rate::from_bytes_per_second(10_000_000);
    let mut bottleneck = Bottleneck::new(rate, Limit::Bytes(2_000_000), aqm);
    let mut outcome = Outcome::default();
    let end = Time::ZERO + Duration::from_secs(seconds);
    let (mut arrival, mut index) = (Time::ZERO, 0);
    while arrival < end {
        match bottleneck.next_time().filter(|next| *next <= arrival) {
            Some(next) => {
                if let Some((_, left)) = bottleneck.pop(next, &mut outcome.stats) {
                    outcome.passed += 1;
                    outcome.marked_out += u64::from(left.packet.ecn == Ecn::Ce);
                }
            }
            None => {
                index += 1;
                let accepted = bottleneck.push(arrival, 1_000, numbered(index, ecn));
                outcome.full += u64::from(!accepted);
                arrival += gap;
            }
        }
    }
    outcome.delays = bottleneck.take_delays();
    outcome
}

/// The time between packets for 6 % more than the rate.
const ABOVE: Duration = Duration::from_micros(94);

#[test]
fn drop_tail_fills_up_and_keeps_the_queue_full() {
    let outcome = overload(Aqm::DropTail, Ecn::NotEct, ABOVE, 10);
    assert!(outcome.full > 3_000, "{outcome:?}");
    assert_eq!(outcome.stats.dropped.aqm, 0);
    // 2 MB at 10 MB/s.
    let longest = outcome.delays.max();
    assert!((Duration::from_millis(199)..=Duration::from_millis(201)).contains(&longest));
}

#[test]
fn codel_keeps_a_standing_queue_from_filling() {
    // One percent above the rate: CoDel needs some two seconds to reach that drop rate.
    let slightly = Duration::from_micros(99);
    let outcome = overload(Aqm::codel(), Ecn::NotEct, slightly, 60);
    assert!(outcome.stats.dropped.aqm > 1_000, "{outcome:?}");
    assert_eq!(outcome.stats.marked, 0);
    // Traffic that does not react is dropped until it fits.
    let late = outcome.passed as f64 / 600_000.0;
    assert!((0.99..1.001).contains(&late), "{late}");
    let median = outcome.delays.median();
    assert!(median < Duration::from_millis(20), "{median:?}");
}

#[test]
fn codel_drops_nothing_below_the_rate() {
    let below = Duration::from_micros(101);
    let outcome = overload(Aqm::codel(), Ecn::NotEct, below, 10);
    assert_eq!(outcome.stats.dropped.aqm + outcome.full, 0);
    assert_eq!(outcome.delays.max(), Duration::ZERO);
}

#[test]
fn codel_with_ecn_marks_ecn_capable_packets() {
    let outcome = overload(Aqm::codel_ecn(), Ecn::Ect0, ABOVE, 3);
    assert_eq!(outcome.stats.dropped.aqm, 0);
    assert!(outcome.stats.marked > 20, "{outcome:?}");
    assert_eq!(outcome.marked_out, outcome.stats.marked);
    let others = overload(Aqm::codel_ecn(), Ecn::NotEct, ABOVE, 3);
    assert_eq!(others.stats.marked, 0);
    assert!(others.stats.dropped.aqm > 20);
}

#[test]
fn l4s_marks_ect1_from_the_step_on_and_ect0_as_codel() {
    let scalable = overload(Aqm::l4s(), Ecn::Ect1, ABOVE, 1);
    // The queue grows by 6 us for each packet of 94 us, so it passes 1 ms after 16 ms.
    let unmarked = scalable.passed - scalable.stats.marked;
    assert!((160..175).contains(&unmarked), "{unmarked}");
    assert_eq!(scalable.stats.dropped.aqm, 0);

    let classic = overload(Aqm::l4s(), Ecn::Ect0, ABOVE, 3);
    let codel = overload(Aqm::codel_ecn(), Ecn::Ect0, ABOVE, 3);
    assert_eq!(classic.stats.marked, codel.stats.marked);

    let without = overload(Aqm::l4s(), Ecn::NotEct, ABOVE, 3);
    assert_eq!(without.stats.marked, 0);
    assert!(without.stats.dropped.aqm > 0);
}

#[test]
fn packet_limit_counts_waiting_packets() {
    let rate = Rate::from_bytes_per_second(1_000);
    let mut bottleneck = Bottleneck::new(rate, Limit::Packets(2), Aqm::DropTail);
    let mut stats = LinkStats::default();
    assert!(bottleneck.push(Time::ZERO, 1_000, numbered(1, Ecn::NotEct)));
    assert!(bottleneck.pop(Time::ZERO, &mut stats).is_some());
    let accepted: Vec<bool> = (2..=4)
        .map(|index| bottleneck.push(Time::ZERO, 1_000, numbered(index, Ecn::NotEct)))
        .collect();
    assert_eq!(accepted, [true, true, false]);
    let state = bottleneck.state(Time::ZERO);
    assert_eq!((state.bytes, state.packets), (2_000, 2));
    assert_eq!(state.delay, Duration::from_secs(3));
}
