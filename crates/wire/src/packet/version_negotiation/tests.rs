use super::*;
use crate::packet;
use crate::testing::hex;

fn encoded(random: u8, destination: &[u8], source: &[u8], versions: &[u32]) -> Vec<u8> {
    let mut buffer = vec![0; encoded_len(destination, source, versions)];
    let mut writer = Writer::new(&mut buffer);
    encode(&mut writer, random, destination, source, versions);
    assert_eq!(writer.remaining(), 0);
    buffer
}

#[test]
fn encoding_matches_the_rfc() {
    let bytes = encoded(0x15, &[1, 2], &[3], &[1, 0x0a1a_2a3a]);
    assert_eq!(bytes, hex("d5 00000000 02 0102 01 03 00000001 0a1a2a3a"));
}

#[test]
fn written_packet_is_read_back() {
    let bytes = encoded(0, &[1, 2], &[3], &[1, 0x0a1a_2a3a]);
    let packet = decode(&bytes).unwrap();
    assert_eq!(
        (packet.destination, packet.source),
        ([1, 2].as_slice(), [3].as_slice())
    );
    assert_eq!(packet.versions().collect::<Vec<_>>(), [1, 0x0a1a_2a3a]);
    let packet = packet::decode(&bytes, 0, 8).unwrap();
    assert_eq!(
        (packet.kind, packet.version),
        (PacketKind::VersionNegotiation, 0)
    );
    assert_eq!(
        (&*packet.destination, &*packet.source),
        ([1, 2].as_slice(), [3].as_slice())
    );
    assert_eq!((packet.packet_number_offset, packet.end), (10, 18));
}

#[test]
fn ids_of_any_length_are_echoed() {
    for len in [0, 20, 21, 255] {
        let (destination, source) = (vec![1; len], vec![2; 255 - len]);
        let bytes = encoded(0x3f, &destination, &source, &[1]);
        let packet = decode(&bytes).unwrap();
        assert_eq!(packet.destination, destination, "{len}");
        assert_eq!(packet.source, source, "{len}");
    }
}

#[test]
fn form_bit_and_fixed_bit_are_set_whatever_the_random_bits() {
    for random in 0..=u8::MAX {
        let bytes = encoded(random, &[], &[], &[1]);
        assert_eq!(bytes[0], 0xc0 | random);
    }
}

#[test]
fn the_seven_unused_bits_are_ignored() {
    let mut bytes = encoded(0, &[1, 2], &[3], &[1]);
    for unused in 0..0x80 {
        bytes[0] = 0x80 | unused;
        assert_eq!(
            decode(&bytes).unwrap().versions().next(),
            Some(1),
            "{unused:#x}"
        );
        assert!(packet::decode(&bytes, 0, 8).is_ok(), "{unused:#x}");
    }
}

#[test]
fn a_list_that_is_empty_or_broken_off_is_refused() {
    let bytes = encoded(0, &[1, 2], &[3], &[1, 2]);
    for end in 0..bytes.len() {
        let is_whole = end == 14;
        assert_eq!(decode(&bytes[..end]).is_ok(), is_whole, "cut at {end}");
        assert_eq!(
            packet::decode(&bytes[..end], 0, 0).is_ok(),
            is_whole,
            "cut at {end}"
        );
    }
}

#[test]
fn other_packets_are_not_version_negotiation() {
    assert!(decode(&hex("c0 00000001 00 00 00000001")).is_err());
    assert!(decode(&hex("40 00000000 00 00 00000001")).is_err());
}
