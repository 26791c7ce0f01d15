use courser_wire::{VERSION_1, VERSION_2};

use super::*;
use crate::header_protection::{protect, unprotect};
use crate::testing::{example_id, hex, hex_of};
use crate::{EncryptionLevel, HashAlgorithm, Keys, TAG_LEN};

mod vectors;
mod vectors_2;
use vectors::*;

fn expanded(secret: &Secret, label: &[u8], len: usize) -> String {
    let mut out = vec![0; len];
    crate::hkdf_label::expand_label(
        HashAlgorithm::Sha256,
        secret.as_bytes(),
        label,
        &[],
        &mut out,
    )
    .unwrap();
    hex_of(&out)
}

#[test]
fn secrets_match_rfc_9001_a1() {
    let secrets = initial_secrets(VERSION_1, &example_id(), Side::Client);
    assert_eq!(
        hex_of(secrets.local.as_bytes()),
        "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea"
    );
    assert_eq!(
        hex_of(secrets.peer.as_bytes()),
        "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b"
    );
}

#[test]
fn client_keys_match_rfc_9001_a1() {
    let client = initial_secrets(VERSION_1, &example_id(), Side::Client).local;
    assert_eq!(
        expanded(&client, b"quic key", 16),
        "1f369613dd76d5467730efcbe3b1a22d"
    );
    assert_eq!(
        expanded(&client, b"quic iv", 12),
        "fa044b2f42a3fd3b46fb255c"
    );
    assert_eq!(
        expanded(&client, b"quic hp", 16),
        "9f50449e04a0e810283a1e9933adedd2"
    );
}

#[test]
fn server_keys_match_rfc_9001_a1() {
    let server = initial_secrets(VERSION_1, &example_id(), Side::Server).local;
    assert_eq!(
        expanded(&server, b"quic key", 16),
        "cf3a5331653c364c88f0f379b6067e37"
    );
    assert_eq!(
        expanded(&server, b"quic iv", 12),
        "0ac1493ca1905853b0bba03e"
    );
    assert_eq!(
        expanded(&server, b"quic hp", 16),
        "c206b8d9b9f0f37644430b490eeaa314"
    );
}

#[test]
fn initial_keys_use_aes_128_gcm() {
    let keys = initial_keys(VERSION_1, &example_id(), Side::Client);
    assert_eq!(keys.local.packet.suite(), CipherSuite::Aes128Gcm);
    assert_eq!(keys.peer.packet.suite(), CipherSuite::Aes128Gcm);
}

/// Seals and protects a packet, as a sender does.
fn protected(keys: &Keys, number: u64, header: &[u8], number_len: usize, payload: &[u8]) -> String {
    let mut packet = [header, payload, &[0; TAG_LEN]].concat();
    keys.packet.seal_packet(number, &mut packet, header.len());
    protect(
        &keys.header,
        &mut packet,
        header.len() - number_len,
        number_len,
    );
    hex_of(&packet)
}

/// Unprotects and opens a packet, as a receiver does. Returns the packet number, the header and the
/// payload.
fn opened(keys: &Keys, packet: &[u8], number_offset: usize) -> (u64, Vec<u8>, Vec<u8>) {
    let mut packet = packet.to_vec();
    let (len, number) = unprotect(&keys.header, &mut packet, number_offset).unwrap();
    let (header, payload) = packet.split_at_mut(number_offset + len);
    let plain_len = keys.packet.open(number, header, payload).unwrap();
    (number, header.to_vec(), payload[..plain_len].to_vec())
}

fn client_payload() -> Vec<u8> {
    let mut payload = hex(CLIENT_CRYPTO_FRAME);
    payload.resize(1162, 0);
    payload
}

#[test]
fn client_initial_matches_rfc_9001_a2() {
    let keys = initial_keys(VERSION_1, &example_id(), Side::Client);
    let packet = protected(&keys.local, 2, &hex(CLIENT_HEADER), 4, &client_payload());
    assert_eq!(packet, hex_of(&hex(CLIENT_PACKET)));
}

#[test]
fn mask_matches_rfc_9001_a2() {
    let keys = initial_keys(VERSION_1, &example_id(), Side::Client);
    let sample = hex("d1b1c98dd7689fb8ec11d242b123dc9b");
    let mask = keys.local.header.mask(sample.first_chunk().unwrap());
    assert_eq!(hex_of(&mask), "437b9aec36");
}

#[test]
fn server_opens_client_initial_of_rfc_9001_a2() {
    let keys = initial_keys(VERSION_1, &example_id(), Side::Server);
    let (number, header, payload) = opened(&keys.peer, &hex(CLIENT_PACKET), 18);
    assert_eq!(number, 2);
    assert_eq!(header, hex(CLIENT_HEADER));
    assert_eq!(payload, client_payload());
}

