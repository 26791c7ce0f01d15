//! Resets that deliver the beginning of a stream. draft-ietf-quic-reliable-stream-reset-10.

use courser_wire::frame::ResetStreamAt;

use super::*;

/// Limits that a few packets do not reach.
fn roomy() -> StreamsConfig {
    StreamsConfig {
        stream_receive_window: 10_000,
        stream_receive_window_max: 10_000,
        receive_window: 100_000,
        receive_window_max: 100_000,
        unsent_limit: 10_000,
        send_buffer_max: 20_000,
        ..config()
    }
}

fn ends() -> (End, End) {
    (
        End::new(Side::Client, &roomy()),
        End::new(Side::Server, &roomy()),
    )
}

fn reset_at(end: &mut End, id: StreamId, code: u64, size: u64, reliable: u64) -> Result<(), Code> {
    let frame = ResetStreamAt {
        id,
        error_code: code,
        final_size: size,
        reliable_size: reliable,
    };
    super::code(end.streams.on_reset_stream_at_frame(frame))
}

/// Returns the reliable sizes of the RESET_STREAM_AT frames in packets.
fn reliable_sizes(packets: &[Flying]) -> Vec<u64> {
    let frames = packets.iter().flat_map(Flying::frames);
    frames
        .filter_map(|frame| match frame {
            Frame::ResetStreamAt(reset) => Some(reset.reliable_size),
            _ => None,
        })
        .collect()
}

/// A client whose stream has `len` written bytes, none of which were sent.
fn writer(len: usize) -> (End, StreamId) {
    let (mut client, _) = ends();
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(client.streams.write(id, &vec![7; len]), Ok(len));
    (client, id)
}

#[test]
fn beginning_arrives_and_then_the_reset() {
    let (mut client, id) = writer(3000);
    let (_, mut server) = ends();
    assert_eq!(client.streams.reset_at(id, 9, 1500), Ok(()));
    assert_eq!(
        client.streams.write(id, b"x"),
        Err(WriteError::ClosedStream)
    );
    let packets = client.send_all();
    assert_eq!(reliable_sizes(&packets), [1500]);
    for packet in &packets {
        server.receive(packet).expect("valid");
    }
    assert_eq!(server.streams.accept(UNI), Some(id));
    let first = server.read(id, 1000).expect("there").expect("no end");
    assert_eq!(first, vec![7; 1000]);
    assert_eq!(server.read(id, 1000), Ok(Some(vec![7; 500])));
    assert_eq!(server.read(id, 1000), Err(ReadError::Reset(9)));
    for packet in &packets {
        client.on_acked(packet);
    }
    assert!(client.events().contains(&StreamEvent::Finished { id }));
    assert!(!client.streams.unacked_or_unsent());
    assert_eq!(client.streams.undelivered().bytes, 0);
}

#[test]
fn lost_bytes_are_sent_again_up_to_the_reliable_size() {
    let (mut client, id) = writer(3000);
    let data = client.send_all();
    assert_eq!(data.len(), 3);
    assert_eq!(client.streams.reset_at(id, 9, 500), Ok(()));
    let reset = client.send_all();
    assert_eq!(reliable_sizes(&reset), [500]);
    data.iter().for_each(|packet| client.on_lost(packet));
    let again = client.send_all();
    let spans: Vec<_> = again
        .iter()
        .flat_map(Flying::frames)
        .filter_map(|frame| match frame {
            Frame::Stream(frame) => Some((frame.offset, frame.data.len(), frame.fin)),
            _ => None,
        })
        .collect();
    assert_eq!(spans, [(0, 500, false)]);
    client.on_acked(&reset[0]);
    assert_eq!(client.events(), [], "the beginning is missing");
    client.on_acked(&again[0]);
    assert_eq!(client.events(), [StreamEvent::Finished { id }]);
    assert_eq!(client.streams.undelivered().bytes, 0);
    assert_eq!(client.send_all().len(), 0);
}

