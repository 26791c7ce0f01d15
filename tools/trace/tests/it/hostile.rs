//! Traces of a hostile writer: numbers at the ends of their ranges.

use courser_trace::render;
use serde_json::{Value, json};

use crate::commands::{Folder, courser_qlog};

/// Returns a trace in which every number is as large as JSON allows.
fn trace(side: &str) -> String {
    let huge = u64::MAX;
    let parameters = json!({"initiator": "remote", "initial_max_data": huge,
        "initial_max_stream_data_bidi_local": huge, "initial_max_stream_data_bidi_remote": huge,
        "max_udp_payload_size": huge});
    let frames = |stream: u64| {
        json!([
            {"frame_type": "stream", "stream_id": stream, "offset": huge, "raw": {"length": huge}},
            {"frame_type": "stream", "stream_id": stream + 4, "offset": huge, "length": huge},
            {"frame_type": "datagram", "length": huge},
            {"frame_type": "crypto", "length": huge},
            {"frame_type": "max_data", "maximum": huge},
            {"frame_type": "ack", "ack_delay": 1e308, "acked_ranges": [[0, huge]],
                "ect0": huge, "ect1": huge, "ce": huge},
        ])
    };
    let packet = |stream| {
        json!({"header": {"packet_type": "1RTT", "packet_number": huge},
            "raw": {"length": huge}, "frames": frames(stream)})
    };
    let metrics = |count: u64| {
        json!({"bytes_in_flight": huge, "congestion_window": huge - count / 2, "pto_count": count,
            "min_rtt": 1e308, "latest_rtt": 1e308, "pacing_rate": huge,
            "cf_lost_packets": {"total": huge}})
    };
    let mut events: Vec<(f64, &str, Value)> = vec![
        (0.0, "quic:parameters_set", parameters),
        (0.0, "quic:mtu_updated", json!({"new": huge})),
    ];
    for index in 0..8_u64 {
        let time = if index == 7 { 1e308 } else { index as f64 };
        events.push((time, "quic:packet_sent", packet(index * 8)));
        events.push((time, "quic:packet_received", packet(index * 8)));
        events.push((
            time,
            "quic:packet_dropped",
            json!({"raw": {"length": huge}}),
        ));
        for count in [huge, 0] {
            events.push((time, "quic:recovery_metrics_updated", metrics(count)));
        }
        let lost = json!({"header": {"packet_type": "1RTT", "packet_number": huge}});
        events.push((time, "quic:packet_lost", lost));
        let small = json!({"congestion_window": 1});
        events.push((time, "quic:recovery_metrics_updated", small));
    }
    let head = json!({"trace": {"vantage_point": {"type": side}}});
    let mut text = format!("\u{1e}{head}\n");
    for (time, name, data) in events {
        let event = json!({"time": time, "name": name, "data": data});
        text += &format!("\u{1e}{event}\n");
    }
    text
}

#[test]
fn largest_numbers_cause_no_overflow() {
    for side in ["client", "server"] {
        render(trace(side).as_bytes()).expect("rendered");
    }
    let folder = Folder::new("hostile");
    let file = folder.write("a.sqlog", trace("server").as_bytes());
    let (seen, result) = courser_qlog(&["tail", "--wait", "0.1", &file]);
    result.expect("followed");
    assert!(seen.lines.len() > 1, "{seen:?}");
}

#[test]
fn sums_of_times_stay_finite() {
    let mut text = "\u{1e}{\"trace\":{\"common_fields\":{\"time_format\":\"delta\"}}}\n".to_owned();
    for _ in 0..4 {
        text += "\u{1e}{\"time\":1e308,\"name\":\"quic:packet_sent\"}\n";
    }
    let folder = Folder::new("endless");
    let file = folder.write("a.sqlog", text.as_bytes());
    let output = folder.path("b.sqlog");
    courser_qlog(&["convert", &file, "-o", &output])
        .1
        .expect("converted");
    let text = std::fs::read_to_string(output).expect("written");
    assert!(!text.contains("\"time\":null"), "{text}");
}
