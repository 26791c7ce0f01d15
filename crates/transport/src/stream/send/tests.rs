use courser_base::Side;
use courser_wire::frame::Frames;
use courser_wire::{Direction, Frame};

use super::fit::MAX_SPAN;
use super::*;
use crate::space::sent::FrameLists;
use crate::stream::StreamsConfig;
use crate::stream::chunk_pool::ChunkPool;

const ROOM: WriteLimits = WriteLimits {
    unsent_limit: 1000,
    connection: 1000,
    reserve: 1000,
    credit: u64::MAX,
    ahead: u64::MAX,
};
const RESET: Reset = Reset {
    code: 7,
    final_size: 3,
};

fn id() -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, 0)
}

/// Returns buffers that count bytes of other streams as well.
fn buffers() -> Buffers {
    let mut buffers = Buffers::new(ChunkPool::new(1), &StreamsConfig::default());
    buffers.sending.on_written(1000);
    buffers
}

fn span(offset: u64, len: u64, fin: bool) -> Span {
    Span { offset, len, fin }
}

/// Runs `write` with a packet of 100 bytes.
fn in_packet<T>(write: impl FnOnce(&mut PacketBuilder<'_>) -> T) -> T {
    let (mut room, mut lists) = ([0; 100], FrameLists::default());
    write(&mut PacketBuilder::new(&mut room, &mut lists))
}

/// Returns a part in each state of the figure, which has sent `abc` if it has sent anything.
fn parts() -> Vec<(&'static str, SendPart)> {
    let ready = || {
        let mut part = SendPart::default();
        part.begin(100);
        part
    };
    let send = || {
        let mut part = ready();
        part.write(b"abc", ROOM, &mut buffers()).unwrap();
        in_packet(|packet| part.write_new(id(), 100, packet)).unwrap();
        part
    };
    let data_sent = || {
        let mut part = send();
        part.finish().unwrap();
        assert_eq!(
            in_packet(|packet| part.write_free(id(), packet)),
            Some(span(3, 0, true))
        );
        part
    };
    let data_recvd = || {
        let mut part = data_sent();
        assert!(part.on_acked(span(0, 3, true), &mut buffers()));
        part
    };
    let reset_sent = || {
        let mut part = send();
        assert_eq!(part.reset(7, &mut buffers()), Ok(true));
        part
    };
    let reset_recvd = || {
        let mut part = reset_sent();
        assert!(part.on_reset_acked());
        part
    };
    vec![
        ("Ready", ready()),
        ("Send", send()),
        ("DataSent", data_sent()),
        ("DataRecvd", data_recvd()),
        ("ResetSent", reset_sent()),
        ("ResetRecvd", reset_recvd()),
    ]
}

type Event = (&'static str, fn(&mut SendPart));

/// Everything that can happen to a sending part.
const EVENTS: [Event; 9] = [
    ("write and send", |part| {
        if part.write(b"x", ROOM, &mut buffers()).is_ok() {
            in_packet(|packet| part.write_new(id(), 100, packet)).unwrap();
        }
    }),
    ("blocked sent", |part| part.on_blocked_sent()),
    ("finish", |part| {
        let _ = part.finish();
    }),
    ("send FIN", |part| {
        if part.has_free() {
            in_packet(|packet| part.write_free(id(), packet)).unwrap();
        }
    }),
    ("acked", |part| {
        let fin = part.buffer.is_all_sent();
        let len = part.buffer.sent();
        part.on_acked(span(0, len, fin), &mut buffers());
    }),
    ("lost", |part| {
        let fin = part.buffer.is_all_sent();
        let len = part.buffer.sent();
        part.on_lost(span(0, len, fin));
    }),
    ("reset", |part| {
        let _ = part.reset(7, &mut buffers());
    }),
    ("STOP_SENDING", |part| {
        part.on_stop_sending(7, &mut buffers());
    }),
    ("reset acked", |part| {
        part.on_reset_acked();
    }),
];

/// Row: state, one column per event in the order of [`EVENTS`].
const TABLE: [(&str, [State; 9]); 6] = {
    use State::{DataRecvd, DataSent, Ready, ResetRecvd, ResetSent, Send};
    let reset = ResetSent(RESET);
    let reset_empty = ResetSent(Reset {
        final_size: 0,
        ..RESET
    });
    [
        (
            "Ready",
            [
                Send,
                Send,
                Ready,
                Ready,
                Ready,
                Ready,
                reset_empty,
                reset_empty,
                Ready,
            ],
        ),
        (
            "Send",
            [Send, Send, Send, Send, Send, Send, reset, reset, Send],
        ),
        (
            "DataSent",
            [
                DataSent, DataSent, DataSent, DataSent, DataRecvd, DataSent, reset, reset, DataSent,
            ],
        ),
        ("DataRecvd", [DataRecvd; 9]),
        (
            "ResetSent",
            [
                reset, reset, reset, reset, reset, reset, reset, reset, ResetRecvd,
            ],
        ),
        ("ResetRecvd", [ResetRecvd; 9]),
    ]
};

#[test]
fn every_state_with_every_event_agrees_with_the_table() {
    for (row, (name, expected)) in TABLE.iter().enumerate() {
        for (column, (event, apply)) in EVENTS.iter().enumerate() {
            let (state, mut part) = parts().swap_remove(row);
            assert_eq!(state, *name);
            apply(&mut part);
            assert_eq!(part.state, expected[column], "{event} in {state}");
        }
    }
}

#[test]
fn fin_moves_send_to_data_sent() {
    for (name, mut part) in parts().into_iter().take(2) {
        part.finish().unwrap();
        in_packet(|packet| part.write_free(id(), packet)).unwrap();
        assert_eq!(part.state, State::DataSent, "from {name}");
    }
}

#[test]
fn application_calls_fail_by_state() {
    let closed = Err(WriteError::ClosedStream);
    let results = [Ok(1), Ok(1), closed, closed, closed, closed];
    for ((name, mut part), expected) in parts().into_iter().zip(results) {
        assert_eq!(
            part.write(b"x", ROOM, &mut buffers()),
            expected,
            "write in {name}"
        );
        let finished = part.finish();
        let expected = expected.map(|_| ()).map_err(|_| FinishError::ClosedStream);
        assert_eq!(finished, expected, "finish in {name}");
        assert!(part.finish().is_err(), "second finish in {name}");
    }
    let results = [
        Ok(true),
        Ok(true),
        Ok(true),
        Err(ClosedStream),
        Err(ClosedStream),
        Err(ClosedStream),
    ];
    for ((name, mut part), expected) in parts().into_iter().zip(results) {
        assert_eq!(part.reset(1, &mut buffers()), expected, "reset in {name}");
    }
}

#[test]
fn stopped_stream_says_so_and_tolerates_a_reset() {
    for (name, mut part) in parts().into_iter().take(3) {
        assert!(part.on_stop_sending(9, &mut buffers()), "{name}");
        assert!(!part.on_stop_sending(10, &mut buffers()), "{name}");
        assert_eq!(part.stopped(), Some(9));
        assert_eq!(part.reset_to_send().unwrap().code, 9);
        assert_eq!(
            part.write(b"x", ROOM, &mut buffers()),
            Err(WriteError::Stopped(9))
        );
        assert_eq!(part.finish(), Err(FinishError::Stopped(9)));
        assert_eq!(part.reset(1, &mut buffers()), Ok(false));
    }
}

#[test]
fn nothing_is_sent_after_a_reset() {
    for (name, mut part) in parts().into_iter().skip(3) {
        part.on_lost(span(0, 3, false));
        part.on_max_stream_data(1000);
        assert!(!part.has_new() && !part.has_free(), "{name}");
        assert!(
            !part.take_blocked() && part.blocked_at().is_none(),
            "{name}"
        );
    }
}

#[test]
fn writer_is_held_back_by_the_stream_and_woken_at_half() {
    let (mut part, mut buffers) = (SendPart::default(), buffers());
    part.begin(1000);
    let room = WriteLimits {
        unsent_limit: 100,
        connection: 1000,
        reserve: 1000,
        credit: u64::MAX,
        ahead: u64::MAX,
    };
    assert_eq!(part.write(&[0; 150], room, &mut buffers), Ok(100));
    assert!(!part.take_writable(100));
    assert_eq!(
        part.write(b"x", room, &mut buffers),
        Err(WriteError::Blocked)
    );
    assert_eq!(
        part.write(b"", room, &mut buffers),
        Err(WriteError::Blocked)
    );
    in_packet(|packet| part.write_new(id(), 49, packet)).unwrap();
    assert!(!part.take_writable(100));
    in_packet(|packet| part.write_new(id(), 1, packet)).unwrap();
    assert!(part.take_writable(100));
    assert!(!part.take_writable(100));
    assert_eq!(part.write(b"", room, &mut buffers), Ok(0));
}

/// Limit K590.
#[test]
fn a_little_of_each_stream_has_room_in_the_reserve() {
    let (mut part, mut buffers) = (SendPart::default(), buffers());
    part.begin(1 << 20);
    let limits = |reserve| WriteLimits {
        unsent_limit: 1 << 20,
        connection: 0,
        reserve,
        ..ROOM
    };
    let data = [0; 10_000];
    assert_eq!(part.credit_beyond(0, limits(1000)), 1000);
    assert_eq!(part.write(&data, limits(1000), &mut buffers), Ok(1000));
    assert_eq!(part.credit_beyond(0, limits(9000)), LITTLE - 1000);
    let rest = (LITTLE - 1000) as usize;
    assert_eq!(part.write(&data, limits(9000), &mut buffers), Ok(rest));
    let more = part.write(&data, limits(9000), &mut buffers);
    assert_eq!(more, Err(WriteError::Blocked));
    assert!(part.is_waiting_for_connection());
    // It has room again when the peer has the first part.
    let span = in_packet(|packet| part.write_new(id(), 1000, packet)).unwrap();
    part.on_acked(span, &mut buffers);
    assert_eq!(part.credit_beyond(0, limits(9000)), span.len);
}

#[test]
fn writer_is_held_back_by_the_connection() {
    let (mut part, mut buffers) = (SendPart::default(), buffers());
    part.begin(1000);
    let room = WriteLimits {
        unsent_limit: 100,
        connection: 30,
        reserve: 30,
        credit: u64::MAX,
        ahead: u64::MAX,
    };
    assert_eq!(part.write(&[0; 150], room, &mut buffers), Ok(30));
    let room = WriteLimits {
        unsent_limit: 100,
        connection: 0,
        reserve: 0,
        credit: u64::MAX,
        ahead: u64::MAX,
    };
    assert_eq!(
        part.write(b"x", room, &mut buffers),
        Err(WriteError::Blocked)
    );
    assert!(part.is_waiting_for_connection());
    assert!(!part.take_writable(100));
    assert!(part.take_connection_writable());
    assert!(!part.take_connection_writable());
}

#[test]
fn limit_of_the_stream_keeps_data_back_and_is_signalled_once() {
    let (mut part, mut buffers) = (SendPart::default(), buffers());
    part.begin(2);
    part.write(b"abc", ROOM, &mut buffers).unwrap();
    part.finish().unwrap();
    assert_eq!(
        in_packet(|packet| part.write_new(id(), 100, packet)),
        Some(span(0, 2, false))
    );
    assert!(!part.has_new() && !part.has_free());
    assert!(part.take_blocked());
    assert!(!part.take_blocked());
    assert_eq!(part.blocked_at(), Some(2));
    assert!(!part.on_max_stream_data(1));
    assert!(part.on_max_stream_data(10));
    assert_eq!(part.blocked_at(), None);
    assert_eq!(
        in_packet(|packet| part.write_new(id(), 100, packet)),
        Some(span(2, 1, true))
    );
}

#[test]
fn frame_that_fills_the_packet_has_no_len_field() {
    let (mut part, mut buffers) = (SendPart::default(), buffers());
    part.begin(1000);
    part.write(&[b'x'; 500], ROOM, &mut buffers).unwrap();
    let (mut room, mut lists) = ([0; 100], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut room, &mut lists);
    assert_eq!(
        part.write_new(id(), 1000, &mut packet),
        Some(span(0, 98, false))
    );
    let (len, _) = packet.finish();
    assert_eq!((len, room[0]), (100, 0x08));
}

/// For all sizes of room and data the frame fits, decodes to the data sent, and wastes little.
#[test]
fn frames_fit_for_all_sizes_of_room_and_data() {
    for offset in [0, 1, 70, 20_000] {
        for room in 1..140 {
            for available in 0..140 {
                let Some(fit) = Fit::of(room, id(), offset, available) else {
                    assert!(room < 24, "{offset} {room} {available}");
                    continue;
                };
                assert!(fit.len as u64 <= available);
                let (mut bytes, mut lists) = (vec![0xff; room], FrameLists::default());
                let mut packet = PacketBuilder::new(&mut bytes, &mut lists);
                let sent = span(offset, fit.len as u64, true);
                fit.write_header(id(), sent, &mut packet);
                packet.writer().zeros(fit.len);
                let (len, _) = packet.finish();
                assert!(fit.has_len || len == room, "{offset} {room} {available}");
                let is_limited = (fit.len as u64) < available;
                assert!(
                    !is_limited || len + 2 >= room,
                    "{offset} {room} {available}"
                );
                let Some(Ok(Frame::Stream(frame))) = Frames::new(&bytes[..len]).next() else {
                    panic!("no frame for {offset} {room} {available}");
                };
                assert_eq!((frame.offset, frame.data.len()), (offset, fit.len));
            }
        }
    }
}

#[test]
fn record_never_counts_more_than_16_bits() {
    let fit = Fit::of(100_000, id(), 0, 1 << 40).unwrap();
    assert_eq!(
        fit,
        Fit {
            len: MAX_SPAN,
            has_len: true
        }
    );
}
