use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::packet;
use crate::packet_number;
use crate::testing::hex;
use crate::version::{VERSION_1, VERSION_2};

const TYPES: [(PacketKind, u8); 3] = [
    (PacketKind::Initial, 0xc0),
    (PacketKind::ZeroRtt, 0xd0),
    (PacketKind::Handshake, 0xe0),
];

/// The types of version 2. RFC 9369 §3.2.
const TYPES_2: [(PacketKind, u8); 3] = [
    (PacketKind::Initial, 0xd0),
    (PacketKind::ZeroRtt, 0xe0),
    (PacketKind::Handshake, 0xf0),
];

fn id(digits: &str) -> ConnectionId {
    ConnectionId::new(&hex(digits)).unwrap()
}

/// Encodes the header with its packet number and `payload` zero bytes after it.
fn encode(header: &LongHeader<'_>, number: u64, number_len: usize, payload: usize) -> Vec<u8> {
    let mut buffer = vec![0; header.encoded_len() + number_len + payload];
    let mut writer = Writer::new(&mut buffer);
    let length_at = header.encode(&mut writer, number_len);
    assert_eq!(writer.position(), header.encoded_len());
    packet_number::write(&mut writer, number, number_len);
    patch_length(&mut buffer, length_at, number_len + payload);
    buffer
}

#[test]
fn rfc_9001_a2_client_initial_header() {
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: VERSION_1,
        destination: id("8394c8f03e515708"),
        source: ConnectionId::EMPTY,
        token: &[],
    };
    let bytes = encode(&header, 2, 4, 1162 + 16);
    assert_eq!(
        bytes[..22],
        hex("c300000001088394c8f03e5157080000449e00000002")
    );
    let packet = packet::decode(&bytes, 0, 0).unwrap();
    assert_eq!((packet.packet_number_offset, packet.end), (18, 1200));
    assert_eq!(packet.destination, header.destination);
}

#[test]
fn rfc_9001_a3_server_initial_header() {
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: VERSION_1,
        destination: ConnectionId::EMPTY,
        source: id("f067a5502a4262b5"),
        token: &[],
    };
    let bytes = encode(&header, 1, 2, 99 + 16);
    assert_eq!(bytes[..20], hex("c1000000010008f067a5502a4262b50040750001"));
}

#[test]
fn headers_match_rfc_9369_a2_and_a3() {
    let client = LongHeader {
        kind: PacketKind::Initial,
        version: VERSION_2,
        destination: id("8394c8f03e515708"),
        source: ConnectionId::EMPTY,
        token: &[],
    };
    let bytes = encode(&client, 2, 4, 1162 + 16);
    let expected = hex("d36b3343cf088394c8f03e5157080000449e00000002");
    assert_eq!(bytes[..22], expected);
    let packet = packet::decode(&bytes, 0, 0).unwrap();
    assert_eq!(
        (packet.kind, packet.version),
        (PacketKind::Initial, VERSION_2)
    );
    let server = LongHeader {
        destination: ConnectionId::EMPTY,
        source: id("f067a5502a4262b5"),
        ..client
    };
    let bytes = encode(&server, 1, 2, 99 + 16);
    assert_eq!(bytes[..20], hex("d16b3343cf0008f067a5502a4262b50040750001"));
}

#[test]
fn the_same_first_byte_has_another_kind_in_version_2() {
    for (first_byte, kind) in [
        (0xd0, PacketKind::Initial),
        (0xe0, PacketKind::ZeroRtt),
        (0xf0, PacketKind::Handshake),
        (0xc0, PacketKind::Retry),
    ] {
        let mut bytes = hex("c0 6b3343cf 00 00 00 4014");
        bytes.resize(40, 0);
        bytes[0] = first_byte;
        if !matches!(kind, PacketKind::Initial | PacketKind::Retry) {
            bytes.remove(7);
        }
        let packet = packet::decode(&bytes, 0, 0).unwrap();
        assert_eq!(packet.kind, kind, "{first_byte:#x}");
    }
}

#[test]
fn reserved_bits_are_written_as_zero_and_the_fixed_bit_as_one() {
    let types = |version, types: [_; 3]| types.map(|(kind, first)| (version, kind, first));
    let versions = [types(VERSION_1, TYPES), types(VERSION_2, TYPES_2)];
    for (version, kind, first_byte) in versions.concat() {
        for number_len in 1..=4 {
            let header = LongHeader {
                kind,
                version,
                destination: id("aabb"),
                source: id("cc"),
                token: b"t",
            };
            let bytes = encode(&header, 0, number_len, 20);
            let expected = first_byte | u8::try_from(number_len - 1).unwrap();
            assert_eq!(bytes[0], expected, "{kind:?}");
            assert!(packet::reserved_bits_are_zero(bytes[0]), "{kind:?}");
            assert_eq!(packet::packet_number_len(bytes[0]), number_len, "{kind:?}");
        }
    }
}

