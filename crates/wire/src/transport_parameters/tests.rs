use std::num::NonZeroU8;

use courser_base::Side;
use proptest::prelude::*;

use super::*;
use crate::stream_id::MAX_STREAMS;
use crate::testing::{hex, hostile_bytes, varints};
use crate::version::{VERSION_1, VERSION_2, Version, Versions, is_reserved};

const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

fn decode(digits: &str, sent_by: Side) -> Result<TransportParameters, ParameterError> {
    TransportParameters::decode(&hex(digits), sent_by)
}

/// Checks that the bytes are refused with this error if a server sends them.
fn assert_refused(digits: &str, parameter: u64, reason: &'static str) {
    let error = Err(ParameterError { parameter, reason });
    assert_eq!(decode(digits, Side::Server), error, "{digits}");
}

fn assert_refused_from_client(digits: &str, parameter: u64) {
    assert!(decode(digits, Side::Server).is_ok(), "{digits}");
    let error = ParameterError {
        parameter,
        reason: "was sent by a client",
    };
    assert_eq!(decode(digits, Side::Client), Err(error), "{digits}");
}

fn encode(parameters: &TransportParameters, grease: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.encode(&mut bytes, grease);
    bytes
}

/// Returns the IDs of the parameters in an encoding.
fn numbers(bytes: &[u8]) -> Vec<u64> {
    let mut reader = crate::Reader::new(bytes);
    let mut numbers = Vec::new();
    while !reader.is_empty() {
        numbers.push(reader.varint().unwrap());
        reader.varint_bytes().unwrap();
    }
    numbers
}

/// Returns parameters that all differ from their defaults.
fn all() -> TransportParameters {
    let id = |digits| ConnectionId::new(&hex(digits));
    TransportParameters {
        original_destination_connection_id: id("8394c8f03e515708"),
        max_idle_timeout: 30_000,
        stateless_reset_token: Some([7; 16]),
        max_udp_payload_size: 1472,
        initial_max_data: 1 << 20,
        initial_max_stream_data_bidi_local: 1 << 18,
        initial_max_stream_data_bidi_remote: (1 << 18) + 1,
        initial_max_stream_data_uni: (1 << 18) + 2,
        initial_max_streams_bidi: 100,
        initial_max_streams_uni: MAX_STREAMS,
        ack_delay_exponent: 20,
        max_ack_delay: (1 << 14) - 1,
        disable_active_migration: true,
        preferred_address: Some(PreferredAddress {
            ipv4: Some("192.0.2.1:443".parse().unwrap()),
            ipv6: Some("[2001:db8::1]:4433".parse().unwrap()),
            id: id("aabb").unwrap(),
            reset_token: [9; 16],
        }),
        active_connection_id_limit: 4,
        initial_source_connection_id: id("f067a5502a4262b5"),
        retry_source_connection_id: id("00"),
        min_ack_delay: Some(1000),
        max_datagram_frame_size: 65535,
        reset_stream_at: true,
        version_information: Some(VersionInformation::new(Version::V2, Versions::ALL)),
        grease_quic_bit: true,
        initial_max_path_id: Some(PathId::new(3)),
        address_discovery: Some(AddressDiscovery::Both),
        max_candidates: NonZeroU8::new(8),
    }
}

#[test]
fn absent_parameters_have_the_defaults_of_rfc_9000_18_2() {
    let parameters = decode("", Side::Client).unwrap();
    assert_eq!(parameters, TransportParameters::default());
    assert_eq!(parameters.max_udp_payload_size, 65527);
    assert_eq!(parameters.ack_delay_exponent, 3);
    assert_eq!(parameters.max_ack_delay, 25);
    assert_eq!(parameters.active_connection_id_limit, 2);
    assert_eq!(parameters.max_idle_timeout, 0);
    assert_eq!(parameters.min_ack_delay, None);
    assert_eq!(parameters.max_datagram_frame_size, 0, "RFC 9221 §3");
    assert!(encode(&parameters, None).is_empty());
}

#[test]
fn all_parameters_round_trip() {
    let bytes = encode(&all(), None);
    assert_eq!(TransportParameters::decode(&bytes, Side::Server), Ok(all()));
}

