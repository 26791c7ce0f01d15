//! Tests floods of frames, each of which is allowed once.

use courser_wire::frame::{self, Frame};
use courser_wire::{StreamId, TransportErrorCode};

use super::*;
use crate::acknowledger::received::MAX_RANGES;
use crate::config::TransportConfig;
use crate::testing::forge::{encode, forge};
use crate::testing::forgery::Forgery;

const PROTOCOL_VIOLATION: u64 = TransportErrorCode::PROTOCOL_VIOLATION.value();

/// Delivers `count` packets of the client to the server at once, without letting it answer in
/// between.
fn flood(pair: &mut Pair, count: usize, payload: impl Fn(usize) -> Vec<u8>) {
    for number in 0..count {
        let bytes = forge(&mut pair.client, SpaceId::Application, &payload(number));
        let (from, to) = (client_address(), server_address());
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
    }
    pair.drive();
}

/// Returns the number of datagrams that the server sent in answer to `attack`.
fn answers(pair: &mut Pair, attack: impl FnOnce(&mut Pair)) -> usize {
    let before = pair.server.sent.len();
    attack(pair);
    pair.run_for(RTT * 2);
    pair.server.sent.len() - before
}

/// Returns true if the server survives or closes with PROTOCOL_VIOLATION.
fn tolerates_or_closes(pair: &mut Pair) -> bool {
    let is_closed = is_closed(&mut pair.server);
    !is_closed || pair.server_error() == Some(PROTOCOL_VIOLATION)
}

fn client_stream(index: u64) -> StreamId {
    StreamId::new(courser_base::Side::Client, Direction::Unidirectional, index)
}

fn stream_frame(index: u64, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    encode(&Frame::Stream(frame::Stream {
        id: client_stream(index),
        offset,
        data,
        fin,
    }))
}

#[test]
fn storm_of_acknowledgements_is_tolerated_or_ended() {
    // Attack A25: each acknowledges the same old packet.
    let mut pair = Pair::connected();
    let sent = answers(&mut pair, |pair| {
        flood(pair, 20_000, |_| vec![0x02, 0, 0, 0, 0]);
    });
    assert!(tolerates_or_closes(&mut pair));
    assert!(sent < 50, "{sent} answers");
}

#[test]
fn frames_without_progress_are_tolerated_or_ended() {
    // Attack A33, each kind alone.
    let id = client_stream(0);
    let kinds: [(&str, Vec<u8>); 7] = [
        ("PING", vec![1]),
        ("PADDING", vec![0; 20]),
        (
            "MAX_DATA",
            encode(&Frame::MaxData(frame::MaxData { limit: 1 })),
        ),
        (
            "DATA_BLOCKED",
            encode(&Frame::DataBlocked(frame::DataBlocked { limit: 7 })),
        ),
        ("empty STREAM", stream_frame(0, 0, &[], false)),
        (
            "STREAM_DATA_BLOCKED",
            encode(&Frame::StreamDataBlocked(frame::StreamDataBlocked {
                id,
                limit: 7,
            })),
        ),
        (
            "STREAMS_BLOCKED",
            encode(&Frame::StreamsBlocked(frame::StreamsBlocked {
                direction: Direction::Unidirectional,
                limit: 100,
            })),
        ),
    ];
    for (name, payload) in kinds {
        let mut pair = Pair::connected();
        // The server may answer with credit.
        let streams = pair.client.connection().streams();
        assert_eq!(streams.open(Direction::Unidirectional), Some(id));
        let sent = answers(&mut pair, |pair| flood(pair, 5_000, |_| payload.clone()));
        assert!(
            tolerates_or_closes(&mut pair),
            "{name}: {:?}",
            pair.server.events
        );
        assert!(sent < 50, "{name}: {sent} answers to one flood");
    }
}

