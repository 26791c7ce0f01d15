use courser_base::Side;
use courser_wire::{Direction, StreamId, TransportErrorCode};

use super::*;
use crate::stream::StreamsConfig;
use crate::stream::chunk_pool::ChunkPool;

const NOW: Time = Time::ZERO;
const RTT: Duration = Duration::from_millis(10);

struct Fixture {
    part: ReceivePart,
    connection: ConnectionFlow,
    buffers: Buffers,
}

type Result<T> = std::result::Result<T, TransportErrorCode>;

impl Fixture {
    fn new() -> Self {
        Self::with_windows(100, 1000)
    }

    fn with_windows(stream: u64, connection: u64) -> Self {
        let mut part = ReceivePart::default();
        part.begin(limits(stream));
        let connection = ConnectionFlow::new(connection, connection);
        Self {
            part,
            connection,
            buffers: Buffers::new(ChunkPool::new(1), &StreamsConfig::default()),
        }
    }

    fn with<T>(
        &mut self,
        run: impl FnOnce(&mut ReceivePart, &mut ReceiveWindow, &mut Buffers) -> T,
    ) -> T {
        run(
            &mut self.part,
            &mut self.connection.receive,
            &mut self.buffers,
        )
    }

    fn credit(&mut self, rtt: Duration) -> Option<u64> {
        self.part.credit_to_send(NOW, rtt, &mut self.connection)
    }

    fn stream(&mut self, offset: u64, data: &[u8], fin: bool) -> Result<Stored> {
        let frame = frame::Stream {
            id: id(),
            offset,
            data,
            fin,
        };
        self.with(|part, connection, buffers| part.on_stream(NOW, &frame, connection, buffers))
            .map_err(|error| error.code)
    }

    fn reset(&mut self, final_size: u64) -> Result<()> {
        let frame = frame::ResetStream {
            id: id(),
            error_code: 7,
            final_size,
        };
        self.with(|part, connection, buffers| part.on_reset(NOW, frame, connection, buffers))
            .map_err(|error| error.code)
    }

    fn read(&mut self) -> std::result::Result<Option<Vec<u8>>, ReadError> {
        let mut out = [0; 100];
        let len =
            self.with(|part, connection, buffers| part.read(&mut out, connection, buffers))?;
        Ok(len.map(|len| out[..len].to_vec()))
    }

    fn stop(&mut self) -> std::result::Result<bool, ClosedStream> {
        self.with(|part, connection, buffers| part.stop(9, connection, buffers))
    }
}

fn limits(window: u64) -> ReceiveLimits {
    ReceiveLimits {
        window,
        window_max: window,
        max_gaps: 4,
    }
}

fn id() -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, 0)
}

/// Returns a part in each state of the figure, whose stream has (or will have) the bytes `abcdef`.
fn fixtures() -> Vec<(&'static str, Fixture)> {
    let recv = || {
        let mut fixture = Fixture::new();
        fixture.stream(0, b"abc", false).unwrap();
        fixture
    };
    let size_known = || {
        let mut fixture = recv();
        fixture.stream(5, b"f", true).unwrap();
        fixture
    };
    let data_recvd = || {
        let mut fixture = size_known();
        fixture.stream(3, b"de", false).unwrap();
        fixture
    };
    let data_read = || {
        let mut fixture = data_recvd();
        fixture.read().unwrap();
        assert_eq!(fixture.read(), Ok(None));
        fixture
    };
    let reset_recvd = || {
        let mut fixture = recv();
        fixture.reset(6).unwrap();
        fixture
    };
    let reset_read = || {
        let mut fixture = reset_recvd();
        assert_eq!(fixture.read(), Err(ReadError::Reset(7)));
        fixture
    };
    let mut stopped = recv();
    stopped.stop().unwrap();
    let mut stop_acked = recv();
    stop_acked.stop().unwrap();
    stop_acked.part.on_stop_sent();
    stop_acked.part.on_stop_acked();
    let mut stopped_size_known = size_known();
    stopped_size_known.stop().unwrap();
    vec![
        ("Recv", recv()),
        ("SizeKnown", size_known()),
        ("DataRecvd", data_recvd()),
        ("DataRead", data_read()),
        ("ResetRecvd", reset_recvd()),
        ("ResetRead", reset_read()),
        ("Recv, stopped", stopped),
        ("Recv, stop acked", stop_acked),
        ("SizeKnown, stopped", stopped_size_known),
    ]
}

