use serde_json::json;

use super::*;

fn summary(events: &[serde_json::Value]) -> Summary {
    let mut text = "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n".to_owned();
    for event in events {
        text += &format!("\u{1e}{event}\n");
    }
    Summary::of(&mut Reader::new(text.as_bytes()).expect("a header"))
}

fn sent(time: f64, number: u64, offset: u64) -> serde_json::Value {
    json!({"time": time, "name": "quic:packet_sent", "data": {
        "header": {"packet_type": "1RTT", "packet_number": number}, "raw": {"length": 1250},
        "frames": [{"frame_type": "stream", "stream_id": 0, "offset": offset, "raw": {"length": 1000}}],
    }})
}

fn acked(time: f64, ranges: &serde_json::Value) -> serde_json::Value {
    json!({"time": time, "name": "quic:packet_received", "data": {
        "header": {"packet_type": "1RTT", "packet_number": 0}, "raw": {"length": 50},
        "frames": [{"frame_type": "ack", "acked_ranges": ranges}],
    }})
}

fn lost(time: f64, number: u64, trigger: &str) -> serde_json::Value {
    json!({"time": time, "name": "quic:packet_lost", "data": {
        "header": {"packet_type": "1RTT", "packet_number": number}, "trigger": trigger,
    }})
}

#[test]
fn losses_are_counted_by_trigger_and_late_arrivals_are_detected() {
    let summary = summary(&[
        sent(0.0, 0, 0),
        sent(1.0, 1, 1000),
        sent(2.0, 2, 2000),
        lost(50.0, 0, "reordering_threshold"),
        lost(50.0, 1, "time_threshold"),
        sent(51.0, 3, 0),
        sent(51.0, 4, 1000),
        acked(60.0, &json!([[1, 4]])),
    ]);
    let expected = Losses {
        packets: 2,
        reordering_threshold: 1,
        time_threshold: 1,
        spurious: 1,
        ..Losses::default()
    };
    assert_eq!(summary.lost, expected);
    assert_eq!(summary.loss_share(), Some(0.4));
    assert_eq!(summary.repeated_share(), Some(0.4));
    assert_eq!(summary.sent.packets, 5);
    assert_eq!(summary.sent.bytes, 6250);
    assert!((summary.duration - 0.06).abs() < 1e-9);
}

#[test]
fn rates_are_those_of_the_wire() {
    // 100 packets of 1250 bytes in 990 ms, 60 of them in one tenth of a second.
    let mut events: Vec<_> = (0u32..40)
        .map(|at| sent(f64::from(at) * 10.0, u64::from(at), 0))
        .collect();
    events.extend((0u32..60).map(|at| sent(500.0 + f64::from(at), u64::from(at), 0)));
    events.push(sent(990.0, 200, 0));
    let summary = summary(&events);
    assert!((summary.sent.mean_rate - 101.0 * 1250.0 * 8.0 / 0.99).abs() < 1.0);
    assert!((summary.sent.peak_rate - 60.0 * 1250.0 * 8.0 / 0.1).abs() < 1.0);
}

#[test]
fn blocked_time_is_attributed_to_its_limit() {
    let limit = |time, reason| {
        json!({"time": time, "name": "quic:connection_data_blocked_updated",
               "data": {"new": "blocked", "reason": reason}})
    };
    let summary = summary(&[
        limit(0, "application"),
        limit(100, "congestion_control"),
        limit(350, "application"),
        sent(400.0, 1, 0),
    ]);
    let near = |key: &str, seconds: f64| (summary.limited_by[key] - seconds).abs() < 1e-9;
    assert!(near("application", 0.15) && near("congestion_control", 0.25));
}

#[test]
fn round_trips_are_a_distribution_of_samples() {
    let metrics = |at: u32| json!({"time": at, "name": "recovery:metrics_updated", "data": {"latest_rtt": at}});
    // Before the first packet, a writer may record the value that it assumes.
    let mut events = vec![metrics(333), sent(0.0, 0, 0)];
    events.extend((1..=100).map(metrics));
    let expected = RoundTrips {
        min: 0.001,
        median: 0.05,
        p95: 0.095,
        max: 0.1,
    };
    assert_eq!(summary(&events).rtt, Some(expected));
    assert_eq!(summary(&[]).rtt, None);
}

#[test]
fn hostile_trace_takes_bounded_memory() {
    let mut events: Vec<_> = (0..1000)
        .map(|at| {
            json!({"time": at as f64 * 1e12, "name": "quic:packet_dropped",
                   "data": {"trigger": format!("reason {at}")}})
        })
        .collect();
    events.extend((0..1000).map(|at| {
        json!({"time": 1e300, "name": "quic:connection_state_updated",
               "data": {"new": format!("state {at}")}})
    }));
    events.push(acked(1e300, &json!([[0, u64::MAX]])));
    events.push(json!({"time": 1, "name": "quic:packet_sent", "data": {
        "raw": {"length": u64::MAX}, "header": {"packet_type": "1RTT"},
        "frames": [{"frame_type": "stream", "stream_id": 1, "offset": u64::MAX, "length": u64::MAX}],
    }}));
    events.push(sent(2.0, 1, u64::MAX));
    events.push(events[events.len() - 2].clone());
    let summary = summary(&events);
    assert_eq!(summary.dropped.len(), MAX_KINDS);
    assert_eq!(summary.states.len(), MAX_STATES);
}
