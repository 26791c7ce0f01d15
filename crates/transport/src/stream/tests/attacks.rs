//! Attacks by hostile peers, and the limits that contain them (attack limits K02, K14 to K16).

use super::*;
use crate::stream::buffers::Received;

/// Returns a server with its default limits.
fn server() -> End {
    End::new(Side::Server, &StreamsConfig::default())
}

#[test]
fn default_limits_are_those_that_were_decided() {
    let config = StreamsConfig::default();
    assert_eq!((config.max_bidi, config.max_uni), (100, 100));
    assert_eq!(
        (
            config.stream_receive_window,
            config.stream_receive_window_max
        ),
        (256 << 10, 4 << 20)
    );
    assert_eq!(
        (config.receive_window, config.receive_window_max),
        (1 << 20, 16 << 20)
    );
    assert_eq!((config.max_gaps_per_stream, config.max_gaps), (128, 512));
}

/// Attack A26: every second byte of a window, on as many streams as possible.
#[test]
fn gap_bomb_is_refused_at_the_limits() {
    let mut server = server();
    // One more gap for each 32 KiB of the windows of 256 KiB and 1 MiB.
    let (each, all) = (128 + 8, 512 + 32);
    let mut kept = 0;
    for index in 0..100 {
        let mut kept_here = 0;
        for offset in (1..2000).step_by(2) {
            let stored = server.stream(client_bidi(index), offset, b"x").unwrap();
            kept_here += usize::from(stored == Stored::Kept);
        }
        assert!(kept_here <= each, "stream {index}");
        kept += kept_here;
    }
    assert_eq!((kept, server.streams.buffers.received().gaps), (all, all));
    assert_eq!(server.streams.counters().refused, 100 * 1000 - all as u64);
    // Refused bytes cost the peer nothing once they arrive in order.
    assert_eq!(server.stream(client_bidi(99), 0, b"x"), Ok(Stored::Kept));
    assert_eq!(
        server.stream(client_bidi(0), 0, &[0; 2000]),
        Ok(Stored::Kept)
    );
    assert_eq!(server.streams.buffers.received().gaps, all - each);
    assert_eq!(server.stream(client_bidi(99), 3, b"x"), Ok(Stored::Kept));
}

/// Attack A26: streams that carried bulk data each claim a buffer of that size with a few bytes.
#[test]
fn few_bytes_on_many_streams_take_few_times_their_memory() {
    const STREAMS: u64 = 256;
    for few in [1, 1 << 10, 5 << 10, 17 << 10] {
        let config = StreamsConfig {
            max_bidi: STREAMS,
            receive_window: 64 << 20,
            ..StreamsConfig::default()
        };
        let mut server = End::new(Side::Server, &config);
        for index in 0..STREAMS {
            let id = client_bidi(index);
            server.stream(id, 0, &[0; 40_000]).unwrap();
            assert_eq!(server.read(id, 40_000).unwrap().unwrap().len(), 40_000);
        }
        for index in 0..STREAMS {
            // Bytes read from small pieces leave larger buffers behind.
            let id = client_bidi(index);
            server.stream(id, 40_000, &vec![0; few]).unwrap();
        }
        let held = server.streams.buffers.received();
        assert_eq!(held.bytes, few * STREAMS as usize);
        let bound = 2 * held.bytes + (256 << 10);
        let keys: Vec<_> = server.streams.table.keys().collect();
        let table = &mut server.streams.table;
        let memory = keys.iter().map(|&key| table.at(key).receive.memory());
        let memory: usize = memory.sum();
        assert!(
            memory <= bound + keys.len() * 512,
            "{memory} bytes of memory for {} in pieces of {few}, bound {bound}",
            held.bytes
        );
        assert!(held.capacity <= memory && held.capacity >= held.bytes);
        assert!(server.streams.memory() >= held.capacity as u64, "charged");
        for index in 0..STREAMS {
            server.read(client_bidi(index), few).unwrap();
        }
        assert_eq!(server.streams.buffers.received(), Received::default());
    }
}

