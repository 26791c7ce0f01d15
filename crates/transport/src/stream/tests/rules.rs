//! The rules of RFC 9000 for streams, one by one.

use super::*;

const STATE: Code = Code::STREAM_STATE_ERROR;
const LIMIT: Code = Code::STREAM_LIMIT_ERROR;
const FLOW: Code = Code::FLOW_CONTROL_ERROR;
const SIZE: Code = Code::FINAL_SIZE_ERROR;

/// A frame that names a stream, as the peer could send it.
type Named = (&'static str, fn(&mut End, StreamId) -> Result<(), Code>);

const RECEIVING: [Named; 3] = [
    ("STREAM", |end, id| end.stream(id, 0, b"x").map(|_| ())),
    ("RESET_STREAM", |end, id| end.reset_stream(id, 1, 0)),
    ("STREAM_DATA_BLOCKED", |end, id| end.stream_data_blocked(id)),
];
const SENDING: [Named; 2] = [
    ("STOP_SENDING", |end, id| end.stop_sending(id, 1)),
    ("MAX_STREAM_DATA", |end, id| end.max_stream_data(id, 1000)),
];

#[test]
fn stream_ids_are_never_used_again() {
    let mut client = End::client();
    let mut last = None;
    for round in 0..100 {
        client.max_streams(UNI, round + 1).unwrap();
        let id = client.streams.open(UNI).unwrap();
        assert!(Some(id) > last);
        last = Some(id);
        client.streams.finish(id).unwrap();
        client.send_and_ack_all();
        assert_eq!(client.streams.table.len(), 0);
    }
}

#[test]
fn frames_against_the_role_of_a_stream_are_errors_and_create_nothing() {
    for mut end in [End::client(), End::server()] {
        let (us, them) = (end.streams.side, end.streams.side.peer());
        end.streams.open(UNI).unwrap();
        for (name, apply) in RECEIVING {
            for index in [0, 1, 1000] {
                let id = StreamId::new(us, UNI, index);
                assert_eq!(apply(&mut end, id), Err(STATE), "{name} for our {id}");
            }
        }
        for (name, apply) in SENDING {
            for index in [0, 1000] {
                let id = StreamId::new(them, UNI, index);
                assert_eq!(apply(&mut end, id), Err(STATE), "{name} for their {id}");
            }
        }
        assert_eq!(end.streams.table.len(), 1);
        assert_eq!(end.streams.open_count(them, UNI), 0);
    }
}

#[test]
fn frames_for_streams_we_have_not_opened_are_errors() {
    let mut client = End::client();
    client.streams.open(BIDI).unwrap();
    for (name, apply) in RECEIVING.into_iter().chain(SENDING) {
        assert_eq!(apply(&mut client, client_bidi(1)), Err(STATE), "{name}");
    }
    for (name, apply) in SENDING {
        assert_eq!(apply(&mut client, client_uni(0)), Err(STATE), "{name}");
    }
    assert_eq!(client.streams.table.len(), 1);
}

#[test]
fn reset_stream_for_a_send_only_stream() {
    let mut client = End::client();
    let id = client.streams.open(UNI).unwrap();
    assert_eq!(client.reset_stream(id, 1, 0), Err(STATE));
}

#[test]
fn stream_for_a_send_only_stream() {
    let mut client = End::client();
    let id = client.streams.open(UNI).unwrap();
    assert_eq!(client.stream(id, 0, b""), Err(STATE));
}

#[test]
fn stream_data_blocked_for_a_send_only_stream() {
    let mut client = End::client();
    let id = client.streams.open(UNI).unwrap();
    assert_eq!(client.stream_data_blocked(id), Err(STATE));
}

#[test]
fn stop_sending_for_a_receive_only_stream() {
    let mut client = End::client();
    client.stream(server_uni(0), 0, b"x").unwrap();
    assert_eq!(client.stop_sending(server_uni(0), 1), Err(STATE));
}

#[test]
fn max_stream_data_for_a_receive_only_stream() {
    let mut client = End::client();
    client.stream(server_uni(0), 0, b"x").unwrap();
    assert_eq!(client.max_stream_data(server_uni(0), 1), Err(STATE));
}

#[test]
fn stream_for_a_local_stream_not_yet_opened() {
    assert_eq!(End::client().stream(client_bidi(0), 0, b"x"), Err(STATE));
}

#[test]
fn stop_sending_for_a_local_stream_not_yet_opened() {
    assert_eq!(End::client().stop_sending(client_bidi(0), 1), Err(STATE));
    assert_eq!(End::client().stop_sending(client_uni(0), 1), Err(STATE));
}

#[test]
fn max_stream_data_for_a_local_stream_not_yet_opened() {
    assert_eq!(End::client().max_stream_data(client_bidi(0), 1), Err(STATE));
    assert_eq!(End::client().max_stream_data(client_uni(0), 1), Err(STATE));
}

#[test]
fn any_frame_naming_a_stream_above_the_limit() {
    for (name, apply) in RECEIVING.into_iter().chain(SENDING) {
        let mut server = End::server();
        assert_eq!(
            apply(&mut server, client_bidi(9)),
            Ok(()),
            "{name} at the limit"
        );
        assert_eq!(apply(&mut server, client_bidi(10)), Err(LIMIT), "{name}");
    }
    for (name, apply) in RECEIVING {
        let mut server = End::server();
        assert_eq!(
            apply(&mut server, client_uni(4)),
            Ok(()),
            "{name} at the limit"
        );
        assert_eq!(apply(&mut server, client_uni(5)), Err(LIMIT), "{name}");
        assert_eq!(
            apply(&mut server, client_uni((1 << 60) - 1)),
            Err(LIMIT),
            "{name}"
        );
    }
}

#[test]
fn reset_stream_for_a_stream_above_the_limit() {
    assert_eq!(
        End::server().reset_stream(client_bidi(10), 1, 0),
        Err(LIMIT)
    );
}

#[test]
fn frame_opens_all_lower_streams_of_its_kind() {
    let mut server = End::server();
    server.stream(client_bidi(3), 0, b"x").unwrap();
    assert_eq!(server.streams.open_count(Side::Client, BIDI), 4);
    assert_eq!(server.streams.open_count(Side::Client, UNI), 0);
    let accepted: Vec<_> = std::iter::from_fn(|| server.streams.accept(BIDI)).collect();
    assert_eq!(accepted, [0, 1, 2, 3].map(client_bidi));
    assert_eq!(server.streams.write(client_bidi(1), b"x"), Ok(1));
}

#[test]
fn frames_that_create_state() {
    for (name, apply) in RECEIVING {
        for id in [client_bidi(2), client_uni(2)] {
            let mut server = End::server();
            apply(&mut server, id).unwrap();
            assert_eq!(server.streams.table.len(), 1, "{name} {id}");
        }
    }
    for (name, apply) in SENDING {
        let mut server = End::server();
        apply(&mut server, client_bidi(2)).unwrap();
        assert_eq!(server.streams.table.len(), 1, "{name}");
    }
}

#[test]
fn nothing_leaves_before_the_limits_are_known() {
    let mut client = End::without_parameters(Side::Client, &config());
    assert_eq!(client.streams.open(BIDI), None);
    assert!(!client.streams.has_frames_to_send());
    let mut server = End::without_parameters(Side::Server, &config());
    server.stream(client_bidi(0), 0, b"x").unwrap();
    assert_eq!(server.streams.write(client_bidi(0), b"answer"), Ok(6));
    assert!(!server.streams.has_stream_data());
    server.send_all();
    server.streams.on_peer_parameters(&parameters(&config()));
    assert_eq!(kinds(&server.send_all()), ["STREAM 0 0+6"]);
    client.streams.on_peer_parameters(&parameters(&config()));
    assert_eq!(
        client.events(),
        [StreamEvent::Available { direction: BIDI }]
    );
    assert!(client.streams.open(BIDI).is_some());
}

#[test]
fn resets_and_stops_carry_the_code_of_the_application() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.reset(id, 11).unwrap();
    client.streams.stop(id, 12).unwrap();
    assert_eq!(
        kinds(&client.send_all()),
        ["RESET_STREAM 0 11 0", "STOP_SENDING 0 12"]
    );
}