#[test]
fn repetition_without_progress_ends_the_connection() {
    // Attack A33: bytes and credit that were received before.
    let credit = encode(&Frame::MaxData(frame::MaxData { limit: 1 }));
    let blocked = encode(&Frame::StreamsBlocked(frame::StreamsBlocked {
        direction: Direction::Unidirectional,
        limit: 100,
    }));
    for (name, frame) in [
        ("STREAM", stream_frame(0, 0, b"x", false)),
        ("MAX_DATA", credit),
        ("STREAMS_BLOCKED", blocked),
    ] {
        let mut pair = Pair::connected();
        flood(&mut pair, 200, |_| frame.repeat(100));
        assert_eq!(pair.server_error(), Some(PROTOCOL_VIOLATION), "{name}");
    }
}

#[test]
fn many_frames_in_one_packet_are_tolerated_or_ended() {
    let mut pair = Pair::connected();
    flood(&mut pair, 100, |_| vec![1; 1100]);
    assert!(tolerates_or_closes(&mut pair));
}

#[test]
fn flood_of_gaps_is_refused_and_repeated_data_is_still_delivered() {
    // Attack A26: a byte at every second offset.
    let mut pair = Pair::connected();
    flood(&mut pair, 1_000, |number| {
        stream_frame(0, 2 * number as u64, &[7], false)
    });
    assert!(!is_closed(&mut pair.server), "{:?}", pair.server.events);
    let received = pair.server.connection().stats().data_received;
    // 128, plus one for each 32 KiB of a window of 256 KiB, and the bytes after the last.
    assert!(
        received <= 2 * 137,
        "limit K02: bytes up to offset {received}"
    );
    // The same bytes in order close the gaps one after the other.
    flood(&mut pair, 20, |number| {
        stream_frame(0, 100 * number as u64, &[7; 100], number == 19)
    });
    let streams = pair.server.connection().streams();
    let id = streams.accept(Direction::Unidirectional).expect("opened");
    let (mut buffer, mut total) = ([0; 4096], 0);
    while let Ok(Some(n)) = streams.read(id, &mut buffer) {
        assert!(buffer[..n].iter().all(|byte| *byte == 7));
        total += n;
    }
    assert_eq!(total, 2000);
}

#[test]
fn packet_with_a_refused_frame_is_not_acknowledged_until_it_is_kept() {
    let mut setup = Setup::default();
    let transport = TransportConfig {
        max_gaps_per_stream: 2,
        // Less than would justify another gap.
        stream_receive_window: 16 << 10,
        ..TransportConfig::default()
    };
    setup.server.transport = Arc::new(transport);
    let mut pair = Pair::with(setup);
    pair.connect();
    let acknowledged = |pair: &mut Pair, number: u64| {
        pair.server
            .connection()
            .parts
            .acknowledger
            .is_duplicate(SpaceId::Application, number)
    };
    let mut refused = Vec::new();
    for offset in [10, 20, 30, 40, 50] {
        let forgery = Forgery::of(&stream_frame(0, offset, &[7], false));
        let number = pair
            .client
            .connection()
            .forging_number(SpaceId::Application);
        let bytes = forgery
            .number(number)
            .seal(&mut pair.client, SpaceId::Application);
        pair.send_to_server(bytes.clone());
        if !acknowledged(&mut pair, number) {
            refused.push((number, bytes));
        }
    }
    assert!(refused.len() >= 2, "{} refused", refused.len());
    pair.forge_to_server(SpaceId::Application, &stream_frame(0, 0, &[7; 40], false));
    let (number, bytes) = refused.remove(0);
    pair.send_to_server(bytes);
    assert!(
        acknowledged(&mut pair, number),
        "the same packet is accepted now"
    );
}

#[test]
fn transfer_over_a_bad_network_ends_with_a_small_limit_on_gaps() {
    for seed in 0..5 {
        let mut setup = Setup {
            seed,
            ..Setup::default()
        };
        let transport = TransportConfig {
            max_gaps_per_stream: 2,
            max_gaps: 3,
            ..TransportConfig::default()
        };
        setup.server.transport = Arc::new(transport);
        let mut pair = Pair::with(setup);
        pair.connect();
        pair.link.loss = 100;
        pair.link.reorder = 300;
        pair.upload(200_000);
    }
}

