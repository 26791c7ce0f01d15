//! Tests which frames each kind of packet may contain. RFC 9000 §12.4, §12.5, §19.

use courser_wire::frame::Frame;

use super::*;
use crate::testing::forgery::Forgery;
use crate::testing::tampering::varint;

/// Encodes a frame whose fields are all varints.
pub(super) fn raw(fields: &[u64]) -> Vec<u8> {
    fields.iter().flat_map(|&field| varint(field)).collect()
}

/// Returns one well-formed frame of each type, harmless where it is permitted. `stream` is a
/// bidirectional stream that the sender of the frame may open.
fn one_of_each(stream: u64) -> Vec<(u64, Vec<u8>)> {
    let with_tail = |fields: &[u64], tail: &[u8]| [&raw(fields)[..], tail].concat();
    vec![
        (0x00, raw(&[0x00])),
        (0x01, raw(&[0x01])),
        (0x02, raw(&[0x02, 0, 0, 0, 0])),
        (0x03, raw(&[0x03, 0, 0, 0, 0, 0, 0, 0])),
        (0x04, raw(&[0x04, stream, 0, 0])),
        (0x05, raw(&[0x05, stream, 0])),
        (0x06, raw(&[0x06, 0, 0])),
        (0x07, raw(&[0x07, 1, 7])),
        (0x08, raw(&[0x08, stream])),
        (0x08, raw(&[0x0b, stream, 0])),
        (0x08, raw(&[0x0f, stream, 0, 0])),
        (0x10, raw(&[0x10, 0])),
        (0x11, raw(&[0x11, stream, 0])),
        (0x12, raw(&[0x12, 0])),
        (0x13, raw(&[0x13, 0])),
        (0x14, raw(&[0x14, 0])),
        (0x15, raw(&[0x15, stream, 0])),
        (0x16, raw(&[0x16, 0])),
        (0x17, raw(&[0x17, 0])),
        (0x18, with_tail(&[0x18, 4, 1, 8], &[0xc1; 24])),
        (0x19, raw(&[0x19, 1])),
        (0x1a, with_tail(&[0x1a], &[1; 8])),
        (0x1b, with_tail(&[0x1b], &[1; 8])),
        (0x1d, raw(&[0x1d, 0, 0])),
        (0x1e, raw(&[0x1e])),
        // Listed last, because it ends the connection where it is permitted.
        (0x1c, raw(&[0x1c, 0, 0, 0])),
    ]
}

/// Implements RFC 9000 §12.4 Table 3, columns I and H.
fn is_permitted_in_handshake(frame_type: u64) -> bool {
    matches!(frame_type, 0x00..=0x03 | 0x06 | 0x1c)
}

/// Returns the frame type that an end names in its own error. The eight types of STREAM count as
/// one.
fn blamed(events: &[Event]) -> Option<u64> {
    let frame_type = events.iter().find_map(|event| match event {
        Event::Lost(ConnectionError::TransportError(error)) => error.frame_type,
        _ => None,
    })?;
    Some(if (0x08..=0x0f).contains(&frame_type) {
        0x08
    } else {
        frame_type
    })
}

fn is_over(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Lost(_)))
}

#[test]
fn server_accepts_in_handshake_packets_only_frames_that_table_3_permits() {
    for (space, made) in [
        (SpaceId::Initial, with_initial_keys as fn() -> Pair),
        (SpaceId::Handshake, with_handshake_keys),
    ] {
        for (frame_type, bytes) in one_of_each(0) {
            let mut pair = made();
            pair.forge_to_server(space, &bytes);
            let case = format!("{frame_type:#x} in {space:?}");
            if is_permitted_in_handshake(frame_type) {
                assert_eq!(pair.server_error(), None, "{case}");
                assert_eq!(is_over(&pair.server.events), frame_type == 0x1c, "{case}");
            } else {
                assert_eq!(pair.server_error(), Some(0x0a), "{case}");
                assert_eq!(blamed(&pair.server.events), Some(frame_type), "{case}");
                pair.run_for(RTT);
                assert_eq!(pair.close_received_by_client(), Some(0x0a), "{case}");
            }
        }
    }
}

#[test]
fn client_accepts_in_handshake_packets_only_frames_that_table_3_permits() {
    for (space, made) in [
        (SpaceId::Initial, with_initial_keys as fn() -> Pair),
        (SpaceId::Handshake, with_handshake_keys),
    ] {
        for (frame_type, bytes) in one_of_each(1) {
            let mut pair = made();
            pair.forge_to_client(space, &bytes);
            let case = format!("{frame_type:#x} in {space:?}");
            if is_permitted_in_handshake(frame_type) {
                assert_eq!(pair.client_error(), None, "{case}");
                assert_eq!(is_over(&pair.client.events), frame_type == 0x1c, "{case}");
            } else {
                assert_eq!(pair.client_error(), Some(0x0a), "{case}");
                assert_eq!(blamed(&pair.client.events), Some(frame_type), "{case}");
                pair.run_for(RTT);
                assert_eq!(pair.close_received_by_server(), Some(0x0a), "{case}");
            }
        }
    }
}