#[test]
fn nothing_is_sent_in_a_terminal_state() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.write(id, b"abc").unwrap();
    client.streams.finish(id).unwrap();
    let packets = client.send_all();
    client.on_acked(&packets[0]);
    assert_eq!(
        client.streams.write(id, b"x"),
        Err(WriteError::ClosedStream)
    );
    assert_eq!(client.streams.reset(id, 1), Err(ClosedStream));
    client.stop_sending(id, 1).unwrap();
    client.max_stream_data(id, 1000).unwrap();
    client.on_lost(&packets[0]);
    assert!(!client.streams.has_frames_to_send());
}

#[test]
fn after_reset_stream_only_its_repetition_is_sent() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.write(id, &[1; 150]).unwrap();
    let data = client.send_all();
    assert_eq!(
        kinds(&data),
        ["STREAM 0 0+100", "STREAM_DATA_BLOCKED 0 100"]
    );
    client.streams.reset(id, 5).unwrap();
    let reset = client.send_all();
    assert_eq!(kinds(&reset), ["RESET_STREAM 0 5 100"]);
    for packet in &data {
        client.on_lost(packet);
    }
    client.max_stream_data(id, 1000).unwrap();
    assert!(!client.streams.has_frames_to_send());
    client.on_lost(&reset[0]);
    let reset = client.send_all();
    assert_eq!(kinds(&reset), ["RESET_STREAM 0 5 100"]);
    client.on_acked(&reset[0]);
    client.on_lost(&reset[0]);
    assert!(!client.streams.has_frames_to_send());
}

