//! Statistics of streams, acknowledged bytes, and the reasons for which writers wait.

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

fn acknowledged(id: StreamId, len: u64) -> StreamEvent {
    StreamEvent::Acknowledged { id, len }
}

#[test]
fn stats_follow_the_bytes_of_both_ends() {
    let mut client = End::new(Side::Client, &roomy());
    let mut server = End::new(Side::Server, &roomy());
    let id = client.streams.open(BIDI).expect("allowed");
    assert_eq!(client.streams.write(id, &[7; 2000]), Ok(2000));
    let first = client.send_within(1000);
    let stats = client.streams.send_stats(id).expect("open");
    assert_eq!((stats.written, stats.acked), (2000, 0));
    assert!(stats.sent > 900 && stats.sent < 1000, "{stats:?}");
    client.on_lost(&first);
    let packets = client.send_all();
    let again = client.streams.send_stats(id).expect("open");
    assert_eq!((again.sent, again.retransmitted), (2000, stats.sent));
    for packet in &packets {
        server.receive(packet).expect("valid");
        client.on_acked(packet);
    }
    assert_eq!(client.streams.send_stats(id).expect("open").acked, 2000);
    let received = server.streams.receive_stats(id).expect("open");
    assert_eq!((received.received, received.read), (2000, 0));
    assert_eq!((received.gaps, received.final_size), (0, None));
    assert!(server.read(id, 500).is_ok());
    assert_eq!(server.streams.receive_stats(id).expect("open").read, 500);
    assert_eq!(client.streams.receive_stats(id).expect("open").received, 0);
}

#[test]
fn stats_show_gaps_and_the_final_size() {
    let mut server = End::server();
    let id = client_uni(0);
    assert_eq!(server.stream(id, 10, b"late"), Ok(Stored::Kept));
    assert_eq!(server.fin(id, 20, b""), Ok(Stored::Kept));
    let stats = server.streams.receive_stats(id).expect("open");
    assert_eq!((stats.received, stats.gaps), (20, 1));
    assert_eq!(stats.final_size, Some(20));
    assert_eq!(server.streams.send_stats(id), Err(ClosedStream));
}

#[test]
fn streams_that_are_over_have_no_stats() {
    let mut client = End::client();
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(client.streams.receive_stats(id), Err(ClosedStream));
    assert_eq!(client.streams.write(id, b"x"), Ok(1));
    assert_eq!(client.streams.reset(id, 3), Ok(()));
    assert_eq!(client.streams.send_stats(id), Err(ClosedStream));
    assert_eq!(client.streams.blocked_by(id), Err(ClosedStream));
    assert_eq!(client.streams.await_acknowledged(id, 1), Err(ClosedStream));
}

#[test]
fn acknowledged_bytes_are_reported_once_they_reach_the_awaited_offset() {
    let mut client = End::new(Side::Client, &roomy());
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(client.streams.write(id, &[7; 3000]), Ok(3000));
    assert_eq!(client.streams.await_acknowledged(id, 0), Ok(true));
    assert_eq!(client.streams.await_acknowledged(id, 3000), Ok(false));
    assert_eq!(client.streams.await_acknowledged(id, 100), Ok(false));
    let packets = client.send_all();
    client.on_acked(&packets[1]);
    assert_eq!(client.events(), [], "the first packet is missing");
    client.on_acked(&packets[0]);
    let acked = client.streams.send_stats(id).expect("open").acked;
    assert_eq!(client.events(), [acknowledged(id, acked)]);
    client.on_acked(&packets[2]);
    assert_eq!(client.events(), [], "each call is answered once");
    assert_eq!(client.streams.await_acknowledged(id, 3000), Ok(true));
}

#[test]
fn reused_stream_awaits_no_acknowledgement() {
    let mut client = End::client();
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(client.streams.write(id, b"gone"), Ok(4));
    assert_eq!(client.streams.await_acknowledged(id, 4), Ok(false));
    client.streams.reset(id, 0).expect("open");
    client.send_and_ack_all();
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(client.streams.write(id, b"next one"), Ok(8));
    client.send_and_ack_all();
    let acked = |event: &StreamEvent| matches!(event, StreamEvent::Acknowledged { .. });
    assert!(!client.events().iter().any(acked));
}

/// Writes until a write is refused.
fn fill(end: &mut End, id: StreamId) {
    while end.streams.write(id, &[7; 1000]).is_ok() {}
}

#[test]
fn blocked_by_reports_limit_of_stream() {
    let mut client = End::client();
    let id = client.streams.open(UNI).expect("allowed");
    assert_eq!(client.streams.blocked_by(id), Ok(None));
    fill(&mut client, id);
    assert_eq!(
        client.streams.blocked_by(id),
        Ok(Some(BlockedBy::Congestion)),
        "nothing was sent"
    );
    client.send_all();
    fill(&mut client, id);
    let limited = client.streams.send_stats(id).expect("open");
    assert_eq!(limited.sent, limited.limit);
    assert_eq!(
        client.streams.blocked_by(id),
        Ok(Some(BlockedBy::StreamFlowControl))
    );
    client
        .max_stream_data(id, limited.limit + 100)
        .expect("a larger limit");
    client.send_all();
    assert_eq!(client.streams.finish(id), Ok(()));
    assert_eq!(client.streams.blocked_by(id), Err(ClosedStream));
}

#[test]
fn blocked_by_reports_limit_of_connection() {
    let small = StreamsConfig {
        receive_window: 1000,
        ..roomy()
    };
    let mut client = End::new(Side::Client, &small);
    let id = client.streams.open(UNI).expect("allowed");
    fill(&mut client, id);
    client.send_all();
    fill(&mut client, id);
    assert_eq!(
        client.streams.blocked_by(id),
        Ok(Some(BlockedBy::ConnectionFlowControl))
    );
}

/// RFC 9204 §2.1.3: the smaller credit counts, without what was written already.
#[test]
fn send_credit_is_that_of_the_stream_and_of_the_connection() {
    for (of_stream, of_connection) in [(3000, 100_000), (100_000, 3000), (0, 3000), (3000, 0)] {
        let case = format!("stream {of_stream}, connection {of_connection}");
        let mut limits = roomy();
        (limits.stream_receive_window, limits.receive_window) = (of_stream, of_connection);
        (limits.stream_receive_window_max, limits.receive_window_max) = (of_stream, of_connection);
        let mut client = End::new(Side::Client, &limits);
        let id = client.streams.open(BIDI).expect("allowed");
        let credit = of_stream.min(of_connection);
        assert_eq!(client.streams.send_credit(id), credit, "{case}");
        if credit == 0 {
            continue;
        }
        assert_eq!(client.streams.write(id, &[7; 1000]), Ok(1000));
        assert_eq!(client.streams.send_credit(id), credit - 1000, "{case}");
        client.send_all();
        assert_eq!(
            client.streams.send_credit(id),
            credit - 1000,
            "{case}: sent"
        );
        let unknown = StreamId::new(Side::Client, BIDI, 1);
        assert_eq!(client.streams.send_credit(unknown), 0, "{case}: not open");
    }
}
