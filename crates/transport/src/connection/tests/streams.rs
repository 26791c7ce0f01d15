//! Tests that violations of the rules of streams and flow control are detected. RFC 9000 §2 to §4, §19.

use courser_wire::StreamId;
use courser_wire::frame::Frame;

use super::frames::raw;
use super::*;
use crate::stream::{ReadError, StreamEvent};
use crate::testing::Setup;
use crate::testing::eye::Seen;

/// Initial window of a stream and number of streams of each kind, by default.
const WINDOW: u64 = 256 * 1024;
const STREAMS: u64 = 100;

/// Sends frames to the server of a fresh pair and compares the codes at both ends.
fn assert_server_closes(case: &str, frames: &[u8], code: u64) {
    let mut pair = Pair::connected();
    pair.forge_to_server(SpaceId::Application, frames);
    assert_eq!(pair.server_error(), Some(code), "{case}");
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(code), "{case}");
}

/// Opens a stream on the client, writes to it and drives the pair.
fn client_writes(pair: &mut Pair, direction: Direction, data: &[u8]) -> StreamId {
    let streams = pair.client.connection().streams();
    let id = streams.open(direction).expect("room for a stream");
    assert_eq!(streams.write(id, data), Ok(data.len()));
    pair.client.touch();
    id
}

#[test]
fn frames_against_the_role_of_a_stream_are_state_errors() {
    // Bidirectional streams are 0 of the client and 1 of the server, unidirectional ones 2 and 3.
    let cases: [(&str, Vec<u64>); 10] = [
        ("STREAM for a local stream not yet opened", vec![0x08, 1]),
        ("STREAM for a send-only stream", vec![0x08, 3]),
        ("RESET_STREAM for a send-only stream", vec![0x04, 3, 0, 0]),
        (
            "RESET_STREAM for a local stream not yet opened",
            vec![0x04, 1, 0, 0],
        ),
        (
            "STREAM_DATA_BLOCKED for a send-only stream",
            vec![0x15, 3, 0],
        ),
        (
            "STOP_SENDING for a local stream not yet opened",
            vec![0x05, 1, 0],
        ),
        (
            "STOP_SENDING for a local one-way stream not yet opened",
            vec![0x05, 3, 0],
        ),
        ("STOP_SENDING for a receive-only stream", vec![0x05, 2, 0]),
        (
            "MAX_STREAM_DATA for a local stream not yet opened",
            vec![0x11, 1, 9],
        ),
        (
            "MAX_STREAM_DATA for a receive-only stream",
            vec![0x11, 2, 9],
        ),
    ];
    for (case, fields) in cases {
        assert_server_closes(case, &raw(&fields), 0x05);
    }
}

#[test]
fn any_frame_for_a_stream_above_the_limit_is_a_limit_error() {
    let (bidi, uni) = (4 * STREAMS, 4 * STREAMS + 2);
    let cases: [(&str, Vec<u64>); 7] = [
        ("STREAM", vec![0x08, bidi]),
        ("STREAM, one way", vec![0x08, uni]),
        ("RESET_STREAM", vec![0x04, bidi, 0, 0]),
        ("RESET_STREAM, one way", vec![0x04, uni, 0, 0]),
        ("STOP_SENDING", vec![0x05, bidi, 0]),
        ("MAX_STREAM_DATA", vec![0x11, bidi, 0]),
        ("STREAM_DATA_BLOCKED", vec![0x15, uni, 0]),
    ];
    for (case, fields) in cases {
        assert_server_closes(case, &raw(&fields), 0x04);
    }
}

#[test]
fn data_and_final_sizes_past_a_limit_are_flow_control_errors() {
    let resets = |count: u64| -> Vec<u8> {
        (0..count)
            .flat_map(|index| raw(&[0x04, 4 * index, 0, WINDOW]))
            .collect()
    };
    assert_server_closes("stream, by data", &raw(&[0x0e, 0, WINDOW, 1, 7]), 0x03);
    assert_server_closes(
        "stream, by RESET_STREAM",
        &raw(&[0x04, 0, 0, WINDOW + 1]),
        0x03,
    );
    let by_reset = [resets(4), raw(&[0x04, 16, 0, 1])].concat();
    assert_server_closes("connection, by RESET_STREAM", &by_reset, 0x03);
    let by_data = [resets(4), raw(&[0x0a, 16, 1, 7])].concat();
    assert_server_closes("connection, by data", &by_data, 0x03);
    let by_jump = [
        resets(3),
        raw(&[0x0e, 16, WINDOW - 1, 1, 7]),
        raw(&[0x0a, 20, 1, 7]),
    ]
    .concat();
    assert_server_closes("connection, by the largest offset", &by_jump, 0x03);
    let mut pair = Pair::connected();
    pair.forge_to_server(SpaceId::Application, &resets(4));
    assert_eq!(
        pair.server_error(),
        None,
        "data up to the limit is accepted"
    );
}