#[test]
fn late_frames_are_tolerated_in_any_receive_state() {
    let mut server = End::server();
    let (read, reset) = (client_uni(0), client_uni(1));
    server.fin(read, 0, b"abc").unwrap();
    server.reset_stream(reset, 1, 3).unwrap();
    for round in 0..2 {
        for id in [read, reset] {
            server.stream(id, 0, b"abc").unwrap();
            server.fin(id, 3, b"").unwrap();
            server.stream_data_blocked(id).unwrap();
            server.reset_stream(id, 1, 3).unwrap();
        }
        assert_eq!(server.streams.table.len(), if round == 0 { 2 } else { 0 });
        if round == 0 {
            assert_eq!(server.read(read, 9), Ok(Some(b"abc".to_vec())));
            assert_eq!(server.read(read, 9), Ok(None));
            assert_eq!(server.read(reset, 9), Err(ReadError::Reset(1)));
        }
    }
}

#[test]
fn max_stream_data_is_sent_only_in_recv() {
    let mut server = End::server();
    server.stream(client_uni(0), 0, &[1; 80]).unwrap();
    server.read(client_uni(0), 80).unwrap();
    server.fin(client_uni(0), 80, b"x").unwrap();
    assert_eq!(kinds(&server.send_all()), [""; 0]);
    server.stream(client_uni(1), 0, &[1; 80]).unwrap();
    server.read(client_uni(1), 80).unwrap();
    let packets = server.send_all();
    assert_eq!(kinds(&packets), ["MAX_DATA 410", "MAX_STREAM_DATA 6 180"]);
    server.reset_stream(client_uni(1), 1, 80).unwrap();
    server.on_lost(&packets[0]);
    assert_eq!(kinds(&server.send_all()), ["MAX_DATA 410"]);
}