#[test]
fn client_accepts_every_frame_type_in_1rtt_packets() {
    for (frame_type, bytes) in one_of_each(1) {
        let mut pair = Pair::connected();
        pair.forge_to_client(SpaceId::Application, &bytes);
        let closes = matches!(frame_type, 0x1c | 0x1d);
        assert_eq!(pair.client_error(), None, "{frame_type:#x}");
        assert_eq!(is_over(&pair.client.events), closes, "{frame_type:#x}");
    }
}

#[test]
fn server_accepts_every_frame_type_in_1rtt_packets_but_those_of_servers() {
    for (frame_type, bytes) in one_of_each(0) {
        let mut pair = Pair::connected();
        pair.forge_to_server(SpaceId::Application, &bytes);
        let expected = match frame_type {
            0x07 | 0x1e => Some(0x0a),
            // TLS sends nothing after the handshake (RFC 9001 §6, §8.3).
            0x06 => Some(0x10a),
            _ => None,
        };
        assert_eq!(pair.server_error(), expected, "{frame_type:#x}");
        if let Some(code) = expected {
            assert_eq!(blamed(&pair.server.events), Some(frame_type));
            pair.run_for(RTT);
            assert_eq!(
                pair.close_received_by_client(),
                Some(code),
                "{frame_type:#x}"
            );
        }
    }
}

#[test]
fn packet_without_frames_is_a_protocol_violation_in_every_space() {
    for (space, mut pair) in [
        (SpaceId::Handshake, with_handshake_keys()),
        (SpaceId::Application, Pair::connected()),
    ] {
        pair.forge_to_server(space, &[]);
        assert_eq!(pair.server_error(), Some(0x0a), "{space:?}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_client(), Some(0x0a), "{space:?}");
    }
    let mut pair = with_initial_keys();
    let mut bytes = Forgery::of(&[])
        .unpadded()
        .seal(&mut pair.client, SpaceId::Initial);
    // The bytes after the packet form no packet, but make the datagram long enough.
    bytes.resize(1200, 0);
    pair.send_to_server(bytes);
    assert_eq!(pair.server_error(), Some(0x0a));
}

#[test]
fn unknown_frame_types_are_encoding_errors() {
    for frame_type in [0x20, 0x2f, 0x32, 0xae, 0x2ab2, (1 << 62) - 1] {
        let mut pair = Pair::connected();
        pair.forge_to_server(SpaceId::Application, &raw(&[frame_type, 0, 0, 0]));
        assert_eq!(pair.server_error(), Some(0x07), "{frame_type:#x}");
        assert_eq!(blamed(&pair.server.events), Some(frame_type));
        pair.run_for(RTT);
        assert_eq!(
            pair.close_received_by_client(),
            Some(0x07),
            "{frame_type:#x}"
        );
    }
}

#[test]
fn frame_type_in_a_longer_varint_than_needed_is_a_protocol_violation() {
    for bytes in [
        &[0x40, 0x01][..],
        &[0x80, 0, 0, 0x1e],
        &[0xc0, 0, 0, 0, 0, 0, 0, 0x01],
    ] {
        let mut pair = Pair::connected();
        pair.forge_to_client(SpaceId::Application, bytes);
        assert_eq!(pair.client_error(), Some(0x0a), "{bytes:?}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_server(), Some(0x0a), "{bytes:?}");
    }
}

#[test]
fn malformed_frames_are_encoding_errors_of_their_type() {
    let past = 1 << 62;
    let cases: [(&str, u64, Vec<u8>); 17] = [
        ("truncated varint", 0x10, vec![0x10, 0xc0, 0]),
        ("missing field", 0x04, raw(&[0x04, 0, 0])),
        ("STREAM longer than the packet", 0x08, raw(&[0x0a, 0, 5, 1])),
        ("STREAM past 2^62-1", 0x08, raw(&[0x0e, 0, past - 1, 1, 7])),
        ("CRYPTO longer than the packet", 0x06, raw(&[0x06, 0, 5, 1])),
        ("CRYPTO past 2^62-1", 0x06, raw(&[0x06, past - 1, 1, 7])),
        ("ACK below zero", 0x02, raw(&[0x02, 1, 0, 0, 2])),
        ("ACK gap below zero", 0x02, raw(&[0x02, 3, 0, 1, 0, 2, 0])),
        (
            "ACK with more ranges than bytes",
            0x02,
            raw(&[0x02, 1, 0, past - 1, 0]),
        ),
        ("MAX_STREAMS past 2^60", 0x12, raw(&[0x12, (1 << 60) + 1])),
        (
            "MAX_STREAMS above 2^60, unidirectional",
            0x13,
            raw(&[0x13, (1 << 60) + 1]),
        ),
        (
            "STREAMS_BLOCKED past 2^60",
            0x16,
            raw(&[0x16, (1 << 60) + 1]),
        ),
        (
            "NEW_CONNECTION_ID of no bytes",
            0x18,
            [&raw(&[0x18, 4, 1, 0])[..], &[1; 16]].concat(),
        ),
        (
            "NEW_CONNECTION_ID of 21",
            0x18,
            [&raw(&[0x18, 4, 1, 21])[..], &[1; 37]].concat(),
        ),
        (
            "Retire Prior To past sequence",
            0x18,
            [&raw(&[0x18, 4, 5, 8])[..], &[1; 24]].concat(),
        ),
        (
            "reason longer than the packet",
            0x1c,
            raw(&[0x1c, 0, 0, 9, 1]),
        ),
        (
            "PATH_CHALLENGE of 7 bytes",
            0x1a,
            vec![0x1a, 1, 2, 3, 4, 5, 6, 7],
        ),
    ];
    for (case, frame_type, bytes) in cases {
        let mut pair = Pair::connected();
        pair.forge_to_client(SpaceId::Application, &bytes);
        assert_eq!(pair.client_error(), Some(0x07), "{case}");
        assert_eq!(blamed(&pair.client.events), Some(frame_type), "{case}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_server(), Some(0x07), "{case}");
    }
}

#[test]
fn empty_new_token_is_an_encoding_error() {
    let mut pair = Pair::connected();
    pair.forge_to_client(SpaceId::Application, &raw(&[0x07, 0]));
    assert_eq!(pair.client_error(), Some(0x07));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x07));
}

#[test]
fn outdated_and_repeated_control_frames_change_nothing() {
    let mut pair = Pair::connected();
    let frames = [
        raw(&[0x10, 0]),
        raw(&[0x12, 1]),
        raw(&[0x13, 1]),
        raw(&[0x07, 3, 1, 2, 3]),
        raw(&[0x07, 3, 1, 2, 3]),
        raw(&[0x1e]),
        raw(&[0x14, 5]),
        [&[0x1b][..], &[9; 8]].concat(),
    ]
    .concat();
    pair.forge_to_client(SpaceId::Application, &frames);
    pair.run_for(RTT);
    assert_eq!(pair.client_error(), None);
    let streams = pair.client.connection().streams();
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        assert!(
            (0..100).all(|_| streams.open(direction).is_some()),
            "limit shrank: {direction:?}"
        );
        assert_eq!(streams.open(direction), None);
    }
}

