//! Reads the traces that courser writes.

#[path = "../../../../crates/qlog/tests/it/qlog_crate/everything.rs"]
mod everything;

use std::time::Duration;

use courser_base::{Side, Time};
use courser_qlog::{Dialect, QlogSink, TraceHeader};
use courser_telemetry::Sink;
use courser_trace::qlog::{EventKind, Reader};
use courser_wire::ConnectionId;

/// Returns a trace with every kind of record and of frame.
fn trace(dialect: Dialect) -> Vec<u8> {
    let id = ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).expect("eight bytes");
    let header = TraceHeader {
        dialect,
        ..TraceHeader::new(id, Side::Client)
    };
    let mut bytes = Vec::new();
    let mut sink = QlogSink::new(&mut bytes, &header);
    for (at, record) in (0..).zip(everything::records()) {
        sink.record(Time::ZERO + Duration::from_micros(1500 * at), &record);
    }
    drop(sink);
    bytes
}

#[test]
fn every_event_of_both_dialects_is_read() {
    for dialect in [Dialect::Draft13, Dialect::QlogCrate] {
        let bytes = trace(dialect);
        let reader = Reader::new(&*bytes).expect("a header");
        let events: Vec<_> = reader.collect::<Result<_, _>>().expect("well-formed");
        let states = events.iter().filter_map(|event| match &event.kind {
            EventKind::ConnectionState { new } => Some(new.as_str()),
            _ => None,
        });
        let states: Vec<_> = states.collect();
        assert!(states.contains(&"handshake_complete"), "{states:?}");
        let features = events.iter().filter_map(|event| match &event.kind {
            EventKind::PathFeature { feature, is_used } => Some((feature.as_str(), *is_used)),
            _ => None,
        });
        let expected = [
            ("batches", false),
            ("ecn", true),
            ("cleared_quic_bit", false),
        ];
        assert_eq!(features.collect::<Vec<_>>(), expected);
        assert!((events[2].time - 0.0015).abs() < 1e-9);
    }
}