#[test]
fn stop_sending_is_answered_with_the_same_code() {
    for (name, data) in [("Ready", 0), ("Send", 7)] {
        let mut server = End::server();
        let id = client_bidi(0);
        server.stream(id, 0, b"x").unwrap();
        server.streams.write(id, &vec![0; data]).unwrap();
        server.send_all();
        server.streams.write(id, b"never sent").unwrap();
        server.stop_sending(id, 33).unwrap();
        assert_eq!(server.events()[1..], [stopped(id, 33, false)], "{name}");
        assert_eq!(server.streams.stopped(id), Ok(Some(33)));
        let answer = [format!("RESET_STREAM 0 33 {data}")];
        assert_eq!(kinds(&server.send_all()), answer, "{name}");
        server.stop_sending(id, 34).unwrap();
        assert!(!server.streams.has_frames_to_send() && server.events().is_empty());
    }
}

#[test]
fn stop_sending_is_not_sent_for_a_stream_the_peer_reset() {
    let mut server = End::server();
    let id = client_uni(0);
    server.reset_stream(id, 1, 0).unwrap();
    server.streams.stop(id, 2).unwrap();
    assert_eq!(kinds(&server.send_all()), ["MAX_STREAMS Unidirectional 6"]);
    let id = client_uni(1);
    server.stream(id, 0, b"x").unwrap();
    server.streams.stop(id, 2).unwrap();
    server.reset_stream(id, 1, 1).unwrap();
    assert_eq!(kinds(&server.send_all()), ["MAX_STREAMS Unidirectional 7"]);
    assert_eq!(server.streams.table.len(), 0);
}

#[test]
fn data_after_stop_sending_is_discarded_but_counted() {
    let mut server = End::server();
    let id = client_uni(0);
    server.stream(id, 0, b"x").unwrap();
    server.streams.stop(id, 2).unwrap();
    server.send_and_ack_all();
    server.stream(id, 50, &[0; 50]).unwrap();
    assert_eq!(server.streams.flow.receive.received(), 100);
    assert_eq!(server.streams.buffers.received().gaps, 0);
    assert_eq!(server.stream(id, 100, b"x"), Err(FLOW));
    server.fin(id, 100, b"").unwrap();
    assert_eq!(server.streams.table.len(), 0);
}

#[test]
fn neither_limit_is_exceeded_when_sending() {
    let mut client = End::client();
    let ids: Vec<_> = (0..4).map(|_| client.streams.open(BIDI).unwrap()).collect();
    for &id in &ids {
        client.streams.write(id, &[0; 500]).unwrap();
    }
    let sent = kinds(&client.send_all());
    let expected = [
        "STREAM 0 0+100",
        "STREAM 4 0+100",
        "STREAM 8 0+50",
        "DATA_BLOCKED 250",
        "STREAM_DATA_BLOCKED 0 100",
        "STREAM_DATA_BLOCKED 4 100",
    ];
    assert_eq!(sent, expected);
    assert!(!client.streams.has_stream_data());
    assert!(client.streams.is_connection_blocked());
}

#[test]
fn data_past_a_limit_is_an_error() {
    let mut server = End::server();
    assert_eq!(server.stream(client_bidi(0), 100, b"x"), Err(FLOW));
    let mut server = End::server();
    assert_eq!(server.stream(client_bidi(0), 99, b"x"), Ok(Stored::Kept));
    assert_eq!(server.stream(client_bidi(0), 0, &[0; 101]), Err(FLOW));
}

#[test]
fn sum_of_data_and_final_sizes_past_max_data_is_an_error() {
    let mut server = End::server();
    server.stream(client_bidi(0), 0, &[0; 100]).unwrap();
    server.reset_stream(client_bidi(1), 1, 100).unwrap();
    server.stream(client_bidi(2), 49, b"x").unwrap();
    server.stream(client_bidi(2), 0, &[0; 50]).unwrap();
    assert_eq!(server.stream(client_bidi(2), 50, b"x"), Err(FLOW));
    assert_eq!(server.reset_stream(client_bidi(3), 1, 1), Err(FLOW));
    assert_eq!(server.stream(client_bidi(3), 0, b""), Ok(Stored::Kept));
}