#[test]
fn lost_reset_is_sent_again() {
    let (mut client, id) = writer(100);
    assert_eq!(client.streams.reset_at(id, 9, 50), Ok(()));
    let first = client.send_all();
    assert_eq!(reliable_sizes(&first), [50]);
    first.iter().for_each(|packet| client.on_lost(packet));
    let again = client.send_all();
    assert_eq!(reliable_sizes(&again), [50]);
    again.iter().for_each(|packet| client.on_acked(packet));
    assert_eq!(client.events(), [StreamEvent::Finished { id }]);
}

#[test]
fn final_size_stays_after_a_fin() {
    let (mut client, id) = writer(100);
    assert_eq!(client.streams.finish(id), Ok(()));
    let (_, mut server) = ends();
    let data = client.send_all();
    assert_eq!(client.streams.reset_at(id, 9, 50), Ok(()));
    let reset = client.send_all();
    assert_eq!(reliable_sizes(&reset), [50]);
    // The reset overtakes the data.
    server.receive(&reset[0]).expect("valid");
    server.receive(&data[0]).expect("the same final size");
    assert_eq!(server.read(id, 100), Ok(Some(vec![7; 50])));
    assert_eq!(server.read(id, 100), Err(ReadError::Reset(9)));
}

#[test]
fn size_is_reduced_and_never_increased() {
    let (mut client, id) = writer(3000);
    assert_eq!(client.streams.reset_at(id, 9, 2000), Ok(()));
    client.send_all();
    assert_eq!(client.streams.reset_at(id, 8, 2500), Ok(()));
    assert_eq!(client.send_all().len(), 0, "nothing changes");
    assert_eq!(client.streams.reset_at(id, 8, 700), Ok(()));
    let packets = client.send_all();
    let resets: Vec<_> = packets.iter().flat_map(Flying::frames).collect();
    assert!(
        matches!(&resets[..], [Frame::ResetStreamAt(reset)]
            if (reset.reliable_size, reset.error_code, reset.final_size) == (700, 9, 2000)),
        "{resets:?}"
    );
    assert_eq!(client.streams.reset(id, 8), Ok(()));
    let packets = client.send_all();
    let resets: Vec<_> = packets.iter().flat_map(Flying::frames).collect();
    assert!(
        matches!(&resets[..], [Frame::ResetStream(reset)]
            if (reset.error_code, reset.final_size) == (9, 2000)),
        "code and final size stay: {resets:?}"
    );
    packets.iter().for_each(|packet| client.on_acked(packet));
    assert_eq!(client.events(), [StreamEvent::Finished { id }]);
}

#[test]
fn stop_sending_is_answered_with_a_plain_reset() {
    let (mut client, id) = writer(3000);
    assert_eq!(client.streams.reset_at(id, 9, 2000), Ok(()));
    client.send_all();
    assert_eq!(client.stop_sending(id, 4), Ok(()));
    assert_eq!(client.events(), [stopped(id, 4, false)]);
    let packets = client.send_all();
    let resets: Vec<_> = packets.iter().flat_map(Flying::frames).collect();
    assert!(
        matches!(&resets[..], [Frame::ResetStream(reset)] if reset.error_code == 9),
        "{resets:?}"
    );
    assert_eq!(client.streams.undelivered().bytes, 0);
}

