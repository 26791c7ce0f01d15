use courser_base::{Rate, Side, Time};
use courser_wire::{Direction, TransportParameters};

use super::*;
use crate::stream::{ChunkPool, StreamsConfig, WriteError};

fn streams(side: Side) -> Streams {
    let config = StreamsConfig::default();
    Streams::new(side, config, ChunkPool::new(16), [7; 16])
}

fn parameters() -> TransportParameters {
    TransportParameters {
        initial_max_data: 100,
        initial_max_stream_data_bidi_remote: 50,
        initial_max_streams_bidi: 2,
        ..TransportParameters::default()
    }
}

const BIDI: Direction = Direction::Bidirectional;

#[test]
fn streams_are_early_until_the_handshake_is_complete() {
    let mut streams = streams(Side::Client);
    streams.on_early_data_begin();
    streams.on_peer_parameters(&parameters());
    let first = streams.open(BIDI).unwrap();
    assert!(streams.is_early(first));
    streams.on_early_data_end();
    let second = streams.open(BIDI).unwrap();
    assert!(streams.is_early(first) && !streams.is_early(second));
    assert!(!streams.is_early(StreamId::new(Side::Server, BIDI, 0)));
}

#[test]
fn without_early_data_no_stream_is_early() {
    let mut streams = streams(Side::Client);
    streams.on_peer_parameters(&parameters());
    let id = streams.open(BIDI).unwrap();
    assert!(!streams.is_early(id));
    streams.on_early_data_end();
    assert!(!streams.is_early(id));
}

#[test]
fn rejected_early_data_leaves_no_stream_and_no_credit() {
    let mut streams = streams(Side::Client);
    streams.on_early_data_begin();
    streams.on_peer_parameters(&parameters());
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.write(id, &[1; 50]), Ok(50));
    assert!(streams.has_frames_to_send() && streams.memory() > 0);
    streams.set_deadline(id, Some(Time::ZERO), 1, 0).unwrap();
    let rate = Rate::from_bytes_per_second(1);
    streams.set_max_send_rate(id, Some(rate)).unwrap();
    streams.on_early_data_rejected();
    assert_eq!(streams.next_timeout(), None);
    assert!(!streams.has_frames_to_send());
    assert_eq!(streams.memory(), 0);
    assert_eq!(streams.write(id, &[1]), Err(WriteError::ClosedStream));
    assert_eq!(streams.open(BIDI), None, "the limits are not known");
    streams.on_peer_parameters(&parameters());
    assert_eq!(streams.open(BIDI), Some(id), "numbers begin anew");
    assert!(!streams.is_early(id));
    assert_eq!(streams.write(id, &[1; 50]), Ok(50), "credit was not used");
}
