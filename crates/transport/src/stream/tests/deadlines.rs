//! Streams that are reset when their time has passed.

use super::*;

fn at(millis: u64) -> Time {
    NOW + Duration::from_millis(millis)
}

/// A client with a stream whose deadline is at 100 ms.
fn client_with_deadline() -> (End, StreamId) {
    let mut client = End::client();
    let id = client.streams.open(BIDI).expect("allowed");
    assert_eq!(client.streams.write(id, b"soon"), Ok(4));
    assert_eq!(client.streams.set_deadline(id, Some(at(100)), 9, 0), Ok(()));
    assert_eq!(client.streams.next_timeout(), Some(at(100)));
    (client, id)
}

#[test]
fn late_stream_is_reset_and_reported() {
    let (mut client, id) = client_with_deadline();
    client.streams.on_timeout(at(99));
    assert_eq!(client.events(), []);
    client.streams.on_timeout(at(100));
    assert_eq!(client.events(), [StreamEvent::Expired { id }]);
    assert_eq!(client.streams.next_timeout(), None);
    assert_eq!(
        client.streams.write(id, b"x"),
        Err(WriteError::ClosedStream)
    );
    assert_eq!(kinds(&client.send_all()), ["RESET_STREAM 0 9 0"]);
    assert_eq!(
        client.streams.set_deadline(id, Some(at(200)), 9, 0),
        Err(ClosedStream)
    );
}

#[test]
fn stream_that_is_delivered_in_time_is_left_alone() {
    let (mut client, id) = client_with_deadline();
    assert_eq!(client.streams.finish(id), Ok(()));
    client.send_and_ack_all();
    assert_eq!(client.events(), [StreamEvent::Finished { id }]);
    // The other direction is still open.
    client.streams.on_timeout(at(100));
    assert_eq!(client.events(), []);
    assert_eq!(client.send_all().len(), 0);
}

#[test]
fn deadline_is_moved_and_removed() {
    let (mut client, id) = client_with_deadline();
    assert_eq!(client.streams.set_deadline(id, Some(at(300)), 8, 0), Ok(()));
    assert_eq!(client.streams.next_timeout(), Some(at(300)));
    client.streams.on_timeout(at(200));
    assert_eq!(client.events(), []);
    assert_eq!(client.streams.set_deadline(id, None, 0, 0), Ok(()));
    assert_eq!(client.streams.next_timeout(), None);
    client.streams.on_timeout(at(400));
    assert_eq!(client.events(), []);
}

#[test]
fn nothing_is_left_of_a_stream_that_is_over() {
    let (mut client, id) = client_with_deadline();
    client.streams.stop(id, 0).expect("open");
    client.streams.reset(id, 0).expect("open");
    client.send_and_ack_all();
    client.reset_stream(id, 0, 0).expect("valid");
    client.events();
    assert_eq!(client.streams.next_timeout(), None);
    client.streams.on_timeout(at(100));
    assert_eq!(client.events(), []);
}

#[test]
fn lost_connection_has_no_deadlines() {
    let (mut client, _) = client_with_deadline();
    client.streams.on_lost();
    assert_eq!(client.streams.next_timeout(), None);
    let (mut client, _) = client_with_deadline();
    client.streams.on_close();
    assert_eq!(client.streams.next_timeout(), None);
}