#[test]
fn each_parameter_is_written_under_its_number_and_once() {
    let mut found = numbers(&encode(&all(), None));
    found.sort_unstable();
    let known = (0..=0x11).chain([
        0x1d,
        0x20,
        0x3e,
        0x2ab2,
        0x9f81_a176,
        0xff04_de1b,
        0x3d7f_9112_0401,
    ]);
    assert_eq!(found, known.collect::<Vec<_>>());
}

#[test]
fn encoding_matches_rfc_9000_18_2() {
    let digits = "01 02 4064 03 02 44b0 04 01 01 05 01 02 06 01 03 07 01 04 08 01 05 09 01 06
        0a 01 07 0b 01 08 0c 00 0e 01 09 0f 02 aabb";
    let parameters = decode(digits, Side::Client).unwrap();
    let expected = TransportParameters {
        max_idle_timeout: 100,
        max_udp_payload_size: 1200,
        initial_max_data: 1,
        initial_max_stream_data_bidi_local: 2,
        initial_max_stream_data_bidi_remote: 3,
        initial_max_stream_data_uni: 4,
        initial_max_streams_bidi: 5,
        initial_max_streams_uni: 6,
        ack_delay_exponent: 7,
        max_ack_delay: 8,
        disable_active_migration: true,
        active_connection_id_limit: 9,
        initial_source_connection_id: ConnectionId::new(&[0xaa, 0xbb]),
        ..TransportParameters::default()
    };
    assert_eq!(parameters, expected);
}

#[test]
fn the_order_does_not_matter() {
    let digits = "0f 02 aabb 0b 01 08 01 02 4064";
    let parameters = decode(digits, Side::Client).unwrap();
    assert_eq!(
        (parameters.max_ack_delay, parameters.max_idle_timeout),
        (8, 100)
    );
}

#[test]
fn truncated_encoding_never_decodes_to_all_parameters() {
    let bytes = encode(&all(), None);
    for end in 0..bytes.len() {
        let cut = TransportParameters::decode(&bytes[..end], Side::Server);
        assert_ne!(cut, Ok(all()), "cut at {end}");
    }
}

#[test]
fn length_beyond_the_extension_is_refused() {
    let reason = "is longer than the extension";
    assert_refused("04 02 01", 0x04, reason);
    assert_refused("04", 0x04, reason);
    assert_refused("4123 ffffffffffffffff 00", 0x123, reason);
    assert_refused("04 01 01 40", u64::MAX, "is truncated within its id");
}

#[test]
fn length_that_does_not_fit_the_number_is_refused() {
    let reason = "is not exactly one varint";
    assert_refused("c0000000 ff04de1b 00", 0xff04_de1b, reason);
    assert_refused("c0000000 ff04de1b 02 0505", 0xff04_de1b, reason);
    for parameter in [
        0x01_u64, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0e,
    ] {
        assert_refused(&format!("{parameter:02x} 00"), parameter, reason);
        assert_refused(&format!("{parameter:02x} 02 0505"), parameter, reason);
        assert_refused(&format!("{parameter:02x} 01 45"), parameter, reason);
    }
}

#[test]
fn numbers_may_be_in_longer_varints_than_needed() {
    let parameters = decode("0b 02 4005", Side::Client).unwrap();
    assert_eq!(parameters.max_ack_delay, 5);
}

#[test]
fn repeated_parameter_is_refused() {
    assert_refused("04 01 01 04 01 01", 0x04, "is repeated");
    assert_refused("0c 00 01 01 05 0c 00", 0x0c, "is repeated");
    assert_refused("40ff 00 40ff 00", 0xff, "is repeated");
    assert_refused("20 01 00 20 01 00", 0x20, "is repeated");
    assert_refused("21 00 21 01 00", 0x21, "is repeated");
    assert_refused("0f 00 0f 00", 0x0f, "is repeated");
}

/// Any number is allowed, and 0 is equivalent to no parameter. RFC 9221 §3.
#[test]
fn max_datagram_frame_size_is_a_varint_of_any_size() {
    for (digits, size) in [("20 01 00", 0), ("20 04 8000ffff", 65_535)] {
        let parameters = decode(digits, Side::Client).unwrap();
        assert_eq!(parameters.max_datagram_frame_size, size);
    }
    assert_refused("20 00", 0x20, "is not exactly one varint");
    assert_refused("20 02 0102", 0x20, "is not exactly one varint");
}

