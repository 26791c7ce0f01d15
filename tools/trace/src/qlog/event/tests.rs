use serde_json::{Value, json};

use super::*;

fn kind(name: &str, data: &Value) -> EventKind {
    let event = json!({"time": 0, "name": name, "data": data});
    let event = RawEvent::from_json(1, event, &mut Clock::new(None)).expect("well-formed");
    Event::from(&event).kind
}

fn times(trace: &Value, times: &[Value]) -> Vec<f64> {
    let mut clock = Clock::new(Some(trace));
    times
        .iter()
        .map(|time| {
            let event = json!({"time": time, "name": "a"});
            let event = RawEvent::from_json(1, event, &mut clock);
            event.expect("well-formed").time
        })
        .collect()
}

#[test]
fn times_are_seconds_since_the_first_event_in_every_format() {
    let given = [json!(1000), json!(1500.5), json!("2000")];
    assert_eq!(times(&json!({}), &given), [0.0, 0.5005, 1.0]);
    let delta = json!({"common_fields": {"time_format": "relative_to_previous_event"}});
    let given = [json!(1000), json!(5), json!(10)];
    assert_eq!(times(&delta, &given), [0.0, 0.005, 0.015]);
    let micros = json!({"configuration": {"time_units": "us"}});
    assert_eq!(times(&micros, &given[1..]), [0.0, 5e-6]);
}

#[test]
fn times_before_the_first_event_count_as_zero() {
    assert_eq!(times(&json!({}), &[json!(5), json!(1)]), [0.0, 0.0]);
}

#[test]
fn names_of_old_and_new_drafts_are_read_alike() {
    let data = json!({"latest_rtt": 12.5, "congestion_window": 1e3, "ssthresh": u64::MAX});
    let expected = EventKind::Metrics(Metrics {
        latest_rtt: Some(0.0125),
        congestion_window: Some(1000),
        ..Metrics::default()
    });
    for name in [
        "recovery:metrics_updated",
        "quic:recovery_metrics_updated",
        "recovery_metrics_updated",
    ] {
        assert_eq!(kind(name, &data), expected, "{name}");
    }
    let state = |name| {
        kind(
            "connectivity:connection_state_updated",
            &json!({"new": name}),
        )
    };
    assert_eq!(state("handshake_completed"), state("handshake_complete"));
}

#[test]
fn events_of_other_protocols_are_not_read_as_quic() {
    let other = kind("http3:packet_sent", &json!({}));
    assert_eq!(
        other,
        EventKind::Other {
            name: "packet_sent".to_owned()
        }
    );
}

#[test]
fn sizes_and_ranges_are_found_in_every_draft() {
    let old = json!({
        "packet_type": "1RTT",
        "header": {"packet_number": "7", "packet_size": 100},
        "frames": [
            {"frame_type": "stream", "stream_id": 4, "offset": 10, "length": 50},
            {"frame_type": "ack", "acked_ranges": [["1", "3"], [5], 9, [8, 2], []]},
        ],
    });
    let new = json!({
        "header": {"packet_type": "1RTT", "packet_number": 7},
        "raw": {"length": 100},
        "frames": [
            {"frame_type": "stream", "stream_id": 4, "offset": 10, "raw": {"length": 50}},
            {"frame_type": "ack", "acked_ranges": [[1, 3], [5], [9, 9]]},
        ],
    });
    let span = Span {
        stream: 4,
        offset: 10,
        len: 50,
    };
    let ack = Frame::Ack {
        delay: None,
        ecn: None,
    };
    let expected = EventKind::PacketSent(Packet {
        packet_type: "1RTT".to_owned(),
        number: Some(7),
        len: 100,
        streams: vec![span],
        acked: vec![1..=3, 5..=5, 9..=9],
        frames: vec![Frame::Stream { span, fin: false }, ack],
        ack_eliciting: true,
    });
    assert_eq!(kind("transport:packet_sent", &old), expected);
    assert_eq!(kind("quic:packet_sent", &new), expected);
}

#[test]
fn fields_of_wrong_types_are_left_out() {
    let odd = json!({"header": 5, "raw": "x", "frames": {"a": 1}});
    let EventKind::PacketReceived(packet) = kind("quic:packet_received", &odd) else {
        panic!("a packet");
    };
    assert_eq!((packet.number, packet.len), (None, 0));
    let odd = json!({"latest_rtt": -1, "smoothed_rtt": "x", "bytes_in_flight": []});
    assert_eq!(
        kind("recovery:metrics_updated", &odd),
        EventKind::Metrics(Metrics::default())
    );
}

#[test]
fn numbers_are_capped() {
    let huge = json!({"header": {"packet_number": u64::MAX}, "raw": {"length": u64::MAX},
        "frames": [{"frame_type": "crypto", "length": "18446744073709551615"}]});
    let EventKind::PacketSent(packet) = kind("quic:packet_sent", &huge) else {
        panic!("a packet");
    };
    assert_eq!((packet.number, packet.len), (Some((1 << 62) - 1), 1 << 32));
    assert_eq!(packet.frames, [Frame::Crypto { len: 1 << 32 }]);
    assert_eq!(times(&json!({}), &[json!(0), json!(1e308)]), [0.0, 1e15]);
}
