//! CRYPTO frames and the TLS messages in them. RFC 9000 §7.5, §19.6, RFC 9001 §4.

use courser_wire::frame::Frame;
use courser_wire::packet::PacketKind;

use super::frames::raw;
use super::*;
use crate::testing::{Setup, client_address};

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    [&raw(&[0x06, offset, data.len() as u64])[..], data].concat()
}

#[test]
fn crypto_of_an_old_level_may_repeat_but_not_go_on() {
    let mut pair = with_initial_keys();
    let read = pair
        .server
        .connection()
        .handshake
        .crypto()
        .get(SpaceId::Initial)
        .expect("open")
        .read_offset();
    pair.forge_to_server(SpaceId::Initial, &crypto(0, &[1, 2, 3]));
    assert_eq!(pair.server_error(), None, "a repetition, whatever it says");
    pair.forge_to_server(SpaceId::Initial, &crypto(read - 1, &[0]));
    assert_eq!(pair.server_error(), None, "up to the last byte");
    pair.forge_to_server(SpaceId::Initial, &crypto(read - 1, &[0, 0]));
    assert_eq!(pair.server_error(), Some(0x0a));
    pair.run_for(RTT);
    assert_eq!(pair.client_heard(), Some(0x0a));
}

#[test]
fn bytes_left_over_at_a_level_are_a_protocol_violation_on_a_client() {
    let mut pair = with_initial_keys();
    pair.forge_to_client(SpaceId::Initial, &crypto(9000, &[0]));
    assert_eq!(pair.client_error(), None, "they may yet join up");
    pair.run_for(RTT);
    assert_eq!(pair.client_error(), Some(0x0a));
    assert_eq!(pair.server_heard(), Some(0x0a));
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
    assert_eq!(pair.client_heard(), Some(0x0a));
}

#[test]
fn crypto_is_kept_up_to_the_limit_and_not_beyond() {
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
    assert_eq!(pair.server_heard(), Some(0x0d));
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
    assert_eq!(pair.server_heard(), Some(0x0d));
}

#[test]
fn crypto_after_the_handshake_has_its_limit_too() {
    let mut pair = Pair::connected();
    let read = pair
        .client
        .connection()
        .handshake
        .crypto()
        .get(SpaceId::Application)
        .expect("open")
        .read_offset();
    pair.forge_to_client(SpaceId::Application, &crypto(read + 16 * 1024, &[0]));
    assert_eq!(pair.client_error(), Some(0x0d));
    pair.run_for(RTT);
    assert_eq!(pair.server_heard(), Some(0x0d));
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
            .handshake
            .crypto()
            .get(SpaceId::Application)
            .expect("open")
            .read_offset();
        pair.forge_to_client(SpaceId::Application, &crypto(read, message));
        assert_eq!(pair.client_error(), Some(code), "{case}");
        pair.run_for(RTT);
        assert_eq!(pair.server_heard(), Some(code), "{case}");
    }
    let mut pair = Pair::connected();
    pair.forge_to_server(SpaceId::Application, &crypto(0, &[24, 0, 0, 1, 0]));
    assert_eq!(pair.server_error(), Some(0x10a), "KeyUpdate of a client");
    pair.run_for(RTT);
    assert_eq!(pair.client_heard(), Some(0x10a));
}

#[test]
fn garbage_instead_of_a_tls_message_is_an_alert() {
    let mut pair = with_initial_keys();
    pair.forge_to_client(SpaceId::Initial, &crypto(0, &[0xff, 0, 0, 1, 0]));
    assert_eq!(pair.client_error(), Some(0x10a));
    pair.run_for(RTT);
    assert_eq!(pair.server_heard(), Some(0x10a));
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
fn client_hello_of_several_initials_travels_in_full_datagrams() {
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