#[test]
fn unknown_parameters_are_skipped() {
    let digits = "21 01 ff 40ff 00 c0000000 ff00de1a 02 4242 01 02 4064";
    let parameters = decode(digits, Side::Client).unwrap();
    let expected = TransportParameters {
        max_idle_timeout: 100,
        ..Default::default()
    };
    assert_eq!(parameters, expected);
}

#[test]
fn reserved_parameters_are_skipped() {
    for n in [0_u64, 1, 2, 1000] {
        let mut bytes = vec![0; 10];
        let mut writer = crate::Writer::new(&mut bytes);
        writer.varint_of_len(31 * n + 27, 8);
        writer.varint_bytes(&[0xff]);
        let parameters = TransportParameters::decode(&bytes, Side::Client);
        assert_eq!(parameters, Ok(TransportParameters::default()), "{n}");
    }
}

#[test]
fn more_unknown_parameters_than_are_remembered_are_skipped() {
    let mut bytes = Vec::new();
    for number in 0..20_000_u16 {
        bytes.extend([0x80, 1]);
        bytes.extend(number.to_be_bytes());
        bytes.push(0);
    }
    let parameters = TransportParameters::decode(&bytes, Side::Client);
    assert_eq!(parameters, Ok(TransportParameters::default()));
    bytes.extend([0x80, 1, 0, 63, 0]);
    let error = ParameterError {
        parameter: 0x1_003f,
        reason: "is repeated",
    };
    assert_eq!(
        TransportParameters::decode(&bytes, Side::Client),
        Err(error)
    );
}

#[test]
fn original_destination_connection_id_from_a_client_is_refused() {
    assert_refused_from_client("00 02 aabb", 0x00);
}

#[test]
fn stateless_reset_token_from_a_client_is_refused() {
    assert_refused_from_client(&format!("02 10 {TOKEN}"), 0x02);
}

#[test]
fn preferred_address_from_a_client_is_refused() {
    let digits = format!("0d 2a c0000201 01bb {} 0000 01 aa {TOKEN}", "00".repeat(16));
    assert_refused_from_client(&digits, 0x0d);
}

#[test]
fn retry_source_connection_id_from_a_client_is_refused() {
    assert_refused_from_client("10 02 aabb", 0x10);
}

#[test]
fn stateless_reset_token_of_another_length_is_refused() {
    let reason = "is not 16 bytes long";
    assert_refused("02 00", 0x02, reason);
    assert_refused(&format!("02 0f {}", &TOKEN[..30]), 0x02, reason);
    assert_refused(&format!("02 11 {TOKEN} 10"), 0x02, reason);
}

#[test]
fn max_udp_payload_size_below_1200_is_refused() {
    assert_refused("03 02 44af", 0x03, "is below 1200");
    assert_refused("03 01 00", 0x03, "is below 1200");
    assert!(decode("03 02 44b0", Side::Client).is_ok());
    assert!(decode("03 08 ffffffffffffffff", Side::Client).is_ok());
}

#[test]
fn initial_max_streams_above_2_60_is_refused() {
    assert_refused("08 08 d000000000000001", 0x08, "is above 2^60");
    assert_refused("09 08 ffffffffffffffff", 0x09, "is above 2^60");
    assert!(
        decode(
            "08 08 d000000000000000 09 08 d000000000000000",
            Side::Client
        )
        .is_ok()
    );
}

#[test]
fn ack_delay_exponent_above_20_is_refused() {
    assert_refused("0a 01 15", 0x0a, "is above 20");
    assert!(decode("0a 01 14", Side::Client).is_ok());
}

#[test]
fn max_ack_delay_of_2_14_is_refused() {
    assert_refused("0b 04 80004000", 0x0b, "is not below 2^14");
    assert!(decode("0b 02 7fff", Side::Client).is_ok());
}

#[test]
fn min_ack_delay_above_max_ack_delay_is_refused() {
    let reason = "is above max_ack_delay";
    // 25 001 us, and 25 000, against the default of 25 ms.
    assert_refused("c0000000 ff04de1b 04 800061a9", 0xff04_de1b, reason);
    assert!(decode("c0000000 ff04de1b 04 800061a8", Side::Client).is_ok());
    // The order of the two does not matter.
    assert_refused("c0000000 ff04de1b 02 47d0 0b 01 01", 0xff04_de1b, reason);
    assert!(decode("c0000000 ff04de1b 02 47d0 0b 01 02", Side::Client).is_ok());
    assert!(decode("0b 01 00 c0000000 ff04de1b 01 00", Side::Client).is_ok());
}