#[test]
fn reset_waits_for_credit_up_to_its_final_size() {
    let small = StreamsConfig {
        stream_receive_window: 1000,
        ..roomy()
    };
    let mut client = End::new(Side::Client, &small);
    let id = client.streams.open(UNI).expect("allowed");
    let written = client.streams.write(id, &[7; 1000]).expect("room");
    let more = client.streams.write(id, &[7; 512]).unwrap_or(0);
    assert_eq!(written + more, 1000, "within the credit");
    client.send_all();
    assert_eq!(
        client.streams.write(id, &[7; 300]),
        Ok(300),
        "ahead of credit"
    );
    assert_eq!(client.streams.reset_at(id, 9, 1200), Ok(()));
    let blocked = client.send_all();
    assert_eq!(reliable_sizes(&blocked), [] as [u64; 0]);
    client.max_stream_data(id, 5000).expect("a larger limit");
    let packets = client.send_all();
    assert_eq!(reliable_sizes(&packets), [1200]);
    let sizes: Vec<_> = packets
        .iter()
        .flat_map(Flying::frames)
        .filter_map(|frame| match frame {
            Frame::ResetStreamAt(reset) => Some(reset.final_size),
            _ => None,
        })
        .collect();
    assert_eq!(
        sizes,
        [1200],
        "what is neither sent nor reliable is dropped"
    );
}

#[test]
fn peer_without_the_extension_gets_no_such_frame() {
    let without = StreamsConfig {
        reset_stream_at: false,
        ..roomy()
    };
    let mut client = End::new(Side::Client, &without);
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(
        client.streams.reset_at(id, 9, 0),
        Err(ResetAtError::Unsupported)
    );
    let mut server = End::new(Side::Server, &without);
    assert_eq!(
        reset_at(&mut server, id, 9, 10, 5),
        Err(Code::FRAME_ENCODING_ERROR)
    );
}

#[test]
fn reset_below_what_was_read_is_reported_at_once() {
    let (_, mut server) = ends();
    let id = client_uni(0);
    server.stream(id, 0, &[7; 100]).expect("valid");
    assert_eq!(server.read(id, 60), Ok(Some(vec![7; 60])));
    assert_eq!(reset_at(&mut server, id, 9, 100, 50), Ok(()));
    assert_eq!(server.read(id, 60), Err(ReadError::Reset(9)));
    assert_eq!(server.streams.accept(UNI), Some(id));
    assert_eq!(server.streams.open_count(Side::Client, UNI), 0);
}

#[test]
fn smaller_size_that_overtakes_counts_and_larger_ones_are_ignored() {
    let (_, mut server) = ends();
    let id = client_uni(0);
    assert_eq!(reset_at(&mut server, id, 9, 100, 30), Ok(()));
    assert_eq!(reset_at(&mut server, id, 9, 100, 80), Ok(()));
    server.stream(id, 0, &[7; 100]).expect("valid");
    assert_eq!(server.read(id, 100), Ok(Some(vec![7; 30])));
    assert_eq!(server.read(id, 100), Err(ReadError::Reset(9)));
    let id = client_uni(1);
    server.stream(id, 0, &[7; 20]).expect("valid");
    assert_eq!(reset_at(&mut server, id, 9, 100, 80), Ok(()));
    assert_eq!(server.read(id, 20), Ok(Some(vec![7; 20])));
    assert_eq!(server.read(id, 20), Err(ReadError::Blocked));
    assert_eq!(reset_at(&mut server, id, 9, 100, 20), Ok(()));
    assert!(server.events().contains(&StreamEvent::Readable { id }));
    assert_eq!(server.read(id, 20), Err(ReadError::Reset(9)));
}

#[test]
fn plain_reset_ends_the_delivery() {
    let (_, mut server) = ends();
    let id = client_uni(0);
    server.stream(id, 0, &[7; 20]).expect("valid");
    assert_eq!(reset_at(&mut server, id, 9, 100, 80), Ok(()));
    assert_eq!(server.reset_stream(id, 9, 100), Ok(()));
    assert_eq!(server.read(id, 20), Err(ReadError::Reset(9)));
}

