use courser_base::Time;

use super::*;

fn packet(number: u64, ecn_marked: bool) -> Sent<u64> {
    Sent {
        time: Time::from_nanos(number),
        size: 40,
        path: 0,
        ack_eliciting: false,
        in_flight: false,
        ecn_marked,
        follows_in_batch: false,
        quic_bit_cleared: false,
        order: 0,
        is_mtu_probe: false,
        snapshot: 0,
        tx_in_flight: 0,
        frames: number,
    }
}

fn filled(numbers: impl IntoIterator<Item = u64>) -> AckOnlyPackets<u64> {
    let mut packets = AckOnlyPackets::new();
    for number in numbers {
        packets.push(number, packet(number, number % 2 == 0));
    }
    packets
}

#[test]
fn the_oldest_packet_is_removed_at_the_limit() {
    let limit = MAX_ACK_ONLY as u64;
    let mut packets = filled(0..limit);
    assert_eq!(packets.oldest(), Some(0));
    packets.push(limit, packet(limit, false));
    assert_eq!((packets.len(), packets.oldest()), (MAX_ACK_ONLY, Some(1)));
    let memory = packets.memory();
    (limit + 1..1_000_000).for_each(|number| packets.push(number, packet(number, false)));
    assert_eq!(packets.memory(), memory);
}

#[test]
fn a_range_is_taken_newest_first_and_once() {
    let mut packets = filled([3, 5, 8, 9, 20]);
    let taken = |packets: &mut AckOnlyPackets<u64>, range: RangeInclusive<u64>| {
        packets.take_newest(&range).map(|(number, sent)| {
            assert_eq!(sent.frames, number);
            number
        })
    };
    assert_eq!(taken(&mut packets, 4..=9), Some(9));
    assert_eq!(taken(&mut packets, 4..=9), Some(8));
    assert_eq!(taken(&mut packets, 4..=9), Some(5));
    assert_eq!(taken(&mut packets, 4..=9), None);
    assert_eq!(taken(&mut packets, 21..=u64::MAX), None);
    assert_eq!(taken(&mut packets, 0..=2), None);
    assert_eq!(packets.len(), 2);
}

#[test]
fn removal_returns_the_number_of_marked_packets() {
    let mut packets = filled(0..10);
    assert_eq!(packets.remove_through(4), 3);
    assert_eq!((packets.len(), packets.oldest()), (5, Some(5)));
    assert_eq!(packets.remove_through(u64::MAX), 2);
    assert!(packets.is_empty());
}

#[test]
fn memory_is_freed_once_all_packets_are_settled() {
    let mut packets = filled(0..1000);
    packets.remove_through(1000);
    assert!(packets.memory() <= 2 * KEPT * size_of::<(u64, Sent<u64>)>());
    packets.clear();
    assert_eq!(packets.memory(), 0);
}