#[test]
fn active_connection_id_limit_below_2_is_refused() {
    assert_refused("0e 01 00", 0x0e, "is below 2");
    assert_refused("0e 01 01", 0x0e, "is below 2");
    assert!(decode("0e 01 02", Side::Client).is_ok());
}

#[test]
fn reset_stream_at_is_a_flag() {
    assert!(!decode("", Side::Client).unwrap().reset_stream_at);
    assert!(decode("1d 00", Side::Client).unwrap().reset_stream_at);
    // WT-v-015: the number of older drafts is accepted too, also beside the registered one, which is sent.
    let older = "c017f7586d2cb571";
    for bytes in [format!("{older} 00"), format!("1d 00 {older} 00")] {
        let parameters = decode(&bytes, Side::Client).unwrap();
        assert!(parameters.reset_stream_at);
    }
    let error = decode(&format!("{older} 01 00"), Side::Client).unwrap_err();
    assert_eq!(error.reason, "has a value");
    assert!(decode(&format!("{older} 00 {older} 00"), Side::Client).is_err());
    assert_refused("1d 01 00", 0x1d, "has a value");
}

#[test]
fn disable_active_migration_with_a_value_is_refused() {
    assert_refused("0c 01 00", 0x0c, "has a value");
}

#[test]
fn connection_id_above_20_bytes_is_refused() {
    for parameter in [0x00_u64, 0x0f, 0x10] {
        let digits = format!("{parameter:02x} 15 {}", "ab".repeat(21));
        assert_refused(&digits, parameter, "is longer than 20 bytes");
        let digits = format!("{parameter:02x} 14 {}", "ab".repeat(20));
        assert!(decode(&digits, Side::Server).is_ok(), "{parameter}");
    }
}

#[test]
fn preferred_address_without_connection_id_is_refused() {
    let reason = "has a connection id that is not 1 to 20 bytes long";
    assert_refused(
        &format!("0d 29 {} 00 {TOKEN}", "11".repeat(24)),
        0x0d,
        reason,
    );
}

#[test]
fn preferred_address_with_a_connection_id_above_20_bytes_is_refused() {
    let reason = "has a connection id that is not 1 to 20 bytes long";
    let digits = format!("0d 3e {} 15 {} {TOKEN}", "11".repeat(24), "ab".repeat(21));
    assert_refused(&digits, 0x0d, reason);
}

#[test]
fn preferred_address_cut_anywhere_or_too_long_is_refused() {
    let value = hex(&format!("{} 02 aabb {TOKEN} ff", "11".repeat(24)));
    for len in 0..=value.len() {
        let bytes = [&[0x0d, u8::try_from(len).unwrap()], &value[..len]].concat();
        let is_whole = len == value.len() - 1;
        let parameters = TransportParameters::decode(&bytes, Side::Server);
        assert_eq!(parameters.is_ok(), is_whole, "{len}");
    }
}

#[test]
fn preferred_address_from_a_server_with_an_empty_id_is_refused() {
    let reason = "was sent by a server with an empty connection id";
    let digits = format!("0d 2a {} 01 aa {TOKEN} 0f 00", "11".repeat(24));
    assert_refused(&digits, 0x0d, reason);
}

#[test]
fn address_of_zeros_means_family_is_not_offered() {
    let digits = format!("0d 2a {} 01 aa {TOKEN}", "00".repeat(24));
    let address = decode(&digits, Side::Server)
        .unwrap()
        .preferred_address
        .unwrap();
    assert_eq!((address.ipv4, address.ipv6), (None, None));
    let only_ipv6 = TransportParameters {
        preferred_address: Some(PreferredAddress {
            ipv6: Some("[::1]:443".parse().unwrap()),
            ..address
        }),
        ..TransportParameters::default()
    };
    let bytes = encode(&only_ipv6, None);
    assert_eq!(
        TransportParameters::decode(&bytes, Side::Server),
        Ok(only_ipv6)
    );
}