#[test]
fn data_past_the_largest_max_stream_data_is_an_error() {
    let mut server = End::server();
    let id = client_uni(0);
    server.stream(id, 0, &[0; 50]).unwrap();
    server.read(id, 50).unwrap();
    assert_eq!(kinds(&server.send_all()), ["MAX_STREAM_DATA 2 150"]);
    assert_eq!(server.stream(id, 50, &[0; 100]), Ok(Stored::Kept));
    assert_eq!(server.stream(id, 150, b"x"), Err(FLOW));
}

#[test]
fn limits_that_do_not_rise_are_ignored() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.max_data(10);
    client.max_stream_data(id, 10).unwrap();
    client.max_streams(BIDI, 1).unwrap();
    client.streams.write(id, &[0; 200]).unwrap();
    assert_eq!(kinds(&client.send_all())[0], "STREAM 0 0+100");
    client.max_stream_data(id, 100).unwrap();
    client.max_stream_data(id, 0).unwrap();
    assert!(!client.streams.has_frames_to_send());
    assert!(client.streams.open(BIDI).is_some());
}

#[test]
fn blocked_frames_are_sent_once_and_repeated_when_asked() {
    let mut client = End::client();
    let ids = [0; 3].map(|_| client.streams.open(BIDI).unwrap());
    for id in ids {
        client.streams.write(id, &[0; 200]).unwrap();
    }
    while client.streams.open(BIDI).is_some() {}
    let blocked = [
        "DATA_BLOCKED 250",
        "STREAMS_BLOCKED Bidirectional 10",
        "STREAM_DATA_BLOCKED 0 100",
        "STREAM_DATA_BLOCKED 4 100",
    ];
    let sorted = |packets: &[Flying]| {
        let mut kinds = kinds(packets);
        kinds.retain(|kind| !kind.starts_with("STREAM "));
        kinds.sort();
        kinds
    };
    assert_eq!(sorted(&client.send_all()), blocked);
    assert_eq!(client.streams.open(BIDI), None);
    assert!(!client.streams.has_frames_to_send());
    client.streams.repeat_blocked();
    let repeated = client.send_all();
    assert_eq!(sorted(&repeated), blocked);
    client.on_lost(&repeated[0]);
    assert_eq!(sorted(&client.send_all()), blocked);
    client.max_data(1000);
    client.max_stream_data(ids[0], 1000).unwrap();
    client.max_streams(BIDI, 20).unwrap();
    client.on_lost(&repeated[0]);
    assert_eq!(
        sorted(&client.send_all()),
        ["STREAM_DATA_BLOCKED 4 100", "STREAM_DATA_BLOCKED 8 100"]
    );
}

#[test]
fn credit_is_granted_at_half_a_window_without_being_asked() {
    let mut server = End::server();
    let id = client_uni(0);
    server.stream(id, 0, &[0; 100]).unwrap();
    server.read(id, 49).unwrap();
    assert!(!server.streams.has_frames_to_send());
    server.read(id, 1).unwrap();
    assert_eq!(kinds(&server.send_all()), ["MAX_STREAM_DATA 2 150"]);
    server.read(id, 50).unwrap();
    server.stream(id, 100, &[0; 25]).unwrap();
    server.read(id, 25).unwrap();
    assert_eq!(
        kinds(&server.send_all()),
        ["MAX_DATA 375", "MAX_STREAM_DATA 2 225"]
    );
}

#[test]
fn flow_control_of_the_other_direction_outlives_an_abrupt_end() {
    let mut server = End::server();
    let id = client_bidi(0);
    server.reset_stream(id, 1, 60).unwrap();
    assert_eq!(server.read(id, 1), Err(ReadError::Reset(1)));
    server.streams.write(id, &[0; 150]).unwrap();
    assert_eq!(
        kinds(&server.send_all()),
        ["STREAM 0 0+100", "STREAM_DATA_BLOCKED 0 100"]
    );
    server.max_stream_data(id, 150).unwrap();
    assert_eq!(kinds(&server.send_all()), ["STREAM 0 100+50"]);
    server.stop_sending(client_bidi(1), 1).unwrap();
    server.stream(client_bidi(1), 0, &[0; 100]).unwrap();
    assert_eq!(server.stream(client_bidi(1), 100, b"x"), Err(FLOW));
}