#[test]
fn only_initials_have_a_token() {
    for (kind, _) in TYPES {
        let header = LongHeader {
            kind,
            version: VERSION_1,
            destination: id("aabb"),
            source: id("cc"),
            token: b"token",
        };
        let bytes = encode(&header, 7, 2, 20);
        let packet = packet::decode(&bytes, 0, 0).unwrap();
        let token: &[u8] = if kind == PacketKind::Initial {
            b"token"
        } else {
            b""
        };
        assert_eq!(&bytes[packet.token], token, "{kind:?}");
        assert_eq!(
            bytes[packet.packet_number_offset..][..2],
            [0, 7],
            "{kind:?}"
        );
    }
}

#[test]
fn fixed_bit_zero_is_refused() {
    for first_byte in [0x80, 0x90, 0xa0, 0xb0] {
        let mut bytes = hex("c0 00000001 00 00 00 4014");
        bytes.resize(40, 0);
        bytes[0] = first_byte;
        assert_eq!(
            packet::decode(&bytes, 0, 0),
            Err(PacketError::FixedBit),
            "{first_byte:#x}"
        );
    }
}

#[test]
fn connection_id_above_20_bytes_is_refused_in_version_1() {
    for (first, second, offset) in [(21, 0, 6), (0, 21, 7), (255, 255, 6)] {
        for first_byte in [0xc0, 0xd0, 0xe0, 0xf0] {
            let mut bytes = vec![first_byte, 0, 0, 0, 1, first];
            bytes.extend(vec![1; usize::from(first)]);
            bytes.push(second);
            bytes.extend(vec![1; usize::from(second)]);
            bytes.extend([0; 40]);
            let kind = DecodeErrorKind::Invalid("connection id is longer than 20 bytes");
            let error = PacketError::Malformed(DecodeError { kind, offset });
            assert_eq!(packet::decode(&bytes, 0, 0), Err(error), "{first} {second}");
        }
    }
}

#[test]
fn length_beyond_the_datagram_is_refused() {
    for (length, is_whole) in [("4014", true), ("4015", false), ("ffffffffffffffff", false)] {
        for start in [
            "c0 00000001 00 00 00",
            "d0 00000001 00 00",
            "e0 00000001 00 00",
        ] {
            let mut bytes = hex(start);
            bytes.extend(hex(length));
            bytes.extend([0; 20]);
            assert_eq!(
                packet::decode(&bytes, 0, 0).is_ok(),
                is_whole,
                "{start} {length}"
            );
        }
    }
}

#[test]
fn token_beyond_the_datagram_is_refused() {
    for token in ["13", "ffffffffffffffff"] {
        let mut bytes = hex("c0 00000001 00 00");
        bytes.extend(hex(token));
        bytes.extend([0; 18]);
        let error = packet::decode(&bytes, 0, 0).unwrap_err();
        assert!(matches!(error, PacketError::Malformed(_)), "{token}");
    }
}

#[test]
#[should_panic(expected = "at most 16383 bytes")]
fn length_beyond_two_bytes_panics() {
    patch_length(&mut [0; 2], 0, MAX_LENGTH + 1);
}

#[test]
#[should_panic(expected = "not encoded by LongHeader")]
fn one_rtt_has_no_long_header() {
    let header = LongHeader {
        kind: PacketKind::OneRtt,
        version: VERSION_1,
        destination: ConnectionId::EMPTY,
        source: ConnectionId::EMPTY,
        token: &[],
    };
    header.encode(&mut Writer::new(&mut [0; 40]), 1);
}

proptest! {
    #[test]
    fn round_trips(
        kind in 0..3_usize,
        version in prop::sample::select(vec![VERSION_1, VERSION_2]),
        destination in prop::collection::vec(any::<u8>(), 0..=20),
        source in prop::collection::vec(any::<u8>(), 0..=20),
        token in prop::collection::vec(any::<u8>(), 0..100),
        number_len in 1..=4_usize,
        payload in 0..300_usize,
    ) {
        let (kind, _) = TYPES[kind];
        let token = if kind == PacketKind::Initial { token } else { Vec::new() };
        let header = LongHeader {
            kind,
            version,
            destination: ConnectionId::new(&destination).unwrap(),
            source: ConnectionId::new(&source).unwrap(),
            token: &token,
        };
        let bytes = encode(&header, 0, number_len, payload);
        let packet = packet::decode(&bytes, 0, 3).unwrap();
        prop_assert_eq!((packet.kind, packet.version), (kind, version));
        prop_assert_eq!(packet.destination, header.destination);
        prop_assert_eq!(packet.source, header.source);
        prop_assert_eq!(&bytes[packet.token.clone()], &token);
        prop_assert_eq!(packet.packet_number_offset, header.encoded_len());
        prop_assert_eq!(packet.end, bytes.len());
    }
}
