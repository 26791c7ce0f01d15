//! What we write, read by the types of the `qlog` crate.

mod everything;

use std::time::Duration;

use courser_base::{Side, Time};
use courser_qlog::{Dialect, QlogSink, TraceHeader};
use courser_telemetry::Sink;
use courser_wire::ConnectionId;
use qlog::reader::{Event, QlogSeqReader};

/// A trace with every record and every frame there is.
fn trace(dialect: Dialect) -> Vec<u8> {
    let id = ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).expect("eight bytes");
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

/// Events that only fit "some JSON", by name and what is odd about them.
fn untyped(bytes: &[u8]) -> Vec<String> {
    let written = bytes.iter().filter(|&&byte| byte == 0x1e).count() - 1;
    let reader = QlogSeqReader::new(Box::new(bytes)).expect("the head has its type");
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
    assert_eq!(events.len(), written, "the reader skips what is no event");
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
    // Ours: the drafts have no such event, and it is in a schema of its own.
    assert_eq!(names, [Some("courser:spurious_loss")], "{untyped:#?}");
}

#[test]
fn words_of_the_draft_that_the_crate_does_not_know_are_few() {
    let untyped = untyped(&trace(Dialect::Draft13));
    let odd = [
        "handshake_complete",
        "handshake_complete",
        "key_unavailable",
        "duplicate",
        "crypto_error_0x178",
        "crypto_error_0x178",
        "key_discarded",
        "\"trigger\":\"loss\"",
        "spurious_loss",
    ];
    let is_known = |event: &&String| odd.iter().any(|word| event.contains(word));
    let unknown: Vec<_> = untyped.iter().filter(|event| !is_known(event)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    for word in odd {
        assert!(
            untyped.iter().any(|event| event.contains(word)),
            "{word} has a type by now"
        );
    }
}

#[test]
fn our_own_reader_knows_every_event_of_either_dialect() {
    for dialect in [Dialect::Draft13, Dialect::QlogCrate] {
        let bytes = trace(dialect);
        let reader = courser_qlog::Reader::new(&*bytes).expect("a head");
        let events: Vec<_> = reader.collect::<Result<_, _>>().expect("well-formed");
        let states = events.iter().filter_map(|event| match &event.kind {
            courser_qlog::EventKind::ConnectionState { new } => Some(new.as_str()),
            _ => None,
        });
        let states: Vec<_> = states.collect();
        assert!(states.contains(&"handshake_complete"), "{states:?}");
        assert!((events[1].time - 0.0015).abs() < 1e-9);
    }
}
