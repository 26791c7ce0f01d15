use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::packet;
use crate::packet_number;
use crate::testing::hex;

fn encode(header: &ShortHeader, number: u64, number_len: usize) -> Vec<u8> {
    let mut buffer = vec![0; header.encoded_len() + number_len];
    let mut writer = Writer::new(&mut buffer);
    header.encode(&mut writer, number_len);
    assert_eq!(writer.position(), header.encoded_len());
    packet_number::write(&mut writer, number, number_len);
    buffer
}

#[test]
fn rfc_9001_a5_short_header() {
    let header = ShortHeader {
        destination: ConnectionId::EMPTY,
        spin: false,
        key_phase: false,
    };
    let bytes = encode(&header, 654_360_564, 3);
    assert_eq!(bytes, hex("4200bff4"));
    let packet = packet::decode(&bytes, 0, 0).unwrap();
    assert_eq!((packet.kind, packet.version), (PacketKind::OneRtt, 0));
    assert_eq!((packet.packet_number_offset, packet.end), (1, 4));
    assert_eq!(packet_number::expand(0x00bff4, 3, 654_360_564), 654_360_564);
}

#[test]
fn spin_and_key_phase_have_their_bits_and_reserved_bits_are_zero() {
    for (spin, key_phase) in [(false, false), (false, true), (true, false), (true, true)] {
        for number_len in 1..=4 {
            let header = ShortHeader {
                destination: ConnectionId::EMPTY,
                spin,
                key_phase,
            };
            let first_byte = encode(&header, 0, number_len)[0];
            assert_eq!(first_byte & 0xc0, 0x40);
            assert!(packet::reserved_bits_are_zero(first_byte));
            assert_eq!(spin_bit(first_byte), spin);
            assert_eq!(key_phase_bit(first_byte), key_phase);
            assert_eq!(packet::packet_number_len(first_byte), number_len);
        }
    }
}

#[test]
fn fixed_bit_zero_is_refused() {
    for first_byte in [0x00, 0x1f, 0x3f] {
        let bytes = [first_byte; 40];
        assert_eq!(
            packet::decode(&bytes, 0, 8),
            Err(PacketError::FixedBit),
            "{first_byte:#x}"
        );
    }
}

#[test]
fn a_packet_too_short_for_our_connection_id_is_malformed() {
    let bytes = hex("40 01020304");
    assert!(packet::decode(&bytes, 0, 4).is_ok());
    let error = DecodeError {
        kind: DecodeErrorKind::Truncated,
        offset: 1,
    };
    assert_eq!(
        packet::decode(&bytes, 0, 5),
        Err(PacketError::Malformed(error))
    );
}

#[test]
#[should_panic(expected = "1 to 4 bytes")]
fn a_packet_number_without_bytes_panics() {
    let header = ShortHeader {
        destination: ConnectionId::EMPTY,
        spin: false,
        key_phase: false,
    };
    header.encode(&mut Writer::new(&mut [0; 40]), 0);
}

proptest! {
    #[test]
    fn round_trips(
        id in prop::collection::vec(any::<u8>(), 0..=20), spin: bool, key_phase: bool,
    ) {
        let destination = ConnectionId::new(&id).unwrap();
        let bytes = encode(&ShortHeader { destination, spin, key_phase }, 9, 2);
        let packet = packet::decode(&bytes, 0, id.len()).unwrap();
        prop_assert_eq!(packet.destination, destination);
        prop_assert_eq!(packet.source, ConnectionId::EMPTY);
        prop_assert_eq!(packet.packet_number_offset, 1 + id.len());
        prop_assert_eq!(packet.end, bytes.len());
        prop_assert!(packet.token.is_empty());
    }
}
