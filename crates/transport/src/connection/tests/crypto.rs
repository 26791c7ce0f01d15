//! CRYPTO frames and the TLS messages in them. RFC 9000 §7.5, §19.6, RFC 9001 §4.

use courser_wire::frame::Frame;
use courser_wire::packet::PacketKind;

use super::frames::raw;
use super::*;
use crate::testing::eye::Seen;
use crate::testing::forgery::Forgery;
use crate::testing::identity::server_tls_with_big_chain;
use crate::testing::{Setup, client_address};

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    [&raw(&[0x06, offset, data.len() as u64])[..], data].concat()
}

#[test]
fn crypto_data_of_an_old_level_may_repeat_but_not_continue() {
    let mut pair = with_initial_keys();
    let read = pair
        .server
        .connection()
        .parts
        .handshake
        .crypto()
        .get(SpaceId::Initial)
        .expect("open")
        .read_offset();
    pair.forge_to_server(SpaceId::Initial, &crypto(0, &[1, 2, 3]));
    assert_eq!(
        pair.server_error(),
        None,
        "a repetition, even with other content"
    );
    pair.forge_to_server(SpaceId::Initial, &crypto(read - 1, &[0]));
    assert_eq!(pair.server_error(), None, "up to the last byte");
    pair.forge_to_server(SpaceId::Initial, &crypto(read - 1, &[0, 0]));
    assert_eq!(pair.server_error(), Some(0x0a));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(0x0a));
}

/// An end may discard CRYPTO data if it acknowledges the packet (RFC 9000 §7.5).
#[test]
fn packet_whose_crypto_data_is_discarded_is_acknowledged() {
    let (setup, eye) = Setup::default().with_eye();
    let mut pair = Pair::with(setup);
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    let acknowledged = |pair: &Pair, number: u64| {
        eye.server_sent(pair).iter().any(|packet| {
            packet.kind == PacketKind::Initial
                && packet.has(|frame| match frame {
                    Frame::Ack(ack) => ack.ranges().any(|range| range.contains(&number)),
                    _ => false,
                })
        })
    };
    let number = 40;
    assert!(!acknowledged(&pair, number));
    let bytes = Forgery::of(&crypto(0, &[1, 2, 3]))
        .number(number)
        .seal(&mut pair.client, SpaceId::Initial);
    pair.send_to_server(bytes);
    pair.drive();
    assert_eq!(pair.server_error(), None, "a repetition");
    assert!(acknowledged(&pair, number));
}

#[test]
fn bytes_left_over_at_a_level_are_a_protocol_violation_on_a_client() {
    let mut pair = with_initial_keys();
    pair.forge_to_client(SpaceId::Initial, &crypto(9000, &[0]));
    assert_eq!(pair.client_error(), None, "the gap may still be filled");
    pair.run_for(RTT);
    assert_eq!(pair.client_error(), Some(0x0a));
    assert_eq!(pair.close_received_by_server(), Some(0x0a));
}

#[test]
fn bytes_left_over_at_a_level_are_a_protocol_violation_on_a_server() {
    let mut pair = Pair::new();
    // The second half of the ClientHello arrives late.
    let held = hold(&mut pair, {
        let mut count = 0;
        move |datagram| {
            count += u32::from(datagram.from == client_address());
            datagram.from == client_address() && count == 2
        }
    });
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    assert!(pair.server.connection().is_handshaking());
    pair.forge_to_server(SpaceId::Initial, &crypto(9000, &[0]));
    assert_eq!(pair.server_error(), None);
    let late = held.borrow_mut().remove(0);
    pair.send_to_server(late.bytes);
    assert_eq!(pair.server_error(), Some(0x0a));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(0x0a));
}

#[test]
fn crypto_data_is_stored_up_to_the_limit_and_not_beyond() {
    // Limit K01 of a client: 16 KiB at the Initial level, four times that at the Handshake level.
    const LIMIT: u64 = 16 * 1024;
    let mut pair = with_initial_keys();
    for offset in (1..4097).step_by(1024) {
        pair.forge_to_client(SpaceId::Initial, &crypto(offset, &[0; 1024]));
    }
    assert_eq!(
        pair.client_error(),
        None,
        "4096 bytes out of order (RFC 9000 §7.5)"
    );
    pair.forge_to_client(SpaceId::Initial, &crypto(LIMIT - 1, &[0]));
    assert_eq!(pair.client_error(), None, "the last byte of the limit");
    pair.forge_to_client(SpaceId::Initial, &crypto(LIMIT, &[0]));
    assert_eq!(pair.client_error(), Some(0x0d));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x0d));
}

