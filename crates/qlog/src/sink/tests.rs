use std::time::Duration;

use courser_telemetry::{CloseCause, ConnectionClosed, StateChanged};

use super::*;

fn header() -> TraceHeader {
    let id = ConnectionId::new(&[0xab, 0xcd]).expect("two bytes");
    TraceHeader::new(id, Side::Server)
}

fn state() -> Record {
    Record::StateChanged(StateChanged {
        old: None,
        state: "confirmed",
    })
}

/// A disk with room for so many bytes.
#[derive(Default)]
struct Disk {
    room: usize,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.written.lock().expect("not poisoned");
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
fn trace_is_a_header_and_events_each_between_separator_and_line_feed() {
    let mut file = Vec::new();
    let mut sink = QlogSink::new(&mut file, &header());
    sink.record(Time::ZERO + Duration::from_micros(1500), &state());
    drop(sink);
    let text = String::from_utf8(file).expect("text");
    let records: Vec<_> = text.split('\u{1e}').collect();
    assert_eq!(records[0], "");
    let head: serde_json::Value = serde_json::from_str(records[1]).expect("JSON");
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
fn full_disk_stops_the_trace_and_is_told_once() {
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
    assert!(sink.buffer.capacity() == 0, "nothing is collected any more");
    drop(sink);
    assert!(written.lock().expect("not poisoned").is_empty());
    let error = outcome.take_error().expect("an error");
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
    assert!(written.lock().expect("not poisoned").is_empty());
    sink.record(
        Time::ZERO,
        &Record::ConnectionClosed(ConnectionClosed {
            by_peer: false,
            cause: CloseCause::IdleTimeout,
            reason: String::new(),
        }),
    );
    let text = String::from_utf8(written.lock().expect("not poisoned").clone()).expect("text");
    assert!(text.ends_with("\"trigger\":\"idle_timeout\"}}\n"), "{text}");
}
