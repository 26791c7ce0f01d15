use proptest::prelude::*;

use super::*;
use crate::packet::PacketKind;
use crate::testing::{hex, hostile_bytes};

/// Initial, Handshake and 1-RTT packets for the connection ID `aabb`.
fn three_packets() -> Vec<u8> {
    let mut bytes = hex("c0 00000001 02aabb 01cc 00 4014");
    bytes.extend([0; 20]);
    bytes.extend(hex("e0 00000001 02aabb 01cc 4015"));
    bytes.extend([0; 21]);
    bytes.extend(hex("40 aabb"));
    bytes.extend([0; 22]);
    bytes
}

fn kinds(bytes: &[u8]) -> Vec<Result<PacketKind, PacketError>> {
    Packets::new(bytes, 2)
        .map(|packet| packet.map(|packet| packet.kind))
        .collect()
}

#[test]
fn packets_follow_each_other_without_gap() {
    let bytes = three_packets();
    let packets: Vec<_> = Packets::new(&bytes, 2).map(Result::unwrap).collect();
    let kinds: Vec<_> = packets.iter().map(|packet| packet.kind).collect();
    assert_eq!(
        kinds,
        [
            PacketKind::Initial,
            PacketKind::Handshake,
            PacketKind::OneRtt
        ]
    );
    let lens: Vec<_> = packets
        .iter()
        .map(|packet| packet.end - packet.packet_number_offset)
        .collect();
    assert_eq!(lens, [20, 21, 22]);
    assert_eq!(packets[2].end, bytes.len());
}

#[test]
fn packets_for_another_connection_id_are_skipped() {
    let mut bytes = three_packets();
    let handshake = bytes.iter().position(|&byte| byte == 0xe0).unwrap();
    bytes[handshake + 6] ^= 1;
    assert_eq!(
        kinds(&bytes),
        [Ok(PacketKind::Initial), Ok(PacketKind::OneRtt)]
    );
}

#[test]
fn the_first_malformed_packet_is_the_last_item() {
    let mut bytes = three_packets();
    let handshake = bytes.iter().position(|&byte| byte == 0xe0).unwrap();
    bytes[handshake] ^= 0x40;
    assert_eq!(
        kinds(&bytes),
        [Ok(PacketKind::Initial), Err(PacketError::FixedBit)]
    );
    bytes[handshake] ^= 0x40;
    bytes[handshake + 4] = 9;
    let found = kinds(&bytes);
    assert_eq!(found.len(), 2);
    assert!(matches!(
        found[1],
        Err(PacketError::UnknownVersion { version: 9, .. })
    ));
}

#[test]
fn zeros_after_a_packet_are_not_a_packet() {
    let mut bytes = hex("c0 00000001 02aabb 01cc 00 4014");
    bytes.extend([0; 20]);
    bytes.resize(1200, 0);
    assert_eq!(
        kinds(&bytes),
        [Ok(PacketKind::Initial), Err(PacketError::FixedBit)]
    );
}

#[test]
fn an_empty_datagram_has_no_packets() {
    assert!(kinds(&[]).is_empty());
}

proptest! {
    #[test]
    fn packets_of_hostile_datagrams_do_not_overlap(bytes in hostile_bytes(400)) {
        let mut last_end = 0;
        for packet in Packets::new(&bytes, 4).flatten() {
            prop_assert!(packet.packet_number_offset > last_end);
            prop_assert!(packet.end <= bytes.len());
            last_end = packet.end;
        }
    }

    #[test]
    fn three_packets_cut_or_flipped_never_panic(
        index in any::<prop::sample::Index>(), end in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut bytes = three_packets();
        let index = index.index(bytes.len());
        bytes[index] ^= 1_u8 << bit;
        let end = end.index(bytes.len() + 1);
        prop_assert!(kinds(&bytes[..end]).len() <= 40);
    }
}
