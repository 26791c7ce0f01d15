use proptest::prelude::*;

use super::*;
use crate::connection_id::ConnectionId;
use crate::error::DecodeErrorKind;
use crate::testing::{hex, hostile_bytes};

/// The header of the server's Initial packet in RFC 9001 §A.3, followed by as many bytes as its
/// Length field counts.
fn server_initial() -> Vec<u8> {
    let mut bytes = hex("c1 00000001 00 08f067a5502a4262b5 00 4075 0001");
    bytes.resize(bytes.len() + 0x75 - 2, 0xaa);
    bytes
}

#[test]
fn rfc_9001_a3_server_initial_is_read() {
    let bytes = server_initial();
    let packet = decode(&bytes, 0, 8).unwrap();
    assert_eq!((packet.kind, packet.version), (PacketKind::Initial, 1));
    assert_eq!(packet.destination, ConnectionId::EMPTY);
    assert_eq!(&*packet.source, hex("f067a5502a4262b5"));
    assert!(packet.token.is_empty());
    assert_eq!(bytes[packet.packet_number_offset..][..2], [0x00, 0x01]);
    assert_eq!(packet.end, bytes.len());
    assert_eq!(packet_number_len(bytes[0]), 2);
}

#[test]
fn long_header_cut_anywhere_is_malformed() {
    let bytes = server_initial();
    for end in 0..bytes.len() {
        let error = decode(&bytes[..end], 0, 8).unwrap_err();
        let PacketError::Malformed(error) = error else {
            panic!("{error:?} when cut at {end}")
        };
        assert_eq!(error.kind, DecodeErrorKind::Truncated, "cut at {end}");
    }
}

#[test]
fn unknown_version_keeps_ids_of_any_length() {
    for (destination, source) in [(0, 0), (8, 20), (21, 0), (255, 255)] {
        let mut bytes = vec![0x80, 0x0a, 0x1a, 0x2a, 0x3a];
        bytes.push(u8::try_from(destination).unwrap());
        bytes.extend(vec![1; destination]);
        bytes.push(u8::try_from(source).unwrap());
        bytes.extend(vec![2; source]);
        bytes.extend([9; 7]);
        let expected = PacketError::UnknownVersion {
            version: 0x0a1a_2a3a,
            destination: 6..6 + destination,
            source: 7 + destination..7 + destination + source,
        };
        assert_eq!(
            decode(&bytes, 0, 8),
            Err(expected),
            "{destination} {source}"
        );
    }
}

#[test]
fn fixed_bit_does_not_matter_in_unknown_versions() {
    let bytes = hex("80 0a0a0a0a 00 00");
    let unknown = decode(&bytes, 0, 8).unwrap_err();
    assert!(matches!(
        unknown,
        PacketError::UnknownVersion {
            version: 0x0a0a_0a0a,
            ..
        }
    ));
}

#[test]
fn offsets_count_from_the_start_of_the_datagram() {
    let mut bytes = vec![0x55; 3];
    bytes.extend(server_initial());
    let packet = decode(&bytes, 3, 8).unwrap();
    let alone = decode(&bytes[3..], 0, 8).unwrap();
    assert_eq!(packet.packet_number_offset, alone.packet_number_offset + 3);
    assert_eq!(packet.end, alone.end + 3);
    assert_eq!(packet.token.start, alone.token.start + 3);
}

#[test]
fn a_start_at_or_past_the_end_is_malformed() {
    for start in [3, 4, usize::MAX] {
        let error = decode(&[0x40; 3], start, 0).unwrap_err();
        assert!(matches!(error, PacketError::Malformed(_)), "{start}");
    }
}

#[test]
fn reserved_bits_differ_in_long_and_short_headers() {
    for first_byte in 0..=u8::MAX {
        let mask = if first_byte & 0x80 == 0 {
            0b0001_1000
        } else {
            0b0000_1100
        };
        assert_eq!(
            reserved_bits_are_zero(first_byte),
            first_byte & mask == 0,
            "{first_byte:#x}"
        );
        assert_eq!(
            packet_number_len(first_byte),
            usize::from(first_byte % 4) + 1
        );
    }
}

#[test]
fn errors_display_their_cause() {
    let unknown = PacketError::UnknownVersion {
        version: 0xa,
        destination: 0..0,
        source: 0..0,
    };
    assert_eq!(unknown.to_string(), "unknown version 0x0000000a");
    assert_eq!(PacketError::FixedBit.to_string(), "fixed bit is 0");
    let malformed = decode(&[0xc0], 0, 0).unwrap_err();
    assert_eq!(malformed.to_string(), "truncated at byte 1");
}

/// Generates bytes that start with a likely first byte and version of a packet of version 1.
fn likely_packet() -> impl Strategy<Value = Vec<u8>> {
    let version = prop_oneof![
        Just(vec![0, 0, 0, 1]),
        Just(vec![0, 0, 0, 0]),
        prop::collection::vec(any::<u8>(), 4),
    ];
    (any::<u8>(), version, hostile_bytes(200))
        .prop_map(|(first_byte, version, rest)| [vec![first_byte], version, rest].concat())
}

proptest! {
    #[test]
    fn random_bytes_never_panic_any_packet_decoder(
        bytes in prop_oneof![hostile_bytes(300), likely_packet()],
        start in 0..20_usize,
        local_cid_len in 0..=20_usize,
    ) {
        for start in [0, start] {
            if let Ok(packet) = decode(&bytes, start, local_cid_len) {
                prop_assert!(packet.packet_number_offset > start);
                prop_assert!(packet.packet_number_offset <= packet.end);
                prop_assert!(packet.end <= bytes.len());
                prop_assert!(packet.token.start <= packet.token.end);
                prop_assert!(packet.token.end <= packet.packet_number_offset);
            }
        }
        let _ = destination_of(&bytes, local_cid_len);
        let _ = retry_parts(&bytes);
        let _ = version_negotiation::decode(&bytes);
        let _ = invariants::decode(&bytes, start);
    }

    #[test]
    fn destination_of_agrees_with_decode(
        bytes in likely_packet(), local_cid_len in 0..=20_usize,
    ) {
        if let Ok(packet) = decode(&bytes, 0, local_cid_len) {
            prop_assert_eq!(destination_of(&bytes, local_cid_len), Some(&*packet.destination));
        }
    }
}

#[test]
fn a_cleared_fixed_bit_is_read_on_request_only() {
    let mut long = hex("c0 00000001 00 00 00 4014");
    long.resize(40, 0);
    for mut bytes in [long, vec![0x41; 30]] {
        let whole = decode(&bytes, 0, 4).unwrap();
        assert!(has_fixed_bit(bytes[0]));
        clear_fixed_bit(&mut bytes[0]);
        assert!(!has_fixed_bit(bytes[0]));
        assert_eq!(decode(&bytes, 0, 4), Err(PacketError::FixedBit));
        let greased = decode_greased(&bytes, 0, 4, true).unwrap();
        assert_eq!((greased.kind, greased.end), (whole.kind, whole.end));
    }
}
