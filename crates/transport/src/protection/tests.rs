//! Tests packet protection without a connection.

use courser_crypto::initial::initial_keys;
use courser_wire::packet::{self, LongHeader, PacketKind, patch_length};
use courser_wire::version::VERSION_1;
use courser_wire::{ConnectionId, Writer};

use super::*;

const PTO: Duration = Duration::from_millis(100);

/// Returns both ends of a connection with their Initial keys.
fn ends() -> [PacketProtection; 2] {
    let id = ConnectionId::new(&[1; 8]).expect("8 bytes");
    [Side::Client, Side::Server].map(|side| {
        let mut end = PacketProtection::new(side, u64::MAX);
        end.install(SpaceId::Initial, initial_keys(VERSION_1, &id, side));
        end
    })
}

/// Seals an Initial with `payload` and this packet number.
fn seal(end: &mut PacketProtection, number: u64, payload: &[u8]) -> Vec<u8> {
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: VERSION_1,
        destination: ConnectionId::new(&[1; 8]).expect("8 bytes"),
        source: ConnectionId::new(&[2; 8]).expect("8 bytes"),
        token: &[],
    };
    let number_offset = header.encoded_len();
    let mut bytes = vec![0; number_offset + 2 + payload.len() + courser_crypto::TAG_LEN];
    let mut writer = Writer::new(&mut bytes);
    let length_field = header.encode(&mut writer, 2);
    packet_number::write(&mut writer, number, 2);
    let start = number_offset + 2;
    bytes[start..start + payload.len()].copy_from_slice(payload);
    let len = bytes.len();
    patch_length(&mut bytes, length_field, len - number_offset);
    let sealing = Sealing {
        path: PathId::ZERO,
        number,
        number_offset,
        number_len: 2,
    };
    end.seal(SpaceId::Initial, sealing, &mut bytes);
    bytes
}

fn open(end: &mut PacketProtection, bytes: &mut [u8]) -> Result<Opened, OpenFailure> {
    let packet = packet::decode(bytes, 0, 8).expect("a header");
    let pto = || ProbeTimeouts {
        full: PTO,
        without_delay: PTO,
    };
    end.open(Time::ZERO, pto, (PathId::ZERO, 0), &packet, bytes)
}

#[test]
fn sealed_packet_opens_at_the_other_end() {
    let [mut client, mut server] = ends();
    let payload = [7; 100];
    let mut bytes = seal(&mut client, 5, &payload);
    assert!(!bytes.windows(100).any(|window| window == payload));
    let opened = open(&mut server, &mut bytes).expect("authentic");
    assert_eq!(opened.number, 5);
    assert_eq!(bytes[opened.payload], payload);
    assert_eq!(opened.update, None);
}

#[test]
fn forged_packets_are_counted_up_to_the_limit() {
    let [mut client, mut server] = ends();
    server.limit_forgeries(3);
    for failures in 1..=4 {
        let mut bytes = seal(&mut client, failures, &[7; 100]);
        *bytes.last_mut().expect("not empty") ^= 1;
        let failure = open(&mut server, &mut bytes).expect_err("forged");
        let is_last = matches!(failure, OpenFailure::TooManyForgeries);
        assert_eq!(is_last, failures == 4, "{failure:?}");
        assert_eq!(server.failures(), failures);
    }
}

#[test]
fn packet_does_not_open_without_keys() {
    let [mut client, mut server] = ends();
    let mut bytes = seal(&mut client, 1, &[7; 100]);
    server.discard(SpaceId::Initial);
    assert!(!server.has_keys(SpaceId::Initial));
    let failure = open(&mut server, &mut bytes).expect_err("no keys");
    assert!(matches!(failure, OpenFailure::NoKeys));
    assert_eq!(server.failures(), 0);
}

#[test]
fn one_rtt_keys_can_be_queried_before_they_exist() {
    let [mut client, _] = ends();
    assert_eq!(client.key_phase(), None);
    assert_eq!(
        client.update(Time::ZERO),
        Err(KeyUpdateBlocked::NotConfirmed)
    );
    assert!(!client.is_update_due() && !client.is_exhausted());
    assert_eq!(client.check_acknowledged(PathId::ZERO, 7), Ok(()));
    let quoted = client.unprotect_quote(&mut [0; 40], 9);
    assert_eq!(quoted, Err(QuoteFailure::NoKeys));
}