#[test]
fn connection_is_charged_the_final_size() {
    let mut server = End::server();
    server.stream(client_uni(0), 0, b"abc").unwrap();
    server.reset_stream(client_uni(0), 1, 80).unwrap();
    assert_eq!(server.streams.flow.receive.received(), 80);
    assert_eq!(server.streams.flow.receive.unconsumed(), 0);
    server.fin(client_uni(1), 90, b"").unwrap();
    assert_eq!(server.streams.flow.receive.received(), 170);
}

#[test]
fn nothing_is_sent_at_or_past_the_final_size() {
    let mut client = End::client();
    let finished = client.streams.open(BIDI).unwrap();
    client.streams.write(finished, b"abc").unwrap();
    client.streams.finish(finished).unwrap();
    let reset = client.streams.open(BIDI).unwrap();
    client.streams.write(reset, b"abc").unwrap();
    client.streams.reset(reset, 1).unwrap();
    for id in [finished, reset] {
        assert_eq!(
            client.streams.write(id, b"x"),
            Err(WriteError::ClosedStream)
        );
        assert_eq!(client.streams.finish(id), Err(FinishError::ClosedStream));
    }
    assert_eq!(
        kinds(&client.send_all()),
        ["RESET_STREAM 4 1 0", "STREAM 0 0+3 FIN"]
    );
    assert!(!client.streams.has_frames_to_send());
}

#[test]
fn changed_final_size_is_an_error() {
    let id = client_bidi(0);
    for (fin, reset) in [(10, 9), (10, 11)] {
        let mut server = End::server();
        server.fin(id, fin, b"").unwrap();
        assert_eq!(server.reset_stream(id, 1, reset), Err(SIZE));
        assert_eq!(server.fin(id, reset, b""), Err(SIZE));
        let mut server = End::server();
        server.reset_stream(id, 1, fin).unwrap();
        assert_eq!(server.fin(id, reset, b""), Err(SIZE));
        assert_eq!(server.reset_stream(id, 1, reset), Err(SIZE));
    }
}

#[test]
fn final_size_below_received_data_is_an_error() {
    let id = client_bidi(0);
    let mut server = End::server();
    server.stream(id, 0, &[0; 10]).unwrap();
    assert_eq!(server.fin(id, 9, b""), Err(SIZE));
    assert_eq!(server.fin(id, 0, b""), Err(SIZE));
    assert_eq!(server.reset_stream(id, 1, 9), Err(SIZE));
}

#[test]
fn data_past_the_final_size_is_an_error_even_when_the_receiving_part_is_over() {
    let id = client_bidi(0);
    let mut server = End::server();
    server.fin(id, 0, b"abc").unwrap();
    assert_eq!(server.stream(id, 3, b"d"), Err(SIZE));
    server.read(id, 9).unwrap();
    assert_eq!(server.read(id, 9), Ok(None));
    assert_eq!(server.stream(id, 3, b"d"), Err(SIZE));
    assert_eq!(server.stream(id, 90, b"d"), Err(SIZE));
    assert_eq!(server.stream(id, 2, b"c"), Ok(Stored::Kept));
    let mut server = End::server();
    server.reset_stream(id, 1, 3).unwrap();
    assert_eq!(server.read(id, 9), Err(ReadError::Reset(1)));
    assert_eq!(server.stream(id, 3, b"d"), Err(SIZE));
}

#[test]
fn final_size_of_a_reset_respects_both_limits() {
    let mut server = End::server();
    assert_eq!(server.reset_stream(client_bidi(0), 1, 101), Err(FLOW));
    assert_eq!(
        server.reset_stream(client_bidi(0), 1, (1 << 62) - 1),
        Err(FLOW)
    );
    server.reset_stream(client_bidi(0), 1, 100).unwrap();
    server.stream(client_bidi(1), 0, &[0; 100]).unwrap();
    assert_eq!(server.reset_stream(client_bidi(2), 1, 51), Err(FLOW));
    assert_eq!(server.streams.flow.receive.received(), 200);
    assert_eq!(server.reset_stream(client_bidi(2), 1, 50), Ok(()));
}

