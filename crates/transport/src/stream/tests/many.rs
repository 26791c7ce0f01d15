//! Tests with more streams than the table caches lookups (256): each stream must find its own
//! state, in whatever order they are used.

use super::*;

/// Returns settings that let all streams be written before any byte is sent.
fn config(streams: u64) -> StreamsConfig {
    StreamsConfig {
        max_bidi: streams,
        max_uni: 0,
        stream_receive_window: 1000,
        stream_receive_window_max: 1000,
        receive_window: 1 << 20,
        receive_window_max: 1 << 20,
        unsent_limit: 1000,
        send_buffer_max: 16 << 20,
        max_gaps_per_stream: 4,
        max_gaps: 1000,
        reset_stream_at: true,
        are_fair: true,
    }
}

/// Returns the contents of a stream's part number `part`, which are unique.
fn part(id: StreamId, part: u64) -> Vec<u8> {
    format!("part {part} of {id}").into_bytes()
}

/// Returns different orders of the same streams.
fn orders(streams: &[StreamId]) -> [(&'static str, Vec<StreamId>); 4] {
    let forwards = streams.to_vec();
    let backwards = streams.iter().rev().copied().collect();
    // Streams that are cached at the same index follow each other.
    let mut colliding = streams.to_vec();
    colliding.sort_by_key(|id| (id.index() % 256, id.index()));
    let mut shuffled = streams.to_vec();
    shuffled.sort_by_key(|id| id.value().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    [
        ("forwards", forwards),
        ("backwards", backwards),
        ("colliding", colliding),
        ("shuffled", shuffled),
    ]
}

/// Carries all packets that are to be sent, and the responses to them.
fn exchange(one: &mut End, other: &mut End) {
    for _ in 0..2 {
        for flying in one.send_and_ack_all() {
            assert_eq!(other.receive(&flying), Ok(true));
        }
        for flying in other.send_and_ack_all() {
            assert_eq!(one.receive(&flying), Ok(true));
        }
    }
}

/// Writes all streams, then reads all streams, in each order at `from` and in another at `to`.
fn check(from: &mut End, to: &mut End, streams: &[StreamId]) {
    let written = orders(streams);
    let mut read = orders(streams);
    read.rotate_left(1);
    for (number, ((way, written), (_, read))) in (0..).zip(written.into_iter().zip(read)) {
        for id in written {
            let bytes = part(id, number);
            assert_eq!(
                from.streams.write(id, &bytes),
                Ok(bytes.len()),
                "{way} {id}"
            );
        }
        exchange(from, to);
        for id in read {
            let bytes = to.read(id, 1000).expect("it has arrived");
            assert_eq!(bytes, Some(part(id, number)), "{way} {id}");
        }
    }
}

fn end(one: &mut End, other: &mut End, streams: &[StreamId]) {
    for id in streams {
        one.streams.finish(*id).expect("open");
        other.streams.finish(*id).expect("open");
    }
    exchange(one, other);
    for id in streams {
        assert_eq!(one.read(*id, 1), Ok(None), "{id}");
        assert_eq!(other.read(*id, 1), Ok(None), "{id}");
    }
}

fn touch(count: u64) {
    let config = config(count);
    let mut client = End::new(Side::Client, &config);
    let mut server = End::new(Side::Server, &config);
    let open = |client: &mut End| client.streams.open(BIDI).expect("allowed");
    let mut streams: Vec<_> = (0..count).map(|_| open(&mut client)).collect();
    check(&mut client, &mut server, &streams);
    check(&mut server, &mut client, &streams);

    // New streams reuse the entries of ended ones, between those that continue.
    let (ended, kept): (Vec<_>, Vec<_>) = streams.iter().partition(|id| id.index() % 3 == 0);
    end(&mut client, &mut server, &ended);
    exchange(&mut server, &mut client);
    streams = kept;
    streams.extend(ended.iter().map(|_| open(&mut client)));
    check(&mut client, &mut server, &streams);
    check(&mut server, &mut client, &streams);
    for id in ended {
        assert!(client.streams.write(id, b"late").is_err(), "{id}");
    }
}

#[test]
fn one_stream_more_than_is_remembered() {
    touch(257);
}

#[test]
fn twice_as_many_streams_as_are_remembered() {
    touch(600);
}
