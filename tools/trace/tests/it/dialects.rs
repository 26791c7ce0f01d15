//! One transfer, as quiche, quic-go, ngtcp2, aioquic, picoquic and courser write it.
//!
//! The spellings were read in the sources of these stacks; the text is written here. (s2n-quic writes
//! no qlog: its issue 1199.)

use courser_trace::Stats;
use courser_trace::explain::{Cause, Explanation};
use courser_trace::qlog::{Reader, Summary};
use serde_json::{Value, json};

/// A stack, and the draft that it follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stack {
    Quiche,
    QuicGo,
    Ngtcp2,
    Aioquic,
    Picoquic,
    Courser,
}

const STACKS: [Stack; 6] = [
    Stack::Quiche,
    Stack::QuicGo,
    Stack::Ngtcp2,
    Stack::Aioquic,
    Stack::Picoquic,
    Stack::Courser,
];

/// An event of the transfer. Times are milliseconds.
enum Step {
    /// The limits of the peer.
    Limits { max_data: u64 },
    /// A packet with stream data.
    Sent { number: u64, offset: u64, len: u64 },
    /// A packet with an acknowledgement and a limit.
    Received {
        number: u64,
        acked: u64,
        max_data: u64,
    },
    /// Metrics of recovery.
    Metrics {
        window: u64,
        in_flight: u64,
        rtt: f64,
    },
    /// A packet declared lost.
    Lost { number: u64 },
}

/// A client sends 20 windows of 2400 bytes, and waits 50 ms for credit each time.
fn transfer() -> Vec<(f64, Step)> {
    let mut steps = vec![(0.0, Step::Limits { max_data: 2400 })];
    for round in 0..20u64 {
        let (start, offset) = (round as f64 * 50.0, round * 2400);
        for part in 0..2 {
            let (number, offset) = (round * 2 + part, offset + part * 1200);
            steps.push((
                start,
                Step::Sent {
                    number,
                    offset,
                    len: 1200,
                },
            ));
        }
        steps.push((
            start,
            Step::Metrics {
                window: 100_000,
                in_flight: 2500,
                rtt: 50.0,
            },
        ));
        let (number, acked, max_data) = (round, round * 2 + 1, offset + 4800);
        steps.push((
            start + 50.0,
            Step::Received {
                number,
                acked,
                max_data,
            },
        ));
    }
    steps.push((1000.0, Step::Lost { number: 3 }));
    steps
}

fn header(stack: Stack, packet_type: &str, number: u64) -> Value {
    match stack {
        Stack::Picoquic => json!({"packet_size": 1250, "packet_number": number}),
        _ => json!({"packet_type": packet_type, "packet_number": number}),
    }
}

fn packet(stack: Stack, number: u64, frames: &Value) -> Value {
    let header = header(stack, "1RTT", number);
    match stack {
        Stack::Picoquic => json!({"packet_type": "1RTT", "header": header, "frames": frames}),
        _ => json!({"header": header, "raw": {"length": 1250}, "frames": frames}),
    }
}

fn stream(stack: Stack, offset: u64, len: u64) -> Value {
    let mut frame = json!({"frame_type": "stream", "stream_id": 0, "offset": offset});
    match stack {
        Stack::Courser => frame["raw"] = json!({"length": len}),
        Stack::Picoquic => {
            frame["id"] = 0.into();
            frame["length"] = len.into();
            frame["fin"] = false.into();
        }
        _ => frame["length"] = len.into(),
    }
    frame
}

fn metrics(stack: Stack, window: u64, in_flight: u64, rtt: f64) -> Value {
    let key = match stack {
        Stack::Aioquic | Stack::Picoquic => "cwnd",
        _ => "congestion_window",
    };
    let mut data = json!({
        "bytes_in_flight": in_flight,
        "latest_rtt": rtt,
        "min_rtt": rtt,
        "smoothed_rtt": rtt,
    });
    data[key] = window.into();
    if stack == Stack::Quiche {
        data["ssthresh"] = u64::MAX.into();
    }
    data
}