#[test]
fn stream_counts_above_2_60_are_errors() {
    let limit = (1 << 60) + 1;
    for direction in [BIDI, UNI] {
        let mut client = End::client();
        let error = Err(Code::FRAME_ENCODING_ERROR);
        assert_eq!(client.max_streams(direction, limit), error);
        let blocked = frame::StreamsBlocked { direction, limit };
        assert_eq!(
            code(
                client
                    .streams
                    .on_streams_blocked_frame(client.now, RTT, blocked)
            ),
            error
        );
        assert_eq!(client.max_streams(direction, limit - 1), Ok(()));
        let blocked = frame::StreamsBlocked {
            direction,
            limit: limit - 1,
        };
        assert_eq!(
            code(
                client
                    .streams
                    .on_streams_blocked_frame(client.now, RTT, blocked)
            ),
            Ok(())
        );
    }
}

#[test]
fn no_stream_is_opened_beyond_the_count_of_the_peer() {
    let mut client = End::client();
    for (direction, count) in [(BIDI, 10), (UNI, 5)] {
        for _ in 0..count {
            assert!(client.streams.open(direction).is_some());
        }
        assert_eq!(client.streams.open(direction), None);
        assert_eq!(client.streams.open_count(Side::Client, direction), count);
    }
}

#[test]
fn max_streams_that_does_not_increase_is_ignored() {
    let mut client = End::client();
    while client.streams.open(UNI).is_some() {}
    for limit in [0, 1, 5] {
        client.max_streams(UNI, limit).unwrap();
        assert_eq!(client.streams.open(UNI), None);
    }
    assert!(client.events().is_empty());
    client.max_streams(UNI, 6).unwrap();
    assert_eq!(client.streams.open(UNI), Some(client_uni(5)));
}

#[test]
fn stream_credit_comes_with_ended_streams_and_without_being_asked() {
    let mut server = End::server();
    for index in 0..5 {
        let id = client_uni(index);
        server.fin(id, 0, b"").unwrap();
        assert!(!server.streams.has_frames_to_send());
        assert_eq!(server.read(id, 1), Ok(None));
        assert_eq!(
            kinds(&server.send_all()),
            [format!("MAX_STREAMS Unidirectional {}", 6 + index)]
        );
    }
    assert_eq!(server.stream(client_uni(10), 0, b""), Err(LIMIT));
}

#[test]
fn offset_plus_length_past_the_largest_offset_is_an_error() {
    let windows = u64::MAX;
    let config = StreamsConfig {
        stream_receive_window: windows,
        stream_receive_window_max: windows,
        receive_window: windows,
        receive_window_max: windows,
        ..config()
    };
    let mut server = End::new(Side::Server, &config);
    let largest = (1 << 62) - 1;
    assert_eq!(
        server.stream(client_bidi(0), largest, b"x"),
        Err(Code::FRAME_ENCODING_ERROR)
    );
    assert_eq!(
        server.stream(client_bidi(0), largest - 1, b"x"),
        Ok(Stored::Kept)
    );
}

#[test]
fn unknown_stream_of_ours_that_ended_is_ignored() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.finish(id).unwrap();
    client.fin(id, 0, b"").unwrap();
    client.send_and_ack_all();
    assert_eq!(client.read(id, 1), Ok(None));
    assert_eq!(client.streams.table.len(), 0);
    for (name, apply) in RECEIVING.into_iter().chain(SENDING) {
        assert_eq!(apply(&mut client, id), Ok(()), "{name}");
    }
    assert_eq!(client.streams.table.len(), 0);
    assert_eq!(client.read(id, 1), Err(ReadError::ClosedStream));
    let written = client.streams.write(id, b"x");
    assert_eq!(written, Err(WriteError::ClosedStream));
}
