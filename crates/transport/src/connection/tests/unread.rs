//! Tests that data which arrived before the end of a connection can still be read.

use courser_wire::StreamId;

use super::*;
use crate::stream::{ReadError, WriteError};

const HELLO: &[u8] = b"said before the end";

/// Creates a pair whose server has one finished and one unfinished stream, both unread.
fn with_unread() -> (Pair, [StreamId; 2]) {
    let mut pair = Pair::connected();
    let streams = pair.client.connection().streams();
    let ids = [Direction::Unidirectional, Direction::Bidirectional].map(|direction| {
        let id = streams.open(direction).expect("room");
        assert_eq!(streams.write(id, HELLO), Ok(HELLO.len()));
        id
    });
    streams.finish(ids[0]).expect("open");
    pair.client.touch();
    pair.run_for(RTT * 2);
    (pair, ids)
}

fn close_client(pair: &mut Pair) {
    let now = pair.now;
    pair.client.connection().close(now, 7, b"done");
    pair.client.touch();
    pair.run_for(RTT);
}

/// Accepts both streams and reads all of them.
fn read_all(streams: &mut Streams, ids: [StreamId; 2]) {
    let mut out = [0; 64];
    assert_eq!(streams.accept(Direction::Unidirectional), Some(ids[0]));
    assert_eq!(streams.read(ids[0], &mut out), Ok(Some(HELLO.len())));
    assert_eq!(&out[..HELLO.len()], HELLO);
    assert_eq!(streams.read(ids[0], &mut out), Ok(None));
    assert_eq!(streams.accept(Direction::Bidirectional), Some(ids[1]));
    let chunk = streams.read_chunk(ids[1], 5).expect("it is there");
    assert_eq!(chunk.as_deref(), Some(&HELLO[..5]));
    assert_eq!(streams.read(ids[1], &mut out), Ok(Some(HELLO.len() - 5)));
    let over = Err(ReadError::ClosedStream);
    assert_eq!(streams.read(ids[1], &mut out), over);
    assert_eq!(streams.accept(Direction::Bidirectional), None);
    assert!(!streams.has_frames_to_send(), "the connection is over");
}

#[test]
fn unread_data_can_be_read_after_the_peer_closed() {
    let (mut pair, ids) = with_unread();
    close_client(&mut pair);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.write(ids[1], b"x"), Err(WriteError::ClosedStream));
    assert_eq!(streams.open(Direction::Bidirectional), None);
    read_all(streams, ids);
}

#[test]
fn unread_data_can_be_read_after_the_idle_timeout() {
    let (mut pair, ids) = with_unread();
    pair.link.loss = 1000;
    pair.server.releases = false;
    for _ in 0..600 {
        pair.run_for(Duration::from_millis(100));
        if pair.server.connection().is_closed() {
            return read_all(pair.server.connection().streams(), ids);
        }
    }
    panic!("it did not time out");
}

#[test]
fn unread_data_can_be_read_after_the_connection_has_drained() {
    let (mut pair, ids) = with_unread();
    pair.server.releases = false;
    close_client(&mut pair);
    let stats = pair.server.connection().stats();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.server.endpoint.connections(), 0);
    assert_eq!(pair.server.connection().stats(), stats, "counters stay");
    read_all(pair.server.connection().streams(), ids);
}

#[test]
fn unread_data_can_be_read_until_the_connection_is_released() {
    let (mut pair, ids) = with_unread();
    pair.server.releases = false;
    close_client(&mut pair);
    let handle = pair.server.handle.expect("one");
    pair.server.endpoint.release(handle);
    let over = Err(ReadError::ClosedStream);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Unidirectional), None);
    assert_eq!(streams.read(ids[0], &mut [0; 9]), over);
    pair.run_for(Duration::from_secs(60));
    assert!(pair.server.endpoint.connection(handle).is_none());
}

#[test]
fn stopped_stream_is_removed_at_once() {
    let (mut pair, ids) = with_unread();
    close_client(&mut pair);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.stop(ids[0], 1), Ok(()));
    let over = Err(ReadError::ClosedStream);
    assert_eq!(streams.read(ids[0], &mut [0; 9]), over);
    assert!(!streams.has_frames_to_send());
}

/// An application that closes reads no more data.
#[test]
fn no_data_can_be_read_after_our_own_close() {
    let (mut pair, ids) = with_unread();
    let now = pair.now;
    let connection = pair.server.connection();
    connection.close(now, 7, b"");
    let over = Err(ReadError::ClosedStream);
    assert_eq!(connection.streams().read(ids[0], &mut [0; 9]), over);
    assert_eq!(connection.streams().accept(Direction::Bidirectional), None);
}

/// The data of a peer that broke a rule is freed.
#[test]
fn no_data_can_be_read_after_a_violation() {
    let (mut pair, _) = with_unread();
    pair.forge_to_server(SpaceId::Application, &[0x1e]);
    assert_eq!(pair.server_error(), Some(0x0a));
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Unidirectional), None);
}