type Event = (&'static str, fn(&mut Fixture));

const EVENTS: [Event; 8] = [
    ("data", |fixture| {
        fixture.stream(3, b"de", false).unwrap();
    }),
    ("FIN", |fixture| {
        fixture.stream(6, b"", true).unwrap();
    }),
    ("all data and FIN", |fixture| {
        fixture.stream(0, b"abcdef", true).unwrap();
    }),
    ("RESET_STREAM", |fixture| fixture.reset(6).unwrap()),
    ("read", |fixture| {
        let _ = fixture.read();
    }),
    (
        "read to the end",
        |fixture| while let Ok(Some(_)) = fixture.read() {},
    ),
    ("stop", |fixture| {
        let _ = fixture.stop();
    }),
    ("STOP_SENDING acked", |fixture| {
        fixture.part.on_stop_sent();
        fixture.part.on_stop_acked();
    }),
];

/// Row: state, one column per event in the order of [`EVENTS`].
const TABLE: [(&str, [State; 8]); 9] = {
    let recv = State::Recv;
    let known = State::SizeKnown(FinalSize(6));
    let all = State::DataRecvd(FinalSize(6));
    let read = State::DataRead(FinalSize(6));
    let reset = State::ResetRecvd(FinalSize(6), 7);
    let told = State::ResetRead(FinalSize(6), 7);
    [
        ("Recv", [recv, known, all, reset, recv, recv, recv, recv]),
        (
            "SizeKnown",
            [all, known, all, reset, known, known, known, known],
        ),
        ("DataRecvd", [all, all, all, all, all, read, read, all]),
        ("DataRead", [read; 8]),
        (
            "ResetRecvd",
            [reset, reset, reset, reset, told, told, told, reset],
        ),
        ("ResetRead", [told; 8]),
        (
            "Recv, stopped",
            [recv, known, known, told, recv, recv, recv, recv],
        ),
        (
            "Recv, stop acked",
            [recv, read, read, told, recv, recv, recv, recv],
        ),
        (
            "SizeKnown, stopped",
            [known, known, known, told, known, known, known, read],
        ),
    ]
};

#[test]
fn every_state_with_every_event_agrees_with_the_table() {
    for (row, (name, expected)) in TABLE.iter().enumerate() {
        for (column, (event, apply)) in EVENTS.iter().enumerate() {
            let (state, mut fixture) = fixtures().swap_remove(row);
            assert_eq!(state, *name);
            apply(&mut fixture);
            assert_eq!(fixture.part.state, expected[column], "{event} in {state}");
        }
    }
}

#[test]
fn data_past_the_final_size_is_an_error_in_every_state_that_knows_it() {
    for (name, mut fixture) in fixtures() {
        let result = fixture.stream(6, b"g", false);
        if fixture.part.state.final_size().is_some() {
            assert_eq!(result, Err(TransportErrorCode::FINAL_SIZE_ERROR), "{name}");
        } else {
            assert_eq!(result, Ok(Stored::Kept), "{name}");
        }
    }
}

#[test]
fn final_size_may_not_change_in_any_state() {
    let error = TransportErrorCode::FINAL_SIZE_ERROR;
    for size in [5, 7] {
        for (name, mut fixture) in fixtures() {
            if fixture.part.state.final_size().is_some() {
                assert_eq!(
                    fixture.stream(size, b"", true),
                    Err(error),
                    "FIN {size}, {name}"
                );
                assert_eq!(
                    fixture.reset(size),
                    Err(error),
                    "RESET_STREAM {size}, {name}"
                );
            }
        }
    }
}

#[test]
fn final_size_below_received_data_is_an_error() {
    let error = TransportErrorCode::FINAL_SIZE_ERROR;
    let mut fixture = Fixture::new();
    fixture.stream(10, b"x", false).unwrap();
    assert_eq!(fixture.stream(10, b"", true), Err(error));
    assert_eq!(fixture.reset(10), Err(error));
    assert_eq!(fixture.stream(11, b"", true), Ok(Stored::Kept));
}

#[test]
fn late_frames_are_tolerated_in_every_state() {
    for (name, mut fixture) in fixtures() {
        assert_eq!(
            fixture.stream(0, b"XYZ", false),
            Ok(Stored::Kept),
            "STREAM in {name}"
        );
        assert_eq!(fixture.reset(6), Ok(()), "RESET_STREAM in {name}");
        assert_eq!(fixture.reset(6), Ok(()), "second RESET_STREAM in {name}");
    }
}

#[test]
fn limits_hold_for_data_and_for_resets() {
    let error = Err(TransportErrorCode::FLOW_CONTROL_ERROR);
    let mut fixture = Fixture::with_windows(100, 1000);
    assert_eq!(fixture.stream(99, b"xy", false), error);
    assert_eq!(fixture.reset(101), error.map(|_| ()));
    assert_eq!(fixture.stream(99, b"x", false), Ok(Stored::Kept));
    let mut fixture = Fixture::with_windows(1000, 100);
    assert_eq!(fixture.stream(99, b"xy", false), error);
    assert_eq!(fixture.reset(101), error.map(|_| ()));
    assert_eq!(fixture.connection.receive.received(), 0);
    assert_eq!(fixture.reset(100), Ok(()));
    assert_eq!(fixture.connection.receive.received(), 100);
}

#[test]
fn offset_past_the_largest_varint_is_an_error() {
    let mut fixture = Fixture::with_windows(MAX_VARINT, MAX_VARINT);
    let error = Err(TransportErrorCode::FRAME_ENCODING_ERROR);
    assert_eq!(fixture.stream(MAX_VARINT, b"x", false), error);
    assert_eq!(fixture.stream(u64::MAX, b"x", false), error);
}

#[test]
fn reset_charges_and_credits_what_never_arrived() {
    let mut fixture = Fixture::new();
    fixture.stream(0, b"abc", false).unwrap();
    fixture.reset(60).unwrap();
    assert_eq!(
        (
            fixture.connection.receive.received(),
            fixture.connection.receive.unconsumed()
        ),
        (60, 0)
    );
    assert_eq!(fixture.part.reassembler.readable(), 0);
}

#[test]
fn stopped_stream_discards_but_counts() {
    let mut fixture = Fixture::new();
    fixture.stream(0, b"abc", false).unwrap();
    assert_eq!(fixture.connection.receive.unconsumed(), 3);
    assert_eq!(fixture.stop(), Ok(true));
    assert_eq!(fixture.connection.receive.unconsumed(), 0);
    fixture.stream(50, b"late", false).unwrap();
    assert_eq!(
        (
            fixture.connection.receive.received(),
            fixture.connection.receive.unconsumed()
        ),
        (54, 0)
    );
    assert_eq!(fixture.part.gaps(), 0);
    assert_eq!(fixture.read(), Err(ReadError::ClosedStream));
    assert_eq!(fixture.stop(), Err(ClosedStream));
    assert_eq!(
        fixture.stream(100, b"x", false),
        Err(TransportErrorCode::FLOW_CONTROL_ERROR)
    );
}

#[test]
fn stop_sending_is_repeated_until_acknowledged_or_useless() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.part.stop_to_send(), None);
    fixture.stop().unwrap();
    assert_eq!(fixture.part.stop_to_send(), Some(9));
    fixture.part.on_stop_sent();
    assert_eq!(fixture.part.stop_to_send(), None);
    assert!(fixture.part.on_stop_lost());
    assert_eq!(fixture.part.stop_to_send(), Some(9));
    fixture.part.on_stop_sent();
    fixture.reset(0).unwrap();
    assert!(!fixture.part.on_stop_lost());
    assert_eq!(fixture.part.stop_to_send(), None);
    assert!(fixture.part.is_over());
}