#[test]
fn changed_final_sizes_are_final_size_errors() {
    let fin_at_2 = raw(&[0x0b, 0, 2, 7, 7]);
    let cases: [(&str, Vec<u64>); 6] = [
        ("FIN at another size", vec![0x0b, 0, 3, 7, 7, 7]),
        ("FIN below", vec![0x0b, 0, 1, 7]),
        ("data past it", vec![0x0e, 0, 2, 1, 7]),
        ("data far past it", vec![0x0e, 0, 9, 1, 7]),
        ("RESET_STREAM above", vec![0x04, 0, 0, 3]),
        ("RESET_STREAM below", vec![0x04, 0, 0, 1]),
    ];
    for (case, fields) in cases {
        assert_server_closes(case, &[fin_at_2.clone(), raw(&fields)].concat(), 0x06);
    }
    let below = [raw(&[0x0e, 0, 5, 1, 7]), raw(&[0x0b, 0, 2, 7, 7])].concat();
    assert_server_closes("FIN below data that arrived", &below, 0x06);
}

#[test]
fn frame_on_a_stream_opens_all_lower_ones_of_its_kind() {
    let mut pair = Pair::connected();
    pair.forge_to_server(SpaceId::Application, &raw(&[0x0a, 8, 1, 7]));
    assert_eq!(pair.server_error(), None);
    let streams = pair.server.connection().streams();
    let accepted: Vec<_> =
        std::iter::from_fn(|| streams.accept(Direction::Bidirectional)).collect();
    assert_eq!(accepted, [0, 4, 8].map(StreamId::from_value));
    assert_eq!(streams.accept(Direction::Unidirectional), None);
}

#[test]
fn bytes_that_arrive_in_any_order_are_read_in_order() {
    let mut pair = Pair::connected();
    for fields in [
        &[0x0f, 0, 4, 1, 5][..],
        &[0x0e, 0, 1, 3, 2, 3, 4],
        &[0x0e, 0, 0, 2, 1, 2],
    ] {
        pair.forge_to_server(SpaceId::Application, &raw(fields));
    }
    let streams = pair.server.connection().streams();
    let id = streams.accept(Direction::Bidirectional).expect("opened");
    let mut buffer = [0; 16];
    assert_eq!(streams.read(id, &mut buffer), Ok(Some(5)));
    assert_eq!(buffer[..5], [1, 2, 3, 4, 5]);
    assert_eq!(streams.read(id, &mut buffer), Ok(None));
}

/// RFC 9000 §2.2 permits an error here. This end keeps the first bytes and goes on.
#[test]
fn different_bytes_for_an_offset_do_not_replace_the_first() {
    let mut pair = Pair::connected();
    let stream = |offset: u64, byte: u64| raw(&[0x0e, 0, offset, 3, byte, byte, byte]);
    pair.forge_to_server(SpaceId::Application, &stream(0, 7));
    pair.forge_to_server(SpaceId::Application, &stream(0, 9));
    pair.forge_to_server(SpaceId::Application, &stream(2, 9));
    assert_eq!(pair.server_error(), None);
    let streams = pair.server.connection().streams();
    let id = streams.accept(Direction::Bidirectional).expect("opened");
    let mut bytes = [0; 9];
    assert_eq!(streams.read(id, &mut bytes), Ok(Some(5)));
    assert_eq!(bytes[..5], [7, 7, 7, 9, 9]);
}

/// RFC 9000 §11.2: the transport resets no stream itself.
#[test]
fn only_the_application_resets_streams() {
    let is_reset = |seen: &Seen| seen.has(|frame| matches!(frame, Frame::ResetStream(_)));
    for seed in 0..4 {
        let (setup, eye) = Setup {
            seed,
            ..Setup::default()
        }
        .with_eye();
        let mut pair = Pair::with(setup);
        pair.connect();
        pair.link.loss = 100;
        pair.upload(300_000);
        pair.download(300_000);
        pair.link.loss = 0;
        let now = pair.now;
        client_writes(&mut pair, Direction::Unidirectional, &[1; 100]);
        pair.drive();
        pair.client
            .connection()
            .close(now, 3, b"with an open stream");
        pair.client.touch();
        pair.run_for(RTT * 3);
        for sent in [eye.client_sent(&pair), eye.server_sent(&pair)] {
            assert!(!sent.iter().any(is_reset), "seed {seed}");
        }
    }
    let (mut pair, eye) = Pair::watched_and_connected();
    let id = client_writes(&mut pair, Direction::Unidirectional, &[1; 100]);
    pair.client
        .connection()
        .streams()
        .reset(id, 5)
        .expect("open");
    pair.client.touch();
    pair.run_for(RTT);
    assert!(eye.client_sent(&pair).iter().any(is_reset));
}