#[test]
fn crypto_with_too_many_gaps_is_refused() {
    // Limit K02: 32 pieces at a level.
    let mut pair = with_initial_keys();
    for piece in 1..=32 {
        pair.forge_to_client(SpaceId::Initial, &crypto(2 * piece, &[0]));
    }
    assert_eq!(pair.client_error(), None);
    pair.forge_to_client(SpaceId::Initial, &crypto(66, &[0]));
    assert_eq!(pair.client_error(), Some(0x0d));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x0d));
}

#[test]
fn crypto_data_after_the_handshake_is_limited_too() {
    let mut pair = Pair::connected();
    let read = pair
        .client
        .connection()
        .parts
        .handshake
        .crypto()
        .get(SpaceId::Application)
        .expect("open")
        .read_offset();
    pair.forge_to_client(SpaceId::Application, &crypto(read + 16 * 1024, &[0]));
    assert_eq!(pair.client_error(), Some(0x0d));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x0d));
}

#[test]
fn tls_messages_out_of_place_end_the_connection() {
    let certificate_request = [13, 0, 0, 11, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
    for (case, message, code) in [
        ("KeyUpdate", &[24, 0, 0, 1, 0][..], 0x10a),
        ("Finished", &[20, 0, 0, 2, 0, 0], 0x10a),
        ("CertificateRequest", &certificate_request, 0x0a),
    ] {
        let mut pair = Pair::connected();
        let read = pair
            .client
            .connection()
            .parts
            .handshake
            .crypto()
            .get(SpaceId::Application)
            .expect("open")
            .read_offset();
        pair.forge_to_client(SpaceId::Application, &crypto(read, message));
        assert_eq!(pair.client_error(), Some(code), "{case}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_server(), Some(code), "{case}");
    }
    let mut pair = Pair::connected();
    pair.forge_to_server(SpaceId::Application, &crypto(0, &[24, 0, 0, 1, 0]));
    assert_eq!(pair.server_error(), Some(0x10a), "KeyUpdate of a client");
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(0x10a));
}

#[test]
fn garbage_instead_of_a_tls_message_is_an_alert() {
    let mut pair = with_initial_keys();
    pair.forge_to_client(SpaceId::Initial, &crypto(0, &[0xff, 0, 0, 1, 0]));
    assert_eq!(pair.client_error(), Some(0x10a));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x10a));
}

/// The header of a TLS record in front of a message. RFC 9001 §4.
#[test]
fn tls_record_instead_of_a_message_is_an_alert() {
    let mut pair = with_initial_keys();
    let record = [22, 3, 3, 0, 6, 2, 0, 0, 2, 3, 3];
    pair.forge_to_client(SpaceId::Initial, &crypto(0, &record));
    let code = pair.client_error().expect("refused");
    assert!((0x100..0x200).contains(&code), "{code:#x}");
    assert!(!pair.client.has(&Event::Connected));
}

/// Returns the bytes of all CRYPTO frames of one kind of packets, in order.
fn crypto_stream(sent: &[Seen], kind: PacketKind) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in sent.iter().filter(|packet| packet.kind == kind) {
        for frame in packet.frames() {
            if let Frame::Crypto(crypto) = frame {
                let start = usize::try_from(crypto.offset).expect("small");
                bytes.resize(bytes.len().max(start + crypto.data.len()), 0);
                bytes[start..start + crypto.data.len()].copy_from_slice(crypto.data);
            }
        }
    }
    bytes
}

/// Returns the types of the TLS messages in `bytes`, which must end with a whole one.
fn message_types(mut bytes: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let [kind, a, b, c, ..] = *bytes {
        types.push(kind);
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        bytes = &bytes[4 + len..];
    }
    assert_eq!(bytes, [] as [u8; 0]);
    types
}

/// TLS messages are sent without a record layer, and none of them is EndOfEarlyData (5),
/// KeyUpdate (24) or, after the handshake, CertificateRequest (13). RFC 9001 §4, §4.4, §6, §8.3.
#[test]
fn crypto_frames_hold_bare_messages_of_the_handshake_and_tickets() {
    let (mut pair, eye) = Pair::watched_and_connected();
    for _ in 0..3 {
        let now = pair.now;
        assert_eq!(
            pair.client.connection().initiate_key_update(now),
            Ok(()),
            "the phase bit asks for it"
        );
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(RTT * 20);
        pair.download(10_000);
    }
    assert!(pair.server.connection().stats().key_updates >= 3);
    let client = eye.client_sent(&pair);
    let server = eye.server_sent(&pair);
    let types = |sent: &[Seen], kind| message_types(&crypto_stream(sent, kind));
    assert_eq!(types(&client, PacketKind::Initial), [1], "ClientHello");
    assert_eq!(types(&server, PacketKind::Initial), [2], "ServerHello");
    assert_eq!(types(&client, PacketKind::Handshake), [20], "Finished");
    assert_eq!(
        types(&server, PacketKind::Handshake),
        [8, 11, 15, 20],
        "EncryptedExtensions, Certificate, CertificateVerify, Finished"
    );
    assert_eq!(types(&client, PacketKind::OneRtt), [] as [u8; 0]);
    let tickets = types(&server, PacketKind::OneRtt);
    assert!(!tickets.is_empty() && tickets.iter().all(|&kind| kind == 4));
}