/// Attack A27: using the highest stream first opens all, and costs as much as one.
#[test]
fn implied_streams_cost_nothing_until_used() {
    let mut server = server();
    server
        .stream(StreamId::from_value(4 * 99), 0, b"x")
        .unwrap();
    assert_eq!(server.streams.open_count(Side::Client, BIDI), 100);
    assert_eq!(server.streams.table.len(), 1);
    for index in 0..100 {
        assert_eq!(server.streams.accept(BIDI), Some(client_bidi(index)));
    }
    assert_eq!(server.streams.table.len(), 100);
}

#[test]
fn late_data_for_an_implied_stream_begins_it_once() {
    let mut server = server();
    server.stream(client_bidi(9), 0, b"x").unwrap();
    server.stream(client_bidi(4), 0, b"abc").unwrap();
    assert_eq!(server.streams.table.len(), 2);
    let ids: Vec<_> = std::iter::from_fn(|| server.streams.accept(BIDI)).collect();
    assert_eq!(ids.len(), 10);
    assert_eq!(server.read(client_bidi(4), 9), Ok(Some(b"abc".to_vec())));
}

/// Attack A28: fixed cases around the limits of numbers.
#[test]
fn numbers_at_the_edge_do_not_overflow() {
    let largest = (1 << 62) - 1;
    let mut end = server();
    assert_eq!(
        end.reset_stream(client_uni(0), largest, largest),
        Err(Code::FLOW_CONTROL_ERROR)
    );
    assert_eq!(
        end.fin(client_uni(1), largest, b""),
        Err(Code::FLOW_CONTROL_ERROR)
    );
    assert_eq!(
        end.stream(client_uni(1), largest, b""),
        Err(Code::FLOW_CONTROL_ERROR)
    );
    end.max_data(largest);
    end.max_stream_data(client_bidi(0), largest).unwrap();
    end.streams.write(client_bidi(0), b"x").unwrap();
    end.max_data(largest);
    end.max_stream_data(client_bidi(0), 0).unwrap();
    assert_eq!(kinds(&end.send_all()), ["STREAM 0 0+1"]);
    for step in 0..1000 {
        end.max_data(step);
        end.max_stream_data(client_bidi(0), step).unwrap();
    }
    assert!(!end.streams.has_frames_to_send());
}

/// Credit in steps of one byte causes many small frames, but bounded work and no flood of BLOCKED
/// frames.
#[test]
fn tiny_steps_of_credit_are_followed_one_by_one() {
    let mut client = End::without_parameters(Side::Client, &config());
    let tiny = StreamsConfig {
        stream_receive_window: 0,
        receive_window: 0,
        ..config()
    };
    client.streams.on_peer_parameters(&parameters(&tiny));
    let id = client.streams.open(BIDI).unwrap();
    client.streams.write(id, &[0; 100]).unwrap();
    assert_eq!(kinds(&client.send_all()), ["STREAM_DATA_BLOCKED 0 0"]);
    for limit in 1..=20 {
        client.max_stream_data(id, limit).unwrap();
        client.max_data(limit);
        let sent = kinds(&client.send_all());
        assert_eq!(sent[0], format!("STREAM 0 {}+1", limit - 1));
        assert!(sent.len() <= 2, "{sent:?}");
    }
}

/// Attack A24: a peer that never acknowledges holds no more than the send budget.
#[test]
fn unacknowledged_data_is_bounded() {
    let config = StreamsConfig {
        stream_receive_window: 1 << 40,
        receive_window: 1 << 40,
        ..StreamsConfig::default()
    };
    let mut end = End::new(Side::Client, &config);
    let id = end.streams.open(BIDI).unwrap();
    let data = vec![0; 64 << 10];
    let mut written = 0;
    for _ in 0..1000 {
        if let Ok(len) = end.streams.write(id, &data) {
            written += len as u64;
        }
        end.send_all();
    }
    assert_eq!(written, send_budget::SEND_BUFFER_MIN);
    assert_eq!(
        end.streams.buffers.sending.retained(),
        send_budget::SEND_BUFFER_MIN
    );
}