#[test]
fn grease_adds_one_reserved_parameter() {
    for seed in [0, 1, 0x1234_5678_9abc_def7, u64::MAX] {
        let bytes = encode(&all(), Some(seed));
        let found = numbers(&bytes);
        let reserved = *found.last().unwrap();
        assert_eq!(found.len(), 26, "{seed}");
        assert_eq!(reserved % 31, 27, "{seed}");
        assert_eq!(
            TransportParameters::decode(&bytes, Side::Server),
            Ok(all()),
            "{seed}"
        );
    }
}

#[test]
fn errors_name_the_parameter() {
    let error = decode("03 01 00", Side::Client).unwrap_err();
    assert_eq!(error.to_string(), "max_udp_payload_size is below 1200");
    let error = decode("4123 01", Side::Client).unwrap_err();
    assert_eq!(
        error.to_string(),
        "transport parameter 0x123 is longer than the extension"
    );
    let error = decode("40", Side::Client).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a transport parameter is truncated within its id"
    );
}

/// Checks that parameters which can be decoded are the same after they are encoded again.
fn assert_consistent(bytes: &[u8], sent_by: Side) {
    if let Ok(parameters) = TransportParameters::decode(bytes, sent_by) {
        let again = encode(&parameters, None);
        assert_eq!(TransportParameters::decode(&again, sent_by), Ok(parameters));
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in hostile_bytes(300)) {
        for side in [Side::Client, Side::Server] {
            assert_consistent(&bytes, side);
        }
    }

    #[test]
    fn a_flipped_bit_never_panics(index in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = encode(&all(), None);
        let index = index.index(bytes.len());
        bytes[index] ^= 1_u8 << bit;
        assert_consistent(&bytes, Side::Server);
    }

    #[test]
    fn numbers_round_trip(
        numbers in [varints(), varints(), varints(), varints(), varints(), varints()],
        grease: Option<u64>,
    ) {
        let [idle, data, local, remote, uni, limit] = numbers;
        let parameters = TransportParameters {
            max_idle_timeout: idle,
            initial_max_data: data,
            initial_max_stream_data_bidi_local: local,
            initial_max_stream_data_bidi_remote: remote,
            initial_max_stream_data_uni: uni,
            active_connection_id_limit: limit.max(2),
            ..TransportParameters::default()
        };
        let bytes = encode(&parameters, grease);
        prop_assert_eq!(TransportParameters::decode(&bytes, Side::Client), Ok(parameters));
    }
}

#[test]
fn version_information_follows_rfc_9368_3() {
    let parameters = TransportParameters {
        version_information: Some(VersionInformation::new(Version::V1, Versions::ALL)),
        ..TransportParameters::default()
    };
    let bytes = encode(&parameters, None);
    assert_eq!(bytes, hex("11 0c 00000001 00000001 6b3343cf"));
    let decoded = decode(
        "11 14 6b3343cf 1a2a3a4a 6b3343cf ff00001d 00000001",
        Side::Client,
    );
    let versions = decoded.unwrap().version_information.unwrap();
    assert_eq!(versions.chosen(), VERSION_2);
    assert!(versions.available().iter().eq([Version::V2, Version::V1]));
    assert!(versions.is_chosen_available() && !versions.is_empty());
    // A server need not list the version that it chose, nor any other.
    let alone = decode("11 04 00000001", Side::Server).unwrap();
    let alone = alone.version_information.unwrap();
    assert_eq!((alone.chosen(), alone.is_empty()), (VERSION_1, true));
    let unknown = decode("11 08 00000001 1a2a3a4a", Side::Server).unwrap();
    let unknown = unknown.version_information.unwrap();
    assert_eq!(
        (unknown.available(), unknown.is_empty()),
        (Versions::default(), false)
    );
}

#[test]
fn malformed_version_information_is_refused() {
    let reason = "is not a list of versions of four bytes";
    for value in ["11 00", "11 03 000000", "11 07 00000001000000"] {
        assert_refused(value, 0x11, reason);
    }
    assert_refused("11 04 00000000", 0x11, "has version 0");
    assert_refused("11 0c 00000001 00000001 00000000", 0x11, "has version 0");
    let error = ParameterError {
        parameter: 0x11,
        reason: "lacks the chosen version among the available ones",
    };
    for value in ["11 04 00000001", "11 08 00000001 6b3343cf"] {
        assert_eq!(decode(value, Side::Client), Err(error), "{value}");
    }
    assert!(error.to_string().starts_with("version_information lacks"));
}

