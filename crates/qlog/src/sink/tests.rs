use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_telemetry::{CloseCause, ConnectionClosed, StateChanged};
use serde_json::Value;

use super::*;

fn header() -> TraceHeader {
    let id = ConnectionId::new(&[0xab, 0xcd]).expect("two bytes fit into a connection ID");
    TraceHeader::new(id, Side::Server)
}

fn state() -> Record {
    Record::StateChanged(StateChanged {
        old: None,
        state: "confirmed",
    })
}

/// A disk with room for a number of bytes.
#[derive(Default)]
struct Disk {
    room: usize,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.written.lock();
        if written.len() + bytes.len() > self.room {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "disk is full"));
        }
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn trace_is_a_header_and_events_between_separators_and_line_feeds() {
    let mut file = Vec::new();
    let mut sink = QlogSink::new(&mut file, &header());
    sink.record(Time::ZERO + Duration::from_micros(1500), &state());
    drop(sink);
    let text = String::from_utf8(file).expect("the output is UTF-8");
    let records: Vec<_> = text.split('\u{1e}').collect();
    assert_eq!(records[0], "");
    let head: Value = serde_json::from_str(records[1]).expect("the record is JSON");
    assert_eq!(head["trace"]["vantage_point"]["type"], "server");
    assert_eq!(head["trace"]["common_fields"]["group_id"], "abcd");
    let schemas = &head["trace"]["event_schemas"];
    assert_eq!(schemas[0], "urn:ietf:params:qlog:events:quic-13");
    assert_eq!(
        records[2],
        "{\"time\":1.5,\"name\":\"quic:connection_state_updated\",\
         \"data\":{\"new\":\"handshake_confirmed\"}}\n"
    );
}

#[test]
fn file_name_is_the_original_destination_id_and_the_side() {
    assert_eq!(header().file_name(), "abcd_server.sqlog");
}

#[test]
fn full_disk_ends_the_trace_and_is_reported_once() {
    let disk = Disk {
        room: 1000,
        ..Disk::default()
    };
    let written = Arc::clone(&disk.written);
    let mut sink = QlogSink::new(disk, &header());
    let outcome = sink.outcome();
    for _ in 0..10_000 {
        sink.record(Time::ZERO, &state());
    }
    assert!(sink.buffer.capacity() == 0, "nothing is buffered any more");
    drop(sink);
    assert!(written.lock().is_empty());
    let error = outcome.take_error().expect("the trace has an error");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(outcome.take_error().is_none());
}

#[test]
fn close_is_on_disk_before_the_sink_is_dropped() {
    let disk = Disk {
        room: usize::MAX,
        ..Disk::default()
    };
    let written = Arc::clone(&disk.written);
    let mut sink = QlogSink::new(disk, &header());
    sink.record(Time::ZERO, &state());
    assert!(written.lock().is_empty());
    sink.record(
        Time::ZERO,
        &Record::ConnectionClosed(ConnectionClosed {
            by_peer: false,
            cause: CloseCause::IdleTimeout,
            reason: String::new(),
        }),
    );
    let text = String::from_utf8(written.lock().clone()).expect("the output is UTF-8");
    assert!(text.ends_with("\"trigger\":\"idle_timeout\"}}\n"), "{text}");
    sink.record(Time::ZERO, &state());
    let len = written.lock().len();
    assert!(len > text.len(), "later records are written at once");
}

/// A queue that is full for some writes.
struct Queue {
    refuses: std::ops::Range<usize>,
    writes: usize,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Queue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if self.refuses.contains(&(self.writes - 1)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.written.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The content of a trace.
struct Trace {
    header: Value,
    /// The number of events, those that mark a gap included.
    events: u64,
    /// The number of records that are missing in the gaps.
    dropped: u64,
}

impl Trace {
    fn read(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).expect("the output is UTF-8");
        let records = text.split('\u{1e}').skip(1);
        let mut records =
            records.map(|text| serde_json::from_str::<Value>(text).expect("the record is JSON"));
        let mut trace = Self {
            header: records.next().expect("the trace has a header"),
            events: 0,
            dropped: 0,
        };
        for event in records {
            trace.events += 1;
            if event["name"] == "courser:records_dropped" {
                trace.dropped += event["data"]["records"]
                    .as_u64()
                    .expect("the field is a number");
            }
        }
        trace
    }
}

/// Records states through a queue that refuses these writes. Returns the drops, the written trace, and the
/// number of recorded states.
fn through_queue(refuses: std::ops::Range<usize>, buffers: usize) -> (Dropped, Trace, u64) {
    let written = Arc::default();
    let queue = Queue {
        refuses,
        writes: 0,
        written: Arc::clone(&written),
    };
    let mut sink = QlogSink::new(queue, &header());
    let outcome = sink.outcome();
    let mut recorded = 0;
    while sink.writer.writes < buffers {
        sink.record(Time::ZERO, &state());
        recorded += 1;
    }
    drop(sink);
    assert!(outcome.take_error().is_none(), "a gap is not an error");
    let written = written.lock().clone();
    (outcome.dropped(), Trace::read(&written), recorded)
}

#[test]
fn buffers_dropped_by_a_full_queue_are_counted_and_marked() {
    let (dropped, trace, recorded) = through_queue(2..4, 7);
    assert_eq!(dropped.buffers, 2);
    assert_eq!(trace.dropped, dropped.records);
    // One event marks the gap of both buffers.
    assert_eq!(trace.events - 1 + dropped.records, recorded);
    assert!(dropped.bytes > 60_000, "{} bytes", dropped.bytes);
}

#[test]
fn header_survives_a_queue_that_is_full_at_first() {
    let (dropped, trace, recorded) = through_queue(0..2, 4);
    assert_eq!(dropped.buffers, 2);
    assert_eq!(trace.header["trace"]["vantage_point"]["type"], "server");
    assert_eq!(trace.dropped, dropped.records);
    assert_eq!(trace.events - 1 + dropped.records, recorded);
}

#[test]
fn gap_at_the_end_is_marked_if_the_mark_fits() {
    let (dropped, trace, _) = through_queue(2..3, 3);
    assert_eq!(dropped.buffers, 1);
    assert_eq!(trace.dropped, dropped.records);
}

#[test]
fn all_metrics_are_written_after_a_gap() {
    let mut encoder = Encoder::new(Dialect::default());
    let metrics = courser_telemetry::MetricsUpdated {
        smoothed_rtt: Duration::from_millis(20),
        latest_rtt: Duration::from_millis(20),
        min_rtt: Duration::from_millis(20),
        rtt_variance: Duration::from_millis(10),
        congestion_window: 12_000,
        bytes_in_flight: 0,
        packets_in_flight: 0,
        ssthresh: None,
        pacing_rate: None,
        pto_count: 0,
    };
    let record = Record::MetricsUpdated(metrics);
    let encode = |encoder: &mut Encoder| {
        let mut out = Vec::new();
        encoder.encode(&mut out, Time::ZERO, &record);
        out
    };
    let first = encode(&mut encoder);
    assert_ne!(encode(&mut encoder), first, "unchanged values are left out");
    encoder.gap(&mut Vec::new(), Time::ZERO, Dropped::default());
    assert_eq!(encode(&mut encoder), first);
}