/// Attack A88, limits K80 and K214: bytes stored for a peer that grants no credit, whatever it requests.
#[test]
fn little_is_kept_for_a_peer_that_grants_no_credit() {
    for (of_stream, of_connection) in [(0, 1 << 40), (1 << 40, 0), (0, 0), (1, 1)] {
        let config = StreamsConfig {
            stream_receive_window: of_stream,
            receive_window: of_connection,
            max_bidi: 256,
            ..StreamsConfig::default()
        };
        let mut end = End::new(Side::Client, &config);
        end.streams.on_congestion_window(1 << 30);
        for _ in 0..256 {
            let id = end.streams.open(BIDI).unwrap();
            for _ in 0..10 {
                let _ = end.streams.write(id, &[0; 100_000]);
                end.send_all();
            }
            assert_eq!(end.streams.credit_beyond(id, 0), Ok(0));
        }
        let kept = end.streams.buffers.sending.retained();
        let beyond = if of_stream > 1 { 128 << 10 } else { 0 };
        assert!(kept <= 256 * (send::AHEAD + 1) + beyond, "{kept} bytes");
        assert!(end.streams.unacked_or_unsent());
    }
}

/// A writer that waits for credit is notified when it arrives, and the peer is informed before.
#[test]
fn credit_wakes_writer_that_waits_for_it() {
    let config = StreamsConfig {
        stream_receive_window: 10,
        receive_window: 20,
        ..StreamsConfig::default()
    };
    let mut end = End::new(Side::Client, &config);
    let id = end.streams.open(BIDI).unwrap();
    end.streams.write(id, &[0; 10]).unwrap();
    end.send_all();
    assert_eq!(end.streams.credit_beyond(id, 0), Ok(0));
    assert_eq!(kinds(&end.send_all()), ["STREAM_DATA_BLOCKED 0 10"]);
    assert!(end.streams.unacked_or_unsent());
    end.max_stream_data(id, 100).unwrap();
    assert_eq!(end.events(), [StreamEvent::Writable { id }]);
    assert_eq!(end.streams.credit_beyond(id, 0), Ok(10));
    end.streams.write(id, &[0; 10]).unwrap();
    end.send_all();
    assert_eq!(end.streams.credit_beyond(id, 0), Ok(0));
    end.max_data(30);
    assert_eq!(end.events(), [StreamEvent::Writable { id }]);
    assert_eq!(end.streams.credit_beyond(id, 0), Ok(10));
}

/// Attack limit K15 and attack A71: streams that are opened only to be cancelled.
#[test]
fn rapid_resets_are_slowed_down() {
    let mut server = server();
    let mut opened = 0;
    for round in 0..10_000u64 {
        server.now = Time::ZERO + Duration::from_micros(round * 20);
        if server.reset_stream(client_uni(opened), 1, 0).is_err() {
            // The peer would have to wait now. Ignores that the error would end the connection.
            server.streams.on_timeout(server.now);
            server.send_all();
            continue;
        }
        assert_eq!(server.streams.accept(UNI), Some(client_uni(opened)));
        assert_eq!(server.read(client_uni(opened), 1), Err(ReadError::Reset(1)));
        opened += 1;
        server.send_all();
        server.events();
    }
    // 100 at the start, then 100 per 100 ms, for 200 ms.
    assert!((200..=400).contains(&opened), "{opened} streams");
    assert!(server.streams.next_timeout().is_some());
    server
        .streams
        .on_timeout(Time::ZERO + Duration::from_secs(1));
    assert!(server.streams.has_frames_to_send());
}

#[test]
fn small_streams_hold_small_buffers() {
    let mut server = server();
    for index in 0..100 {
        server.stream(client_bidi(index), 0, b"x").unwrap();
        server.streams.write(client_bidi(index), b"y").unwrap();
    }
    // An entry, two small buffers with their lists and the entry in the map, per stream.
    let key = size_of::<table::Entry>();
    assert!(key < 600, "{key} bytes");
}
