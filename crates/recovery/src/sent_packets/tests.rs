use std::collections::BTreeMap;

use courser_base::Time;
use proptest::prelude::*;

use super::*;

fn packet(frames: u64) -> Sent<u64> {
    Sent {
        time: Time::from_nanos(frames),
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
        frames,
    }
}

fn filled(numbers: impl IntoIterator<Item = u64>) -> SentPackets<u64> {
    let mut sent = SentPackets::new();
    for number in numbers {
        sent.push(number, packet(number));
    }
    sent
}

#[test]
fn a_slot_is_one_cache_line_with_32_bytes_of_frames() {
    assert_eq!(size_of::<Slot<[u64; 4]>>(), 64);
    assert_eq!(align_of::<Slot<[u64; 4]>>(), 64);
}

fn only_ack(number: u64) -> Sent<u64> {
    Sent {
        ack_eliciting: false,
        in_flight: false,
        ..packet(number)
    }
}

/// Attack A24.
#[test]
fn ack_only_packets_take_no_slot() {
    let mut sent = filled(0..3);
    (3..300_000).for_each(|number| sent.push(number, only_ack(number)));
    sent.push(300_000, packet(300_000));
    assert_eq!(sent.len(), 4);
    assert!(sent.memory() < 32 * 1024, "{} bytes", sent.memory());
    assert_eq!(sent.oldest(), Some(0));
    assert_eq!(sent.get(2).map(|packet| packet.frames), Some(2));
    assert_eq!(sent.take(200_000), None);
    assert_eq!(
        sent.take(300_000).map(|packet| packet.frames),
        Some(300_000)
    );
    let newest = sent.ack_only_mut().take_newest(&(0..=u64::MAX));
    assert_eq!(newest.map(|(number, _)| number), Some(299_999));
}

/// Attack A25: the cost of an ACK depends on what it newly acknowledges, not on what it repeats.
#[test]
fn settled_packets_take_no_steps() {
    let mut sent = filled(0..100_000);
    let mut taken = 0;
    for largest in (1000..100_000).step_by(10) {
        // Packet 0 is never acknowledged, all others repeatedly, from varying starts.
        sent.take_range(1 + largest % 900..=largest, |_, _| taken += 1);
    }
    assert!(taken > 98_000);
    let steps = sent.steps();
    assert!(steps < 3 * taken, "{steps} steps for {taken} packets");
    for start in 1000..11_000 {
        sent.take_range(start..=99_000, |_, _| taken += 1);
    }
    let more = sent.steps() - steps;
    assert!(more < 10_000 * 8, "{more} steps for 10,000 old ranges");
}

#[test]
fn a_packet_is_returned_once() {
    let mut sent = filled(0..3);
    let second = Sent {
        order: 1,
        ..packet(1)
    };
    assert_eq!(sent.get(1), Some(&second));
    assert_eq!(sent.take(1), Some(second));
    assert_eq!(sent.take(1), None);
    assert_eq!(sent.get(1), None);
    assert_eq!(sent.len(), 2);
}

#[test]
fn numbers_never_sent_are_not_found() {
    let mut sent = filled(5..8);
    assert_eq!(sent.next_expected(), 8);
    for number in [0, 4, 8, u64::MAX] {
        assert_eq!(sent.take(number), None, "{number}");
    }
}

#[test]
fn oldest_follows_removed_packets() {
    let mut sent = filled(0..5);
    sent.take(1);
    assert_eq!(sent.oldest(), Some(0));
    sent.take(0);
    assert_eq!(sent.oldest(), Some(2));
    sent.take_range(0..=u64::MAX, |_, _| {});
    assert_eq!(sent.oldest(), None);
    assert!(sent.is_empty());
}

#[test]
fn take_range_is_ascending_and_leaves_other_packets() {
    let mut sent = filled(10..20);
    sent.take(13);
    let mut taken = Vec::new();
    sent.take_range(0..=15, |number, _| taken.push(number));
    assert_eq!(taken, [10, 11, 12, 14, 15]);
    sent.take_range(0..=u64::MAX, |number, _| taken.push(number));
    assert_eq!(taken.len(), 9);
}

#[test]
fn skipped_numbers_are_recorded() {
    let mut sent = filled([0, 1, 3, 4, 7]);
    assert_eq!(
        (0..9).filter(|n| sent.was_skipped(*n)).collect::<Vec<_>>(),
        [2, 5, 6]
    );
    assert_eq!(sent.skipped_in(&(0..=1)), None);
    assert_eq!(sent.skipped_in(&(3..=4)), None);
    assert_eq!(sent.skipped_in(&(0..=4)), Some(2));
    assert_eq!(sent.skipped_in(&(6..=u64::MAX)), Some(6));
    sent.take_all(|_, _| {});
    assert!(
        sent.was_skipped(2),
        "skipped numbers outlast the sent packets"
    );
}

#[test]
fn an_acknowledged_packet_is_not_a_skipped_one() {
    let mut sent = filled(0..4);
    sent.take(2);
    assert!(!sent.was_skipped(2));
}

#[test]
fn memory_for_skipped_numbers_is_bounded() {
    let mut sent = SentPackets::new();
    for number in 0..10_000 {
        sent.push(number * 2, packet(number));
        sent.take(number * 2).expect("the packet was sent");
    }
    assert_eq!(sent.skipped.len(), MAX_SKIPPED_RANGES);
    assert!(sent.was_skipped(19_997));
    assert!(sent.memory() < 2048);
}