/// Returns the category, the name and the data of an event.
fn event(stack: Stack, step: &Step) -> (&'static str, &'static str, Value) {
    let scale = if stack == Stack::Picoquic {
        1000.0
    } else {
        1.0
    };
    match *step {
        Step::Limits { max_data } => {
            let end = match stack {
                Stack::Courser => "initiator",
                _ => "owner",
            };
            let mut data = json!({
                "initial_max_data": max_data,
                "initial_max_stream_data_bidi_remote": 1_000_000,
            });
            data[end] = "remote".into();
            ("transport", "parameters_set", data)
        }
        Step::Sent {
            number,
            offset,
            len,
        } => {
            let frames = json!([stream(stack, offset, len)]);
            ("transport", "packet_sent", packet(stack, number, &frames))
        }
        Step::Received {
            number,
            acked,
            max_data,
        } => {
            let delay = match stack {
                Stack::QuicGo => json!(null),
                _ => json!(1.0 * scale),
            };
            let frames = json!([
                {"frame_type": "ack", "ack_delay": delay, "acked_ranges": [[0, acked]]},
                {"frame_type": "max_data", "maximum": max_data},
            ]);
            (
                "transport",
                "packet_received",
                packet(stack, number, &frames),
            )
        }
        Step::Metrics {
            window,
            in_flight,
            rtt,
        } => {
            let data = metrics(stack, window, in_flight, rtt * scale);
            ("recovery", "metrics_updated", data)
        }
        Step::Lost { number } => {
            let data = match stack {
                Stack::Aioquic => json!({"type": "1RTT", "packet_number": number}),
                _ => json!({"header": header(stack, "1RTT", number), "trigger": "time_threshold"}),
            };
            ("recovery", "packet_lost", data)
        }
    }
}

/// Returns the trace as a stack writes it.
fn trace(stack: Stack) -> String {
    let steps = transfer();
    let events = steps.iter().map(|(time, step)| {
        let (category, name, data) = event(stack, step);
        let name = match (stack, category, name) {
            (Stack::Courser, "recovery", "metrics_updated") => {
                "quic:recovery_metrics_updated".to_owned()
            }
            (Stack::Courser, _, name) => format!("quic:{name}"),
            _ => format!("{category}:{name}"),
        };
        match stack {
            Stack::Picoquic => {
                let bare = name.split_once(':').map_or("", |it| it.1);
                json!([time * 1000.0, category, bare, data])
            }
            // Seconds since 1970, in milliseconds.
            Stack::Aioquic => json!({"time": 1.6e12 + time, "name": name, "data": data}),
            Stack::Ngtcp2 => json!({"time": *time as u64, "name": name, "data": data}),
            _ => json!({"time": time, "name": name, "data": data}),
        }
    });
    let client = json!({"name": "test", "type": "client"});
    match stack {
        Stack::Aioquic => json!({
            "qlog_format": "JSON", "qlog_version": "0.3",
            "traces": [{"common_fields": {"ODCID": "ab"}, "events": events.collect::<Vec<_>>(), "vantage_point": client}],
        })
        .to_string(),
        Stack::Picoquic => json!({
            "qlog_version": "draft-00",
            "traces": [{
                "vantage_point": client,
                "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"],
                "configuration": {"time_units": "us"},
                "common_fields": {"protocol_type": "QUIC_HTTP3", "group_id": "ab"},
                "events": events.collect::<Vec<_>>(),
            }],
        })
        .to_string(),
        _ => {
            let common = json!({"group_id": "ab", "time_format": "relative"});
            let head = json!({
                "qlog_version": "0.3", "qlog_format": "JSON-SEQ",
                "trace": {"vantage_point": client, "common_fields": common},
            });
            let records = events.map(|event| format!("\u{1e}{event}\n"));
            format!("\u{1e}{head}\n{}", records.collect::<String>())
        }
    }
}

#[test]
fn all_stacks_are_read_alike() {
    for stack in STACKS {
        let text = trace(stack);
        let open = || Reader::new(text.as_bytes()).expect("a trace");
        let mut reader = open();
        let summary = Summary::of(&mut reader);
        let about = reader.about();
        assert_eq!(about.vantage_point.as_deref(), Some("client"), "{stack:?}");
        assert_eq!(about.group_id.as_deref(), Some("ab"), "{stack:?}");
        assert_eq!(
            summary.unreadable_lines, 0,
            "{stack:?}: {:?}",
            summary.unreadable
        );
        assert_eq!(
            (summary.sent.packets, summary.received.packets),
            (40, 20),
            "{stack:?}"
        );
        assert_eq!(summary.sent.bytes, 50_000, "{stack:?}");
        assert_eq!(summary.stream_bytes_sent, 48_000, "{stack:?}");
        assert_eq!(summary.lost.packets, 1, "{stack:?}");
        assert_eq!(summary.congestion_window_max, Some(100_000), "{stack:?}");
        assert!(
            (summary.duration - 1.0).abs() < 1e-6,
            "{stack:?}: {}",
            summary.duration
        );
        let rtt = summary.rtt.expect("samples").median;
        assert!((rtt - 0.05).abs() < 1e-9, "{stack:?}: {rtt}");
        let stats = Stats::of(&mut open());
        assert_eq!(stats.received.frames["max_data"], 20, "{stack:?}");
        let delay = stats.ack_delay.map(|it| it.p50);
        let expected = (stack != Stack::QuicGo).then_some(0.001);
        assert_eq!(delay, expected, "{stack:?}");
        let explanation = Explanation::of(open());
        let first = explanation.first_cause();
        assert_eq!(first, Some(Cause::ConnectionFlowControl), "{stack:?}");
        assert!(explanation.findings[0].share > 0.9, "{stack:?}");
    }
}
