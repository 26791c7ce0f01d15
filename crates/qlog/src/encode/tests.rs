use std::time::Duration;

use courser_telemetry::{KeyUpdated, SendLimited};

use super::*;

fn events(records: &[Record]) -> Vec<String> {
    let mut encoder = Encoder::default();
    let mut out = Vec::new();
    for record in records {
        encoder.encode(&mut out, Time::ZERO, record);
    }
    let text = String::from_utf8(out).expect("the output is UTF-8");
    text.split('\u{1e}')
        .skip(1)
        .map(|event| {
            event
                .split_once("\"data\":")
                .expect("the event has data")
                .1
                .trim_end()
                .to_owned()
        })
        .collect()
}

fn metrics() -> MetricsUpdated {
    MetricsUpdated {
        smoothed_rtt: Duration::from_millis(20),
        latest_rtt: Duration::from_millis(21),
        min_rtt: Duration::from_millis(19),
        rtt_variance: Duration::from_millis(1),
        congestion_window: 12_000,
        bytes_in_flight: 1200,
        packets_in_flight: 1,
        ssthresh: None,
        pacing_rate: None,
        pto_count: 0,
    }
}

#[test]
fn only_metrics_that_changed_are_written() {
    let (first, mut second) = (metrics(), metrics());
    second.bytes_in_flight = 2400;
    second.ssthresh = Some(9000);
    let events = events(&[
        Record::MetricsUpdated(first),
        Record::MetricsUpdated(first),
        Record::MetricsUpdated(second),
    ]);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[0].contains("\"smoothed_rtt\":20"), "{}", events[0]);
    assert_eq!(events[1], r#"{"bytes_in_flight":2400,"ssthresh":9000}}"#);
}

#[test]
fn limit_is_written_when_it_changes() {
    let by = |by| Record::SendLimited(SendLimited { by });
    let events = events(&[
        by(SendLimit::CongestionWindow),
        by(SendLimit::CongestionWindow),
        by(SendLimit::Application),
    ]);
    let expected = [
        r#"{"new":"blocked","reason":"congestion_control"}}"#,
        r#"{"new":"blocked","reason":"application"}}"#,
    ];
    assert_eq!(events, expected);
}

#[test]
fn key_updates_are_counted_where_the_wire_has_one_bit() {
    let update = |key_phase, by_peer| Record::KeyUpdated(KeyUpdated { key_phase, by_peer });
    let events = events(&[update(true, false), update(false, true)]);
    let expected = [
        r#"{"key_type":"client_1rtt_secret","key_phase":1,"trigger":"local_update"}}"#,
        r#"{"key_type":"server_1rtt_secret","key_phase":1,"trigger":"local_update"}}"#,
        r#"{"key_type":"client_1rtt_secret","key_phase":2,"trigger":"remote_update"}}"#,
        r#"{"key_type":"server_1rtt_secret","key_phase":2,"trigger":"remote_update"}}"#,
    ];
    assert_eq!(events, expected);
}
