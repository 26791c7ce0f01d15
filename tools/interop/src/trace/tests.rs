use std::time::Duration;

use bytes::Bytes;
use courser_base::Ecn;
use courser_crypto::initial::initial_secrets;
use courser_crypto::{CipherSuite, Keys, Secret, header_protection};
use courser_wire::VERSION_1;

use super::*;

const CLIENT_ID: [u8; 8] = [1; 8];
const SERVER_ID: [u8; 8] = [2; 8];
const SUITE: CipherSuite = CipherSuite::Aes128Gcm;

fn id(bytes: [u8; 8]) -> ConnectionId {
    ConnectionId::new(&bytes).expect("8 bytes")
}

/// Returns a datagram with one packet, number 0, that has one CRYPTO frame.
fn datagram(from: Side, first_byte: u8, keys: &mut Keys, crypto: &[u8]) -> ObservedDatagram {
    let (place, destination, source) = match from {
        Side::Client => (ObservationPoint::FromClient, SERVER_ID, CLIENT_ID),
        Side::Server => (ObservationPoint::FromServer, CLIENT_ID, SERVER_ID),
    };
    let mut packet = vec![first_byte, 0, 0, 0, 1, 8];
    packet.extend(destination);
    packet.push(8);
    packet.extend(source);
    if first_byte & 0x30 == 0 {
        packet.push(0);
    }
    let len = |count: usize| 0x4000 | u16::try_from(count).expect("a short packet");
    let frame_len = 4 + crypto.len();
    packet.extend(len(1 + frame_len + 16).to_be_bytes());
    let number_offset = packet.len();
    packet.extend([0, 0x06, 0]);
    packet.extend(len(crypto.len()).to_be_bytes());
    packet.extend(crypto);
    packet.extend([0; 16]);
    keys.packet.seal_packet(0, &mut packet, number_offset + 1);
    header_protection::protect(&keys.header, &mut packet, number_offset, 1);
    ObservedDatagram {
        at: Duration::ZERO,
        place,
        client: SocketAddr::from(([127, 0, 0, 1], 9)),
        translated: None,
        ecn: Ecn::NotEct,
        payload: Bytes::from(packet),
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u8::try_from(body.len()).expect("a short message");
    [&[kind, 0, 0, len], body].concat()
}

#[test]
fn handshake_packet_before_the_server_hello_is_read() {
    let random = [7; 32];
    // Version, random value, session ID, suites or the suite.
    let client_hello = [&[3, 3][..], &random, &[0], &[0, 2, 0x13, 0x01]].concat();
    let server_hello = [&[3, 3][..], &[8; 32], &[0], &[0x13, 0x01, 0]].concat();
    let secret = Secret::new(SUITE, &[9; 32]);
    let initial = initial_secrets(VERSION_1, &id(SERVER_ID), Side::Client);
    let (mut client, mut server) = (initial.local.keys(), initial.peer.keys());
    let certificate = message(11, &[0; 40]);
    let datagrams = [
        datagram(Side::Client, 0xc0, &mut client, &message(1, &client_hello)),
        datagram(Side::Server, 0xe0, &mut secret.keys(), &certificate),
        datagram(Side::Server, 0xc0, &mut server, &message(2, &server_hello)),
    ];
    let line = |label: &str| format!("{label} {} {}\n", "07".repeat(32), "09".repeat(32));
    let keys = KeyLog::parse(&line("SERVER_HANDSHAKE_TRAFFIC_SECRET"));
    let trace = Trace::new(&datagrams, &keys);
    let kinds: Vec<PacketKind> = trace.packets.iter().map(|packet| packet.kind).collect();
    let expected = [
        PacketKind::Initial,
        PacketKind::Handshake,
        PacketKind::Initial,
    ];
    assert_eq!(kinds, expected);
    let crypto = trace.packets[1]
        .contents
        .as_ref()
        .map(|contents| &contents.crypto);
    assert_eq!(crypto, Some(&vec![(0, certificate.len())]));
    let has_certificate: Vec<bool> = trace
        .connections()
        .map(|facts| facts.has_certificate)
        .collect();
    assert_eq!(has_certificate, [true]);
}
