//! Tests of the events for the application and their timing.

use super::*;

#[test]
fn opened_is_reported_once_until_the_application_looks() {
    let mut server = End::server();
    server.stream(client_bidi(0), 0, b"x").unwrap();
    server.stream(client_bidi(4), 0, b"x").unwrap();
    assert_eq!(server.events(), [StreamEvent::Opened { direction: BIDI }]);
    while server.streams.accept(BIDI).is_some() {}
    server.stream(client_bidi(2), 1, b"x").unwrap();
    assert!(server.events().is_empty());
    server.stream(client_bidi(5), 0, b"x").unwrap();
    assert_eq!(server.events(), [StreamEvent::Opened { direction: BIDI }]);
    server.stream(client_uni(0), 0, b"x").unwrap();
    assert_eq!(server.events(), [StreamEvent::Opened { direction: UNI }]);
}

#[test]
fn readable_is_reported_once_after_a_blocked_read() {
    let mut server = End::server();
    let id = client_uni(0);
    server.stream(id, 0, b"a").unwrap();
    server.events();
    server.stream(id, 1, b"b").unwrap();
    assert!(server.events().is_empty());
    server.read(id, 9).unwrap();
    assert_eq!(server.read(id, 9), Err(ReadError::Blocked));
    server.stream(id, 3, b"d").unwrap();
    assert!(server.events().is_empty());
    server.stream(id, 2, b"c").unwrap();
    server.stream(id, 4, b"e").unwrap();
    assert_eq!(server.events(), [StreamEvent::Readable { id }]);
    assert_eq!(server.read(id, 9), Ok(Some(b"cde".to_vec())));
}

#[test]
fn end_and_reset_wake_the_reader() {
    let mut server = End::server();
    for id in [client_uni(0), client_uni(1)] {
        server.stream(id, 0, b"").unwrap();
        assert_eq!(server.read(id, 9), Err(ReadError::Blocked));
    }
    server.events();
    server.fin(client_uni(0), 0, b"").unwrap();
    server.reset_stream(client_uni(1), 3, 0).unwrap();
    let expected = [0, 1].map(|index| StreamEvent::Readable {
        id: client_uni(index),
    });
    assert_eq!(server.events(), expected);
    assert_eq!(server.read(client_uni(0), 9), Ok(None));
    assert_eq!(server.read(client_uni(1), 9), Err(ReadError::Reset(3)));
}

#[test]
fn writable_is_reported_when_half_of_what_was_ahead_is_sent() {
    let config = StreamsConfig {
        stream_receive_window: 10_000,
        receive_window: 10_000,
        unsent_limit: 2400,
        send_buffer_max: 20_000,
        ..config()
    };
    let mut client = End::new(Side::Client, &config);
    let id = client.streams.open(UNI).unwrap();
    assert_eq!(client.streams.write(id, &[0; 5000]), Ok(2400));
    assert_eq!(client.streams.write(id, b"x"), Err(WriteError::Blocked));
    client.send_within(600);
    assert!(client.events().is_empty());
    client.send_within(700);
    assert_eq!(client.events(), [StreamEvent::Writable { id }]);
    client.send_all();
    assert!(client.events().is_empty());
}

#[test]
fn writers_held_back_by_the_connection_are_woken_by_acknowledgements() {
    let config = StreamsConfig {
        stream_receive_window: 10_000,
        receive_window: 10_000,
        unsent_limit: 5000,
        send_buffer_max: 4000,
        ..config()
    };
    let mut client = End::new(Side::Client, &config);
    let (full, other) = (
        client.streams.open(UNI).unwrap(),
        client.streams.open(UNI).unwrap(),
    );
    assert_eq!(client.streams.write(full, &[0; 5000]), Ok(4000));
    for id in [full, other, full] {
        assert_eq!(client.streams.write(id, b"x"), Err(WriteError::Blocked));
    }
    let packets = client.send_all();
    assert!(client.events().is_empty());
    client.on_acked(&packets[0]);
    let expected = [full, other].map(|id| StreamEvent::Writable { id });
    assert_eq!(client.events(), expected);
    client.on_acked(&packets[1]);
    assert!(client.events().is_empty());
}

#[test]
fn writer_that_finishes_is_not_woken_any_more() {
    let config = StreamsConfig {
        stream_receive_window: 10_000,
        receive_window: 10_000,
        unsent_limit: 5000,
        send_buffer_max: 4000,
        ..config()
    };
    let mut client = End::new(Side::Client, &config);
    let bidi = client.streams.open(Direction::Bidirectional).unwrap();
    let full = client.streams.open(UNI).unwrap();
    client.streams.write(bidi, b"x").unwrap();
    client.streams.write(full, &[0; 5000]).unwrap();
    assert_eq!(client.streams.write(bidi, b"x"), Err(WriteError::Blocked));
    client.streams.finish(bidi).unwrap();
    client.send_and_ack_all();
    assert_eq!(client.events(), [StreamEvent::Finished { id: bidi }]);
}