#[test]
fn a_ring_of_the_maximum_span_is_full() {
    let mut sent = filled(0..MAX_SENT_PACKETS - 1);
    assert!(!sent.is_full());
    sent.push(MAX_SENT_PACKETS - 1, packet(0));
    assert!(sent.is_full());
    sent.push(MAX_SENT_PACKETS, packet(0)); // A probe still fits.
    sent.take_range(0..=1, |_, _| {});
    assert!(!sent.is_full());
    assert_eq!(sent.slots.len(), 262_144);
}

#[test]
fn steady_state_does_not_allocate() {
    let mut sent = filled(0..100);
    let slots = sent.slots.as_ptr();
    for number in 100..100_000 {
        sent.push(number, packet(number));
        sent.take(number - 100);
    }
    assert_eq!(sent.slots.as_ptr(), slots);
}

#[test]
fn bursts_that_empty_the_ring_do_not_allocate() {
    let mut sent = filled(0..100);
    let slots = sent.slots.as_ptr();
    for burst in 1..1000 {
        sent.take_range(0..=u64::MAX, |_, _| {});
        (burst * 100..(burst + 1) * 100).for_each(|number| sent.push(number, packet(number)));
    }
    assert_eq!(sent.slots.as_ptr(), slots);
}

#[test]
fn a_ring_little_used_shrinks() {
    let mut sent = filled(0..10_000);
    sent.take_range(0..=u64::MAX, |_, _| {});
    assert_eq!(sent.slots.len(), 16_384);
    sent.push(10_000, packet(0));
    sent.take(10_000);
    assert_eq!(sent.slots.len(), MIN_SLOTS);
}

/// Two spaces of each half-open handshake have such rings (attack A05).
#[test]
fn the_first_packets_take_a_small_ring() {
    let sent = filled(0..4);
    assert_eq!(sent.slots.len(), INITIAL_SLOTS);
    assert!(sent.memory() <= 4 * 72 + 128, "{} bytes", sent.memory());
}

#[test]
fn an_empty_ring_takes_no_memory_after_shrink() {
    let mut sent = filled(0..10_000);
    sent.take_all(|_, _| {});
    assert_eq!(sent.memory(), 0);
    sent.push(10_000, packet(1));
    assert_eq!(sent.take(10_000).map(|packet| packet.frames), Some(1));
}

#[test]
fn shrink_keeps_packets_in_flight() {
    let mut sent = filled(0..1000);
    sent.take_range(0..=989, |_, _| {});
    sent.shrink();
    assert_eq!(sent.slots.len(), MIN_SLOTS);
    assert_eq!(
        sent.iter().map(|(number, _)| number).collect::<Vec<_>>(),
        Vec::from_iter(990..1000)
    );
}

#[test]
fn the_largest_packet_numbers_are_supported() {
    let last = (1 << 62) - 1;
    let mut sent = filled([last - 1, last]);
    assert_eq!(sent.len(), 2);
    sent.take_range(last..=u64::MAX, |_, _| {});
    assert_eq!(sent.oldest(), Some(last - 1));
}

#[derive(Clone, Debug)]
enum Step {
    Send { skip: u64, count: u64 },
    SendAcks { count: u64 },
    Take { back: u64 },
    TakeRange { from: u64, len: u64 },
    Shrink,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..3, 1u64..60).prop_map(|(skip, count)| Step::Send { skip, count }),
        2 => (1u64..200).prop_map(|count| Step::SendAcks { count }),
        6 => (0u64..80).prop_map(|back| Step::Take { back }),
        3 => (0u64..200, 0u64..100).prop_map(|(from, len)| Step::TakeRange { from, len }),
        1 => Just(Step::Shrink),
    ]
}

proptest! {
    #[test]
    fn ring_behaves_like_a_map(steps in prop::collection::vec(step(), 1..120)) {
        let mut sent = SentPackets::new();
        let mut model = BTreeMap::new();
        let mut skipped = Vec::new();
        let (mut next, mut in_flight) = (0, 0);
        for step in steps {
            match step {
                Step::Send { skip, count } => {
                    skipped.extend(next..next + skip);
                    next += skip;
                    for number in next..next + count {
                        sent.push(number, packet(number));
                        let packet = Sent { order: in_flight, ..packet(number) };
                        model.insert(number, packet);
                        in_flight += 1;
                    }
                    next += count;
                }
                Step::SendAcks { count } => {
                    (next..next + count).for_each(|number| sent.push(number, only_ack(number)));
                    next += count;
                }
                Step::Take { back } => {
                    let number = next.saturating_sub(back);
                    prop_assert_eq!(sent.take(number), model.remove(&number));
                }
                Step::TakeRange { from, len } => {
                    let start = next.saturating_sub(from);
                    let mut taken = Vec::new();
                    sent.take_range(start..=start + len, |number, packet| taken.push((number, packet)));
                    let keys: Vec<_> = model.range(start..=start + len).map(|(n, _)| *n).collect();
                    let expected: Vec<_> =
                        keys.into_iter().map(|n| (n, model.remove(&n).unwrap())).collect();
                    prop_assert_eq!(taken, expected);
                }
                Step::Shrink => sent.shrink(),
            }
            prop_assert_eq!(sent.len(), model.len());
            prop_assert_eq!(sent.is_empty(), model.is_empty());
            prop_assert_eq!(sent.oldest(), model.keys().next().copied());
            prop_assert_eq!(sent.next_expected(), next);
            for number in next.saturating_sub(100)..next {
                prop_assert_eq!(sent.get(number), model.get(&number));
            }
        }
        let left: Vec<_> = sent.iter().map(|(number, packet)| (number, *packet)).collect();
        prop_assert_eq!(left, Vec::from_iter(model));
        let recent = next.saturating_sub(10);
        for number in recent..next {
            prop_assert_eq!(sent.was_skipped(number), skipped.contains(&number));
        }
    }
}