#[test]
fn reset_carries_the_code_of_the_application() {
    let mut pair = Pair::connected();
    let id = client_writes(&mut pair, Direction::Unidirectional, b"half");
    pair.run_for(RTT);
    pair.client
        .connection()
        .streams()
        .reset(id, 77)
        .expect("open");
    pair.client.touch();
    pair.run_for(RTT);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Unidirectional), Some(id));
    assert_eq!(streams.read(id, &mut [0; 9]), Err(ReadError::Reset(77)));
}

#[test]
fn stop_sending_is_answered_by_a_reset_with_the_same_code() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let id = client_writes(&mut pair, Direction::Bidirectional, b"unwanted");
    pair.run_for(RTT);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Bidirectional), Some(id));
    streams.stop(id, 31).expect("open");
    pair.server.touch();
    pair.run_for(RTT * 2);
    assert!(pair.client.has(&Event::Stream(StreamEvent::Stopped {
        id,
        code: 31,
        was_finished: false
    })));
    let sent = eye.client_sent(&pair);
    let resets = sent
        .iter()
        .flat_map(|packet| packet.frames())
        .filter_map(|frame| match frame {
            Frame::ResetStream(reset) => Some((reset.id, reset.error_code, reset.final_size)),
            _ => None,
        });
    assert_eq!(resets.collect::<Vec<_>>(), [(id, 31, 8)]);
}

#[test]
fn sender_stays_within_the_window_and_reports_that_it_is_blocked() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    let data = vec![5; 4096];
    for _ in 0..1000 {
        while pair.client.connection().streams().write(id, &data).is_ok() {}
        pair.client.touch();
        pair.run_for(RTT / 4);
    }
    let sent = eye.client_sent(&pair);
    let ends = sent
        .iter()
        .flat_map(|packet| packet.frames())
        .filter_map(|frame| match frame {
            Frame::Stream(frame) => Some(frame.offset + frame.data.len() as u64),
            _ => None,
        });
    assert_eq!(ends.max(), Some(WINDOW), "the window is used, and no more");
    assert!(sent.iter().any(|packet| packet.has(
        |frame| matches!(frame, Frame::StreamDataBlocked(blocked) if blocked.limit == WINDOW)
    )));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn repeated_bytes_are_the_same_bytes() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.link.loss = 100;
    let data: Vec<u8> = (0..60_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    client_writes(&mut pair, Direction::Unidirectional, &data);
    pair.run_for(RTT * 100);
    let mut total = 0;
    for packet in eye.client_sent(&pair) {
        for frame in packet.frames() {
            if let Frame::Stream(frame) = frame {
                let start = usize::try_from(frame.offset).expect("small");
                assert_eq!(
                    frame.data,
                    &data[start..start + frame.data.len()],
                    "at {start}"
                );
                total += frame.data.len();
            }
        }
    }
    assert!(total > data.len(), "nothing was repeated");
}

#[test]
fn stream_credit_is_granted_without_a_request() {
    let (mut pair, eye) = Pair::watched_and_connected();
    for round in 0..3 * STREAMS {
        let id = client_writes(&mut pair, Direction::Unidirectional, b"x");
        assert_eq!(id.index(), round, "an ID is used once");
        pair.client.connection().streams().finish(id).expect("open");
        pair.client.touch();
        pair.run_for(RTT);
        let streams = pair.server.connection().streams();
        assert_eq!(streams.accept(Direction::Unidirectional), Some(id));
        assert_eq!(streams.read(id, &mut [0; 9]), Ok(Some(1)));
        assert_eq!(streams.read(id, &mut [0; 9]), Ok(None));
        pair.server.touch();
        pair.run_for(RTT);
    }
    let asked = |frame: &Frame<'_>| matches!(frame, Frame::StreamsBlocked(_));
    assert!(
        !eye.client_sent(&pair)
            .iter()
            .any(|packet| packet.has(asked))
    );
}
