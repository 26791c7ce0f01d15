//! Reads our traces with the types of the `qlog` crate.

mod everything;

use std::time::Duration;

use courser_base::{Side, Time};
use courser_qlog::{Dialect, QlogSink, TraceHeader};
use courser_telemetry::Sink;
use courser_wire::ConnectionId;
use qlog::reader::{Event, QlogSeqReader};

/// Returns a trace with every kind of record and of frame.
fn trace(dialect: Dialect) -> Vec<u8> {
    let id =
        ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).expect("eight bytes fit into a connection ID");
    let header = TraceHeader {
        title: Some("everything".to_owned()),
        name: Some("host".to_owned()),
        wall_clock_time: Some("2026-01-01T00:00:00Z".to_owned()),
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

/// Returns the events that the crate reads only as untyped JSON, with their data.
fn untyped(bytes: &[u8]) -> Vec<String> {
    let written = bytes.iter().filter(|&&byte| byte == 0x1e).count() - 1;
    let reader = QlogSeqReader::new(Box::new(bytes)).expect("the header has its type");
    assert_eq!(
        reader
            .qlog
            .trace
            .vantage_point
            .as_ref()
            .map(|point| &point.ty),
        Some(&qlog::VantagePointType::Client)
    );
    let events: Vec<_> = reader.collect();
    assert_eq!(events.len(), written, "the reader skips malformed events");
    events
        .into_iter()
        .filter_map(|event| match event {
            Event::Qlog(_) => None,
            Event::Json(event) => Some(format!("{} {}", event.name, event.data)),
        })
        .collect()
}

#[test]
fn every_event_has_its_type_in_the_dialect_of_the_crate() {
    let untyped = untyped(&trace(Dialect::QlogCrate));
    let names: Vec<_> = untyped.iter().map(|it| it.split(' ').next()).collect();
    // The drafts have no such events, so they are in our own schemas.
    let expected = [
        "courser:path_feature_updated",
        "courser:path_feature_updated",
        "courser:path_feature_updated",
        "courser:path_silence_updated",
        "courser:path_silence_updated",
        "courser:spurious_loss",
        "qpack:stream_state_updated",
        "courser:records_dropped",
    ];
    assert_eq!(names, expected.map(Some), "{untyped:#?}");
}

#[test]
fn crate_lacks_few_names_of_the_draft() {
    let untyped = untyped(&trace(Dialect::Draft13));
    let untyped_names = [
        "handshake_complete",
        "handshake_complete",
        "key_unavailable",
        "duplicate",
        "crypto_error_0x178",
        "crypto_error_0x178",
        "key_discarded",
        "\"trigger\":\"loss\"",
        "path_silence_updated",
        "path_feature_updated",
        "spurious_loss",
        "qpack:",
        "records_dropped",
        "\"frame_type\":\"origin\"",
    ];
    let is_expected = |event: &&String| untyped_names.iter().any(|name| event.contains(name));
    let unexpected: Vec<_> = untyped.iter().filter(|event| !is_expected(event)).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    for name in untyped_names {
        assert!(
            untyped.iter().any(|event| event.contains(name)),
            "{name} has a type by now"
        );
    }
}