/// Returns the rank of a packet's encryption level.
fn level_of(kind: PacketKind) -> usize {
    match kind {
        PacketKind::Initial => 0,
        PacketKind::Handshake => 1,
        _ => 2,
    }
}

/// An end that has sent a packet of a level has its keys. Packets of lower levels then contain only
/// ACK, PADDING, PING, CONNECTION_CLOSE and CRYPTO data that was sent there before.
#[test]
fn new_data_leaves_at_the_highest_level() {
    let mut lower = 0;
    for seed in 0..12 {
        let mut setup = Setup {
            seed,
            ..Setup::default()
        };
        setup.server.tls = server_tls_with_big_chain(&[b"test"], 3);
        let (setup, eye) = setup.with_eye();
        let mut pair = Pair::with(setup);
        pair.link.loss = if seed == 0 { 0 } else { 200 };
        pair.connect();
        for sent in [eye.client_sent(&pair), eye.server_sent(&pair)] {
            let (mut highest, mut most) = (0, [0; 3]);
            for packet in &sent {
                let level = level_of(packet.kind);
                highest = highest.max(level);
                for frame in packet.frames() {
                    let old = match &frame {
                        Frame::Crypto(crypto) => {
                            let end = crypto.offset + crypto.data.len() as u64;
                            let is_old = end <= most[level];
                            most[level] = most[level].max(end);
                            is_old
                        }
                        Frame::Ack(_)
                        | Frame::Padding(_)
                        | Frame::Ping
                        | Frame::ConnectionClose(_) => true,
                        _ => false,
                    };
                    assert!(old || level == highest, "seed {seed}: {packet:?}");
                    lower += usize::from(level < highest);
                }
            }
        }
    }
    assert!(lower > 0, "nothing was repeated");
}

#[test]
fn lost_crypto_is_repeated_at_its_own_level() {
    for seed in 0..10 {
        let (setup, eye) = Setup {
            seed,
            ..Setup::default()
        }
        .with_eye();
        let mut pair = Pair::with(setup);
        pair.link.loss = 200;
        pair.connect();
        for (sent, first) in [
            (eye.client_sent(&pair), [1, 20]),
            (eye.server_sent(&pair), [2, 8]),
        ] {
            for packet in &sent {
                let level = usize::from(packet.kind == PacketKind::Handshake);
                for frame in packet
                    .frames()
                    .filter(|_| packet.kind != PacketKind::OneRtt)
                {
                    if let Frame::Crypto(frame) = frame
                        && frame.offset == 0
                    {
                        assert_eq!(frame.data[0], first[level], "seed {seed}: {packet:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn flight_of_a_server_is_one_batch_if_the_system_can_segment() {
    for max_segments in [1, 16] {
        let mut setup = Setup {
            max_segments,
            ..Setup::default()
        };
        setup.server.tls = server_tls_with_big_chain(&[b"test"], 2);
        let mut pair = Pair::with(setup);
        pair.start();
        assert!(pair.run_until(RTT, |pair| !pair.server.batches.is_empty()));
        let first = pair.server.batches[0];
        assert_eq!(
            first > 1,
            max_segments > 1,
            "at most {max_segments}: {first}"
        );
        assert!(pair.client.batches.iter().all(|len| *len == 1));
    }
}

#[test]
fn client_hello_of_several_initials_is_sent_in_full_datagrams() {
    let (mut pair, eye) = Pair::watched();
    pair.start();
    pair.drive();
    let hellos: Vec<_> = eye
        .client_sent(&pair)
        .into_iter()
        .filter(|packet| packet.has(|frame| matches!(frame, Frame::Crypto(_))))
        .collect();
    assert!(
        hellos.len() >= 2,
        "a post-quantum key share fills a datagram"
    );
    assert!(
        hellos
            .iter()
            .all(|packet| packet.kind == PacketKind::Initial)
    );
    assert!(hellos.iter().all(|packet| packet.datagram_len >= 1200));
    let id = hellos[0].destination;
    assert!(id.len() >= 8);
}