#[test]
fn ping_and_a_megabyte_of_padding_are_only_acknowledged() {
    let mut pair = Pair::connected();
    let sent = pair.server.sent.len();
    for _ in 0..1000 {
        let bytes = Forgery::of(&[0; 1000]).seal(&mut pair.client, SpaceId::Application);
        pair.send_to_server(bytes);
    }
    assert_eq!(pair.server.sent.len(), sent, "padding is not ack-eliciting");
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.run_for(RTT * 2);
    assert_eq!(pair.server.sent.len(), sent + 1, "one acknowledgement");
    assert_eq!(pair.server_error(), None);
}

#[test]
fn challenge_is_answered_with_the_same_bytes() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.forge_to_server(SpaceId::Application, b"\x1aprobe me");
    let answers = |frame: &Frame<'_>| matches!(frame, Frame::PathResponse(response) if response.data == *b"probe me");
    let sent = eye.server_sent(&pair);
    assert_eq!(sent.iter().filter(|packet| packet.has(answers)).count(), 1);
    assert_eq!(sent.last().expect("an answer").datagram_len, 1200);
}

/// Returns one well-formed frame of each type of RFC 10069 §4.
fn one_of_each_for_paths() -> Vec<(u64, Vec<u8>)> {
    let new_id = [&raw(&[0x3e78, 1, 0, 0, 8])[..], &[0xc1; 24]].concat();
    vec![
        (0x3e, raw(&[0x3e, 1, 0, 0, 0, 0])),
        (0x3f, raw(&[0x3f, 1, 0, 0, 0, 0, 0, 0, 0])),
        (0x3e75, raw(&[0x3e75, 1, 0])),
        (0x3e76, raw(&[0x3e76, 1, 1])),
        (0x3e77, raw(&[0x3e77, 1, 1])),
        (0x3e78, new_id),
        (0x3e79, raw(&[0x3e79, 1, 0])),
        (0x3e7a, raw(&[0x3e7a, 4])),
        (0x3e7b, raw(&[0x3e7b, 4])),
        (0x3e7c, raw(&[0x3e7c, 1, 0])),
    ]
}

#[test]
fn frames_of_several_paths_that_were_not_negotiated_end_the_connection() {
    for (frame_type, bytes) in one_of_each_for_paths() {
        let mut pair = Pair::connected();
        pair.forge_to_server(SpaceId::Application, &bytes);
        assert_eq!(pair.server_error(), Some(0x0a), "{frame_type:#x}");
        assert_eq!(blamed(&pair.server.events), Some(frame_type));
    }
}

#[test]
fn frames_of_several_paths_before_1rtt_are_a_protocol_violation() {
    for (space, made) in [
        (SpaceId::Initial, with_initial_keys as fn() -> Pair),
        (SpaceId::Handshake, with_handshake_keys),
    ] {
        for (frame_type, bytes) in one_of_each_for_paths() {
            let mut pair = made();
            pair.forge_to_server(space, &bytes);
            assert_eq!(pair.server_error(), Some(0x0a), "{space:?} {frame_type:#x}");
        }
    }
}