#[test]
fn stop_that_comes_late_needs_no_frame() {
    for (name, mut fixture) in fixtures().into_iter().take(6) {
        let expected = match name {
            "Recv" | "SizeKnown" => Ok(true),
            "DataRecvd" | "ResetRecvd" => Ok(false),
            _ => Err(ClosedStream),
        };
        assert_eq!(fixture.stop(), expected, "{name}");
        assert_eq!(fixture.part.is_over(), expected != Ok(true), "{name}");
        assert_eq!(
            fixture.part.stop_to_send().is_some(),
            expected == Ok(true),
            "{name}"
        );
    }
}

#[test]
fn reader_is_notified_once_after_it_found_nothing() {
    let mut fixture = Fixture::new();
    fixture.stream(0, b"a", false).unwrap();
    assert!(!fixture.part.take_readable());
    fixture.read().unwrap();
    assert_eq!(fixture.read(), Err(ReadError::Blocked));
    fixture.stream(2, b"c", false).unwrap();
    assert!(!fixture.part.take_readable());
    fixture.stream(1, b"b", false).unwrap();
    assert!(fixture.part.take_readable());
    assert!(!fixture.part.take_readable());
    assert_eq!(fixture.read(), Ok(Some(b"bc".to_vec())));
    for (name, end) in [("FIN", true), ("reset", false)] {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(), Err(ReadError::Blocked));
        if end {
            fixture.stream(0, b"", true).unwrap();
        } else {
            fixture.reset(0).unwrap();
        }
        assert!(fixture.part.take_readable(), "{name}");
    }
}