#[test]
fn server_initial_matches_rfc_9001_a3() {
    let keys = initial_keys(VERSION_1, &example_id(), Side::Server);
    let packet = protected(&keys.local, 1, &hex(SERVER_HEADER), 2, &hex(SERVER_PAYLOAD));
    assert_eq!(packet, hex_of(&hex(SERVER_PACKET)));
}

#[test]
fn client_opens_server_initial_of_rfc_9001_a3() {
    let keys = initial_keys(VERSION_1, &example_id(), Side::Client);
    let (number, header, payload) = opened(&keys.peer, &hex(SERVER_PACKET), 18);
    assert_eq!(number, 1);
    assert_eq!(header, hex(SERVER_HEADER));
    assert_eq!(payload, hex(SERVER_PAYLOAD));
}

#[test]
fn secrets_match_rfc_9369_a1() {
    let secrets = initial_secrets(VERSION_2, &example_id(), Side::Client);
    assert_eq!(
        hex_of(secrets.local.as_bytes()),
        "14ec9d6eb9fd7af83bf5a668bc17a7e283766aade7ecd0891f70f9ff7f4bf47b"
    );
    assert_eq!(
        hex_of(secrets.peer.as_bytes()),
        "0263db1782731bf4588e7e4d93b7463907cb8cd8200b5da55a8bd488eafc37c1"
    );
    let [client, server] = [secrets.local, secrets.peer];
    for (secret, label, len, expected) in [
        (
            &client,
            &b"quicv2 key"[..],
            16,
            "8b1a0bc121284290a29e0971b5cd045d",
        ),
        (&client, b"quicv2 iv", 12, "91f73e2351d8fa91660e909f"),
        (
            &client,
            b"quicv2 hp",
            16,
            "45b95e15235d6f45a6b19cbcb0294ba9",
        ),
        (
            &server,
            b"quicv2 key",
            16,
            "82db637861d55e1d011f19ea71d5d2a7",
        ),
        (&server, b"quicv2 iv", 12, "dd13c276499c0249d3310652"),
        (
            &server,
            b"quicv2 hp",
            16,
            "edf6d05c83121201b436e16877593c3a",
        ),
    ] {
        assert_eq!(expanded(secret, label, len), expected);
    }
}

#[test]
fn initials_match_rfc_9369_a2_and_a3() {
    let client = initial_keys(VERSION_2, &example_id(), Side::Client);
    let header = hex(vectors_2::CLIENT_HEADER);
    let packet = protected(&client.local, 2, &header, 4, &client_payload());
    assert_eq!(packet, hex_of(&hex(vectors_2::CLIENT_PACKET)));
    let server = initial_keys(VERSION_2, &example_id(), Side::Server);
    let header = hex(vectors_2::SERVER_HEADER);
    let packet = protected(&server.local, 1, &header, 2, &hex(SERVER_PAYLOAD));
    assert_eq!(packet, hex_of(&hex(vectors_2::SERVER_PACKET)));
    let (number, _, payload) = opened(&server.peer, &hex(vectors_2::CLIENT_PACKET), 18);
    assert_eq!((number, payload), (2, client_payload()));
}

#[test]
fn keys_after_retry_come_from_its_connection_id() {
    let retry_source = ConnectionId::new(&hex("f067a5502a4262b5")).unwrap();
    let client = initial_keys(VERSION_1, &retry_source, Side::Client);
    let server = initial_keys(VERSION_1, &retry_source, Side::Server);
    let stale = initial_keys(VERSION_1, &example_id(), Side::Server);
    let header = [0xc0, 0, 0, 0, 1, 0, 0, 0];
    let packet = hex(&protected(&client.local, 0, &header, 1, &[1; 40]));
    let (_, _, payload) = opened(&server.peer, &packet, 7);
    assert_eq!(payload, [1; 40]);
    let mut payload = packet[8..].to_vec();
    assert!(stale.peer.packet.open(0, &header, &mut payload).is_err());
}

#[test]
fn levels_map_to_spaces() {
    use crate::Space;
    assert_eq!(EncryptionLevel::Initial.space(), Space::Initial);
    assert_eq!(EncryptionLevel::ZeroRtt.space(), Space::Application);
    assert_eq!(EncryptionLevel::Handshake.space(), Space::Handshake);
    assert_eq!(EncryptionLevel::OneRtt.space(), Space::Application);
    for space in Space::ALL {
        assert_eq!(space.crypto_level().space(), space, "{space:?}");
    }
}
