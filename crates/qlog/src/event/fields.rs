//! Reads the fields of events. A field that moved between drafts is looked up in its newest place
//! first.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::{Closed, EventKind, Lost, Metrics, Packet, Span, space_of};

/// Reads an event by its name. quic-events-08 merged all categories into one, `quic`.
pub(super) fn kind(name: &str, data: &Value) -> EventKind {
    let (category, bare) = name.split_once(':').unwrap_or(("", name));
    let is_of_quic = matches!(
        category,
        "quic" | "transport" | "recovery" | "connectivity" | "security" | "courser" | ""
    );
    let other = || EventKind::Other {
        name: bare.to_owned(),
    };
    if !is_of_quic {
        return other();
    }
    match bare {
        "packet_sent" => EventKind::PacketSent(packet(data)),
        "packet_received" => EventKind::PacketReceived(packet(data)),
        "packet_dropped" => EventKind::PacketDropped {
            trigger: text(data, "trigger"),
        },
        "packet_lost" => EventKind::PacketLost(lost(data)),
        "spurious_loss" => EventKind::SpuriousLoss,
        "records_dropped" if category == "courser" => EventKind::RecordsDropped {
            records: uint(data, "records").unwrap_or(1),
        },
        "recovery_metrics_updated" | "metrics_updated" => EventKind::Metrics(metrics(data)),
        "congestion_state_updated" => {
            text(data, "new").map_or_else(other, |new| EventKind::CongestionState { new })
        }
        "connection_state_updated" => text(data, "new")
            .map_or_else(other, |new| EventKind::ConnectionState { new: state(new) }),
        "connection_closed" => EventKind::Closed(closed(data)),
        "connection_data_blocked_updated" => {
            let is_blocked = data.get("new").and_then(Value::as_str) == Some("blocked");
            EventKind::Limited {
                reason: text(data, "reason").filter(|_| is_blocked),
            }
        }
        "timer_updated" | "loss_timer_updated" => {
            let is = |key, value| data.get(key).and_then(Value::as_str) == Some(value);
            if is("event_type", "expired") && is("timer_type", "pto") {
                EventKind::ProbeTimeout
            } else {
                other()
            }
        }
        "mtu_updated" => match uint(data, "new").or_else(|| uint(data, "mtu")) {
            Some(new) => EventKind::Mtu { new },
            None => other(),
        },
        _ => other(),
    }
}

/// Returns the current spelling of a state: older drafts ended this name differently.
fn state(name: String) -> String {
    match name.as_str() {
        "handshake_completed" => "handshake_complete".to_owned(),
        _ => name,
    }
}

fn packet(data: &Value) -> Packet {
    let header = data.get("header").unwrap_or(&Value::Null);
    let raw = data.get("raw").unwrap_or(&Value::Null);
    // Before main-schema-02 the type stood beside the header, and the size inside it.
    let packet_type = text(header, "packet_type").or_else(|| text(data, "packet_type"));
    let len = uint(raw, "length").or_else(|| uint(header, "packet_size"));
    let mut packet = Packet {
        packet_type: packet_type.unwrap_or_else(|| "unknown".to_owned()),
        number: uint(header, "packet_number").or_else(|| uint(data, "packet_number")),
        len: len.unwrap_or(0),
        streams: Vec::new(),
        acked: Vec::new(),
        ack_eliciting: false,
    };
    let frames = data.get("frames").and_then(Value::as_array);
    for frame in frames.into_iter().flatten() {
        read_frame(frame, &mut packet);
    }
    packet
}

fn read_frame(frame: &Value, packet: &mut Packet) {
    let frame_type = frame.get("frame_type").and_then(Value::as_str);
    match frame_type {
        Some("ack") => {
            let ranges = frame.get("acked_ranges").and_then(Value::as_array);
            packet
                .acked
                .extend(ranges.into_iter().flatten().filter_map(range));
        }
        Some("padding" | "connection_close") => {}
        Some("stream") => {
            packet.ack_eliciting = true;
            if let Some(stream) = uint(frame, "stream_id") {
                packet.streams.push(Span {
                    stream,
                    offset: uint(frame, "offset").unwrap_or(0),
                    len: frame_len(frame),
                });
            }
        }
        _ => packet.ack_eliciting = true,
    }
}

/// Returns the length of a frame: `length` up to quic-events-11, `raw.length` since.
fn frame_len(frame: &Value) -> u64 {
    let raw = frame.get("raw").unwrap_or(&Value::Null);
    uint(frame, "length")
        .or_else(|| uint(raw, "payload_length"))
        .or_else(|| uint(raw, "length"))
        .unwrap_or(0)
}

/// Reads a range of packet numbers: `[3]` or `[3,5]`, in old traces also `3` or `"3"`.
fn range(value: &Value) -> Option<RangeInclusive<u64>> {
    let Value::Array(ends) = value else {
        let only = number(value)?;
        return Some(only..=only);
    };
    let first = number(ends.first()?)?;
    let last = ends.get(1).map_or(Some(first), number)?;
    (first <= last).then_some(first..=last)
}

fn lost(data: &Value) -> Lost {
    let packet = packet(data);
    Lost {
        space: space_of(&packet.packet_type),
        number: packet.number,
        len: Some(packet.len).filter(|&len| len > 0),
        trigger: text(data, "trigger"),
    }
}

fn metrics(data: &Value) -> Metrics {
    // The trace has milliseconds. Negative and infinite values are errors of the writer.
    let seconds = |key| {
        let millis = data.get(key).and_then(Value::as_f64);
        millis
            .filter(|millis| millis.is_finite() && *millis >= 0.0)
            .map(|millis| millis / 1e3)
    };
    Metrics {
        min_rtt: seconds("min_rtt"),
        smoothed_rtt: seconds("smoothed_rtt"),
        latest_rtt: seconds("latest_rtt"),
        congestion_window: uint(data, "congestion_window").or_else(|| uint(data, "cwnd")),
        bytes_in_flight: uint(data, "bytes_in_flight"),
        // quiche writes 2^64 - 1 for "none yet".
        ssthresh: uint(data, "ssthresh").filter(|&ssthresh| ssthresh < INFINITE),
        pacing_rate: uint(data, "pacing_rate"),
        pto_count: uint(data, "pto_count"),
        lost_packets: data
            .get("cf_lost_packets")
            .and_then(|lost| uint(lost, "total")),
    }
}

fn closed(data: &Value) -> Closed {
    let code = || {
        let keys = ["error_code", "connection_code", "application_code"];
        let code = keys.into_iter().find_map(|key| data.get(key))?;
        number(code)
            .map(|code| code.to_string())
            .or_else(|| Some(code.as_str()?.to_owned()))
    };
    let named = text(data, "connection_error").or_else(|| text(data, "application_error"));
    let error = match named {
        Some(name) if name != "unknown" => Some(name),
        unknown => code().or(unknown),
    };
    Closed {
        initiator: text(data, "initiator").or_else(|| text(data, "owner")),
        error,
        reason: text(data, "reason").filter(|reason| !reason.is_empty()),
        trigger: text(data, "trigger"),
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn uint(value: &Value, key: &str) -> Option<u64> {
    number(value.get(key)?)
}

/// Reads a whole number. JavaScript has no 64-bit integers, so some writers use strings
/// (main-schema §11.3), and some add a fraction.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // The cast truncates fractions and saturates.
            (float >= 0.0).then_some(float as u64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Thresholds from here on are infinite: no window is that large.
const INFINITE: u64 = 1 << 62;