#[test]
fn end_and_reset_are_reported_again() {
    let mut fixture = fixtures().swap_remove(3).1;
    assert_eq!(fixture.read(), Ok(None));
    let mut fixture = fixtures().swap_remove(5).1;
    assert_eq!(fixture.read(), Err(ReadError::Reset(7)));
}

#[test]
fn credit_is_of_use_only_in_recv() {
    for (name, mut fixture) in fixtures() {
        let is_recv = name == "Recv";
        assert_eq!(fixture.part.can_use_credit(), is_recv, "{name}");
        assert_eq!(fixture.credit(RTT).is_some(), is_recv, "{name}");
    }
    let mut fixture = Fixture::new();
    fixture.stream(0, &[0; 50], false).unwrap();
    assert!(!fixture.part.is_credit_due());
    fixture.read().unwrap();
    assert!(fixture.part.is_credit_due());
    assert_eq!(fixture.credit(Duration::ZERO), Some(150));
    assert!(!fixture.part.is_credit_due());
}

#[test]
fn refused_data_changes_nothing() {
    let mut fixture = Fixture::new();
    for offset in [10, 20, 30, 40] {
        fixture.stream(offset, b"x", false).unwrap();
    }
    assert_eq!(fixture.stream(50, b"x", true), Ok(Stored::Refused));
    assert_eq!(fixture.part.state, State::Recv);
    assert_eq!(fixture.connection.receive.received(), 41);
    assert_eq!(fixture.stream(41, b"x", false), Ok(Stored::Kept));
    assert_eq!(fixture.stream(0, &[1; 10], false), Ok(Stored::Kept));
    assert_eq!(fixture.stream(50, b"x", true), Ok(Stored::Kept));
}

#[test]
fn large_initial_window_allows_more_gaps() {
    let opened = |window: u64| {
        let mut fixture = Fixture::with_windows(window, window);
        let refused = (0..).find(|piece| {
            let stored = fixture.stream(1 + 2 * piece, b"x", false);
            stored.unwrap() == Stored::Refused
        });
        refused.unwrap()
    };
    assert_eq!(opened(1000), 4);
    assert_eq!(opened((1 << 20) - 1), 4 + 31);
    assert_eq!(opened(1 << 20), 4 + 32);
}

fn read_unordered(fixture: &mut Fixture) -> std::result::Result<Option<(u64, Vec<u8>)>, ReadError> {
    let piece =
        fixture.with(|part, connection, buffers| part.read_unordered(100, connection, buffers))?;
    Ok(piece.map(|(offset, bytes)| (offset, bytes.to_vec())))
}