#[test]
fn reserved_versions_are_added_to_version_information() {
    let parameters = TransportParameters {
        version_information: Some(VersionInformation::new(Version::V1, Versions::V1)),
        ..TransportParameters::default()
    };
    for seed in [0, 7, u64::MAX] {
        let bytes = encode(&parameters, Some(seed));
        assert_eq!(bytes[..10], hex("11 0c 00000001 00000001"));
        let reserved = u32::from_be_bytes(*bytes[10..].first_chunk().unwrap());
        assert!(is_reserved(reserved), "{reserved:#x}");
        let read = TransportParameters::decode(&bytes, Side::Client).unwrap();
        assert_eq!(read, parameters);
    }
}

#[test]
fn grease_quic_bit_has_no_value() {
    assert!(decode("6ab2 00", Side::Client).unwrap().grease_quic_bit);
    assert_refused("6ab2 01 00", 0x2ab2, "has a value");
}

#[test]
fn initial_max_path_id_has_32_bits() {
    let found = |digits| decode(digits, Side::Client).map(|found| found.initial_max_path_id);
    assert_eq!(found(""), Ok(None));
    assert_eq!(found("3e 01 00"), Ok(Some(PathId::ZERO)));
    assert_eq!(found("3e 08 c0000000ffffffff"), Ok(Some(PathId::MAX)));
    for (digits, reason) in [
        ("3e 08 c000000100000000", "is above 2^32 - 1"),
        ("3e 00", "is not exactly one varint"),
        ("3e 02 0000", "is not exactly one varint"),
    ] {
        let error = found(digits).expect_err(digits);
        assert_eq!(error.reason, reason);
        assert!(error.to_string().contains("initial_max_path_id"), "{error}");
    }
}

#[test]
fn address_discovery_is_0_1_or_2() {
    let found = |digits| decode(digits, Side::Client).map(|found| found.address_discovery);
    assert_eq!(found(""), Ok(None));
    for (digits, discovery, provides, receives) in [
        (
            "c00000009f81a176 01 00",
            AddressDiscovery::Provides,
            true,
            false,
        ),
        (
            "c00000009f81a176 01 01",
            AddressDiscovery::Receives,
            false,
            true,
        ),
        ("c00000009f81a176 01 02", AddressDiscovery::Both, true, true),
    ] {
        assert_eq!(found(digits), Ok(Some(discovery)));
        assert_eq!(
            (discovery.provides(), discovery.receives()),
            (provides, receives)
        );
        let parameters = decode(digits, Side::Client).unwrap();
        let bytes = encode(&parameters, None);
        assert_eq!(
            TransportParameters::decode(&bytes, Side::Client),
            Ok(parameters)
        );
    }
    for (digits, reason) in [
        ("c00000009f81a176 01 03", "is neither 0, 1 nor 2"),
        (
            "c00000009f81a176 08 ffffffffffffffff",
            "is neither 0, 1 nor 2",
        ),
        ("c00000009f81a176 00", "is not exactly one varint"),
        ("c00000009f81a176 02 0000", "is not exactly one varint"),
    ] {
        let error = found(digits).expect_err(digits);
        assert_eq!(error.reason, reason);
        assert!(error.to_string().contains("address_discovery"), "{error}");
    }
}

#[test]
fn number_of_candidates_is_one_byte() {
    let found = |digits| decode(digits, Side::Client).map(|found| found.max_candidates);
    assert_eq!(found(""), Ok(None));
    assert_eq!(found("c0003d7f91120401 01 01"), Ok(NonZeroU8::new(1)));
    assert_eq!(found("c0003d7f91120401 01 ff"), Ok(NonZeroU8::new(255)));
    for (digits, reason) in [
        ("c0003d7f91120401 01 00", "is 0"),
        ("c0003d7f91120401 00", "is not 1 byte long"),
        ("c0003d7f91120401 02 4001", "is not 1 byte long"),
    ] {
        assert_eq!(found(digits).expect_err(digits).reason, reason);
    }
}