#[test]
fn reset_of_one_stream_frees_room_for_the_others() {
    let config = StreamsConfig {
        unsent_limit: 5000,
        send_buffer_max: 4000,
        stream_receive_window: 8000,
        receive_window: 8000,
        ..config()
    };
    let mut client = End::new(Side::Client, &config);
    let (full, other) = (
        client.streams.open(UNI).unwrap(),
        client.streams.open(UNI).unwrap(),
    );
    client.streams.write(full, &[0; 4000]).unwrap();
    assert_eq!(client.streams.write(other, b"x"), Err(WriteError::Blocked));
    client.streams.reset(full, 0).unwrap();
    assert_eq!(client.events(), [StreamEvent::Writable { id: other }]);
}

#[test]
fn stopped_event_reports_whether_stream_was_finished() {
    let mut client = End::client();
    for was_finished in [false, true] {
        let id = client.streams.open(UNI).unwrap();
        client.streams.write(id, b"all of it").unwrap();
        if was_finished {
            client.streams.finish(id).unwrap();
        }
        client.send_all();
        client.stop_sending(id, 35).unwrap();
        assert_eq!(client.events(), [stopped(id, 35, was_finished)]);
    }
}

#[test]
fn finished_is_reported_when_all_is_acknowledged() {
    let mut client = End::client();
    let (sent, reset) = (
        client.streams.open(UNI).unwrap(),
        client.streams.open(UNI).unwrap(),
    );
    client.streams.write(sent, b"abc").unwrap();
    client.streams.finish(sent).unwrap();
    client.streams.reset(reset, 1).unwrap();
    assert!(client.streams.unacked_or_unsent());
    let packets = client.send_all();
    assert!(client.events().is_empty() && client.streams.unacked_or_unsent());
    for packet in &packets {
        client.on_acked(packet);
        client.on_acked(packet);
    }
    let mut events = client.events();
    events.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(events, [sent, reset].map(|id| StreamEvent::Finished { id }));
    assert!(!client.streams.unacked_or_unsent());
}

#[test]
fn end_of_sending_is_reported_while_the_other_direction_lives() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.write(id, b"x").unwrap();
    client.streams.finish(id).unwrap();
    let flying = client.send().expect("data");
    assert_eq!(client.streams.stopped(id), Ok(None));
    client.on_acked(&flying);
    assert_eq!(client.streams.stopped(id), Err(ClosedStream));
    assert_eq!(client.read(id, 1), Err(ReadError::Blocked));
}

#[test]
fn available_is_reported_after_a_refusal_only() {
    let mut client = End::client();
    client.max_streams(UNI, 6).unwrap();
    assert!(client.events().is_empty());
    while client.streams.open(UNI).is_some() {}
    client.max_streams(UNI, 7).unwrap();
    client.max_streams(UNI, 8).unwrap();
    assert_eq!(client.events(), [StreamEvent::Available { direction: UNI }]);
}

#[test]
fn closed_connection_keeps_nothing() {
    let mut client = End::client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.write(id, &[1; 500]).unwrap();
    client.stream(id, 2, b"x").unwrap();
    client.stream(server_uni(1), 0, b"x").unwrap();
    client.streams.on_close();
    assert!(!client.streams.has_frames_to_send() && !client.streams.unacked_or_unsent());
    assert!(client.events().is_empty());
    assert_eq!(client.streams.open(BIDI), None);
    assert_eq!(client.streams.accept(UNI), None);
    assert_eq!(
        client.streams.write(id, b"x"),
        Err(WriteError::ClosedStream)
    );
    assert_eq!(client.read(id, 1), Err(ReadError::ClosedStream));
    assert_eq!(client.streams.finish(id), Err(FinishError::ClosedStream));
    assert_eq!(client.streams.stop(id, 1), Err(ClosedStream));
    assert_eq!(client.streams.open_count(Side::Client, BIDI), 0);
    let span = Span {
        offset: 0,
        len: 5,
        fin: false,
    };
    client.streams.on_stream_acked(id, span);
    client.streams.on_stream_lost(id, span);
    assert!(!client.streams.has_frames_to_send());
}

#[test]
fn calls_for_the_other_direction_are_errors() {
    let mut end = End::client();
    let sends = end.streams.open(UNI).unwrap();
    end.stream(server_uni(0), 0, b"x").unwrap();
    let receives = end.streams.accept(UNI).unwrap();
    assert_eq!(end.read(sends, 1), Err(ReadError::ClosedStream));
    assert_eq!(end.streams.stop(sends, 1), Err(ClosedStream));
    assert_eq!(
        end.streams.write(receives, b"x"),
        Err(WriteError::ClosedStream)
    );
    assert_eq!(end.streams.finish(receives), Err(FinishError::ClosedStream));
    assert_eq!(end.streams.reset(receives, 1), Err(ClosedStream));
    assert_eq!(end.streams.stopped(receives), Err(ClosedStream));
}

#[test]
fn shrink_frees_memory_of_idle_connection() {
    let mut server = End::server();
    for index in 0..5 {
        server.fin(client_uni(index), 0, b"abc").unwrap();
        server.read(client_uni(index), 9).unwrap();
        assert_eq!(server.read(client_uni(index), 9), Ok(None));
    }
    server.streams.shrink();
    server.send_all();
    server.fin(client_uni(5), 0, b"abc").unwrap();
    assert_eq!(server.read(client_uni(5), 9), Ok(Some(b"abc".to_vec())));
}