#[test]
fn contradictions_have_the_errors_of_the_draft() {
    let id = client_uni(0);
    let begun = || {
        let (_, mut server) = ends();
        server.stream(id, 0, &[7; 50]).expect("valid");
        assert_eq!(reset_at(&mut server, id, 9, 100, 80), Ok(()));
        server
    };
    let above = reset_at(&mut begun(), id, 9, 100, 101);
    assert_eq!(
        above,
        Err(Code::FRAME_ENCODING_ERROR),
        "above the final size"
    );
    for size in [99, 101] {
        let error = reset_at(&mut begun(), id, 9, size, 80);
        assert_eq!(error, Err(Code::FINAL_SIZE_ERROR), "final size {size}");
        let error = begun().reset_stream(id, 9, size);
        assert_eq!(error, Err(Code::FINAL_SIZE_ERROR), "RESET_STREAM {size}");
        let error = begun().fin(id, size, b"").map(drop);
        assert_eq!(error, Err(Code::FINAL_SIZE_ERROR), "FIN at {size}");
    }
    let error = begun().stream(id, 90, &[7; 20]).map(drop);
    assert_eq!(error, Err(Code::FINAL_SIZE_ERROR), "data past the end");
    let error = reset_at(&mut begun(), id, 8, 100, 80);
    assert_eq!(error, Err(Code::STREAM_STATE_ERROR), "another code");
    let error = begun().reset_stream(id, 8, 100);
    assert_eq!(error, Err(Code::STREAM_STATE_ERROR), "RESET_STREAM");
    let (_, mut server) = ends();
    server.stream(id, 0, &[7; 50]).expect("valid");
    let error = reset_at(&mut server, id, 9, 40, 10);
    assert_eq!(error, Err(Code::FINAL_SIZE_ERROR), "below what arrived");
    let error = reset_at(&mut server, id, 9, 10_001, 10);
    assert_eq!(error, Err(Code::FLOW_CONTROL_ERROR), "past the limit");
    let error = reset_at(&mut server, server_uni(0), 9, 1, 1);
    assert_eq!(error, Err(Code::STREAM_STATE_ERROR), "our own stream");
}

#[test]
fn bytes_past_the_reliable_size_take_no_memory() {
    let (_, mut server) = ends();
    let id = client_uni(0);
    assert_eq!(reset_at(&mut server, id, 9, 9000, 10), Ok(()));
    let before = server.streams.memory();
    for offset in (10..9000).step_by(2) {
        assert_eq!(server.stream(id, offset, b"x"), Ok(Stored::Kept));
    }
    assert_eq!(server.streams.memory(), before);
    assert_eq!(server.streams.receive_stats(id).expect("open").gaps, 0);
    server.stream(id, 0, &[7; 20]).expect("valid");
    assert_eq!(server.read(id, 100), Ok(Some(vec![7; 10])));
    assert_eq!(server.read(id, 100), Err(ReadError::Reset(9)));
}

#[test]
fn reader_that_stops_ends_the_stream() {
    let (_, mut server) = ends();
    let id = client_uni(0);
    assert_eq!(reset_at(&mut server, id, 9, 100, 10), Ok(()));
    assert_eq!(server.streams.accept(UNI), Some(id));
    assert_eq!(server.streams.stop(id, 3), Ok(()));
    let packets = server.send_all();
    assert_eq!(kinds(&packets), ["STOP_SENDING 2 3"]);
    packets.iter().for_each(|packet| server.on_acked(packet));
    assert_eq!(server.read(id, 1), Err(ReadError::ClosedStream));
    assert_eq!(server.streams.open_count(Side::Client, UNI), 0);
}

#[test]
fn all_bytes_are_acknowledged_before_the_reset() {
    let (mut client, id) = writer(500);
    let packets = client.send_all();
    packets.iter().for_each(|packet| client.on_acked(packet));
    assert_eq!(client.streams.reset_at(id, 9, 500), Ok(()));
    let reset = client.send_all();
    assert_eq!(client.events(), []);
    client.on_acked(&reset[0]);
    assert_eq!(client.events(), [StreamEvent::Finished { id }]);
    assert_eq!(
        client.streams.reset_at(id, 9, 100),
        Err(ResetAtError::ClosedStream)
    );
}