#[test]
fn unordered_reads_earn_credit_once() {
    let mut fixture = Fixture::new();
    fixture.stream(0, &[1; 10], false).expect("fits");
    assert_eq!(fixture.read(), Ok(Some(vec![1; 10])));
    fixture.stream(20, &[3; 10], false).expect("fits");
    assert_eq!(read_unordered(&mut fixture), Ok(Some((20, vec![3; 10]))));
    let unread = |fixture: &Fixture| {
        let window = &fixture.connection.receive;
        (window.unconsumed(), window.readable())
    };
    assert_eq!(unread(&fixture), (10, 0), "the gap");
    // What was read in order and what was read past the gap arrive again with what fills the gap.
    fixture.stream(0, &[2; 30], true).expect("fits");
    assert_eq!(unread(&fixture), (10, 10));
    assert_eq!(read_unordered(&mut fixture), Ok(Some((10, vec![2; 10]))));
    assert_eq!(unread(&fixture), (0, 0));
    assert_eq!(read_unordered(&mut fixture), Ok(None));
    assert!(fixture.part.is_over());
    assert_eq!(fixture.part.stats().read, 30);
}

#[test]
fn end_comes_after_all_bytes_were_read_without_order() {
    let mut fixture = Fixture::new();
    fixture.stream(10, &[2; 10], true).expect("fits");
    assert_eq!(read_unordered(&mut fixture), Ok(Some((10, vec![2; 10]))));
    assert_eq!(read_unordered(&mut fixture), Err(ReadError::Blocked));
    assert!(!fixture.part.take_readable());
    fixture.stream(0, &[1; 10], false).expect("fits");
    assert!(fixture.part.take_readable());
    assert_eq!(read_unordered(&mut fixture), Ok(Some((0, vec![1; 10]))));
    assert_eq!(read_unordered(&mut fixture), Ok(None));
}

#[test]
fn waiting_reader_without_order_is_woken_by_bytes_past_a_gap() {
    let mut fixture = Fixture::new();
    assert_eq!(read_unordered(&mut fixture), Err(ReadError::Blocked));
    fixture.stream(10, &[2; 10], false).expect("fits");
    assert!(fixture.part.take_readable());
    assert!(!fixture.part.take_readable(), "once");
}

#[test]
fn stream_is_not_read_in_order_after_it_was_read_without() {
    let mut fixture = Fixture::new();
    assert_eq!(read_unordered(&mut fixture), Err(ReadError::Blocked));
    fixture.stream(0, &[1; 10], true).expect("fits");
    assert_eq!(fixture.read(), Err(ReadError::Unordered));
    let chunk = fixture.with(|part, connection, buffers| part.read_chunk(9, connection, buffers));
    assert_eq!(chunk, Err(ReadError::Unordered));
    assert_eq!(read_unordered(&mut fixture), Ok(Some((0, vec![1; 10]))));
    // A new stream in the same memory is read in order again.
    fixture.part.begin(limits(100));
    let mut buffers = Buffers::new(ChunkPool::new(1), &StreamsConfig::default());
    std::mem::swap(&mut buffers, &mut fixture.buffers);
    fixture.part.recycle(&mut buffers);
    fixture.stream(0, &[4; 2], false).expect("fits");
    assert_eq!(fixture.read(), Ok(Some(vec![4; 2])));
}

#[test]
fn reset_is_reported_to_a_reader_without_order() {
    let mut fixture = Fixture::new();
    fixture.stream(10, &[2; 10], false).expect("fits");
    assert_eq!(read_unordered(&mut fixture), Ok(Some((10, vec![2; 10]))));
    fixture.reset(30).expect("fits");
    assert_eq!(read_unordered(&mut fixture), Err(ReadError::Reset(7)));
    assert_eq!(fixture.connection.receive.unconsumed(), 0);
    let stopped = {
        let mut fixture = Fixture::new();
        fixture.stop().expect("open");
        read_unordered(&mut fixture)
    };
    assert_eq!(stopped, Err(ReadError::ClosedStream));
}