#[test]
fn high_stream_numbers_cost_no_more_than_low_ones() {
    // Attack A27: uses the last allowed stream first.
    let mut pair = Pair::connected();
    flood(&mut pair, 1, |_| stream_frame(99, 0, &[1], false));
    assert!(!is_closed(&mut pair.server));
    let mut opened = 0;
    while pair
        .server
        .connection()
        .streams()
        .accept(Direction::Unidirectional)
        .is_some()
    {
        opened += 1;
    }
    assert_eq!(opened, 100);
    flood(&mut pair, 1, |_| stream_frame(100, 0, &[1], false));
    let code = TransportErrorCode::STREAM_LIMIT_ERROR.value();
    assert_eq!(pair.server_error(), Some(code));
}

#[test]
fn flood_of_connection_ids_is_bounded() {
    // Attack A30: each asks for the retirement of all before it, and nothing is ever acknowledged.
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    flood(&mut pair, 1_000, |number| {
        let sequence = 4 + number as u64;
        let id = courser_wire::ConnectionId::new(&sequence.to_be_bytes()).expect("eight bytes");
        let frame = frame::NewConnectionId {
            sequence,
            retire_prior_to: sequence,
            id,
            reset_token: [sequence.to_be_bytes(), sequence.to_be_bytes()]
                .concat()
                .try_into()
                .expect("16"),
        };
        encode(&Frame::NewConnectionId(frame))
    });
    let code = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR.value();
    assert_eq!(pair.server_error(), Some(code), "limit K05");
}

#[test]
fn cost_of_a_jump_of_packet_numbers_is_constant() {
    // Attack A34: as far ahead as four bytes allow, again and again.
    let mut pair = Pair::connected();
    for jump in 1..1_800u64 {
        let forgery = Forgery::of(&[1]).number(jump * 0x3fff_ffff);
        let bytes = forgery.seal(&mut pair.client, SpaceId::Application);
        let (from, to) = (client_address(), server_address());
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
    }
    assert!(!is_closed(&mut pair.server));
    let received = pair.server.connection().parts.acknowledger.received();
    assert!(received.ranges().len() <= MAX_RANGES, "limit K03");
    assert!(received.largest() >= Some(1_799 * 0x3fff_ffff));
}

#[test]
fn cost_of_an_acknowledgement_depends_on_its_length() {
    // Attack A22: as many ranges as fit, all of them settled long ago, then random numbers.
    let mut pair = Pair::connected();
    pair.upload(100_000);
    pair.run_for(RTT * 3);
    let largest = pair
        .client
        .connection()
        .packets
        .recovery
        .first_unused_number();
    for first in [0u64, 1, largest] {
        let mut payload = vec![
            0x02,
            0x40,
            0x40,
            0,
            0x44,
            0x00,
            u8::try_from(first.min(60)).expect("small"),
        ];
        payload.resize(1100, 0);
        pair.forge_to_client(SpaceId::Application, &payload);
    }
    assert!(
        pair.client_error().is_some(),
        "a range below zero, or cut off"
    );
}

#[test]
fn peer_that_moves_with_every_packet_is_bounded() {
    // Attack A54.
    let mut pair = Pair::connected();
    for number in 0..2_000u16 {
        let bytes = forge(
            &mut pair.client,
            SpaceId::Application,
            &stream_frame(0, u64::from(number), &[1], false),
        );
        let mut from = client_address();
        from.set_port(10_000 + number);
        pair.deliver(Datagram {
            from,
            to: server_address(),
            ecn: Ecn::NotEct,
            bytes,
        });
        pair.now += Duration::from_millis(1);
        pair.drive();
        assert!(pair.server.connection().parts.paths.len() <= 4);
    }
    assert!(
        !is_closed(&mut pair.server),
        "{:?}",
        pair.server.events.last()
    );
    assert!(pair.server.connection().events.len() < 10);
}
