//! Reads the fields of events. A field that moved between drafts is looked up in its newest place
//! first.

use serde_json::Value;

use super::values::{MAX_NUMBER, number, size, text, uint};
use super::{Closed, EventKind, Lost, Metrics, Packet, Parameters, frames, space_of};

/// Reads an event by its name. quic-events-08 merged all categories into one, `quic`. `per_second` is
/// the number of time units in a second.
pub(super) fn kind(name: &str, data: &Value, per_second: f64) -> EventKind {
    let (category, bare) = name.split_once(':').unwrap_or(("", name));
    let is_of_quic = matches!(
        category,
        "quic" | "transport" | "recovery" | "connectivity" | "security" | "courser" | ""
    );
    let other = || EventKind::Other {
        name: bare.to_owned(),
    };
    if !is_of_quic {
        return of_application(category, bare, data).unwrap_or_else(other);
    }
    match bare {
        "packet_sent" => EventKind::PacketSent(packet(data, per_second)),
        "packet_received" => EventKind::PacketReceived(packet(data, per_second)),
        "packet_dropped" => EventKind::PacketDropped {
            trigger: text(data, "trigger"),
            len: data.get("raw").and_then(|raw| size(raw, "length")),
        },
        "packet_lost" => EventKind::PacketLost(lost(data)),
        "spurious_loss" => EventKind::SpuriousLoss,
        "records_dropped" if category == "courser" => EventKind::RecordsDropped {
            records: uint(data, "records").unwrap_or(1),
        },
        "recovery_metrics_updated" | "metrics_updated" => {
            EventKind::Metrics(metrics(data, per_second))
        }
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
        "recovery_parameters_set" => recovery_parameters(data),
        "parameters_set" if category == "recovery" => recovery_parameters(data),
        "parameters_set" => EventKind::Parameters(parameters(data)),
        "ecn_state_updated" => {
            text(data, "new").map_or_else(other, |new| EventKind::EcnState { new })
        }
        "path_feature_updated" => path_feature(data).unwrap_or_else(other),
        "migration_state_updated" => {
            text(data, "new").map_or_else(other, |new| EventKind::PathState { new })
        }
        "alpn_information" => {
            let chosen = data.get("chosen_alpn");
            let name = chosen.and_then(|chosen| text(chosen, "string_value"));
            // Before quic-events-05 it was a string.
            let name = name.or_else(|| text(data, "chosen_alpn"));
            name.map_or_else(other, |name| EventKind::Protocol { name })
        }
        "mtu_updated" => match size(data, "new").or_else(|| size(data, "mtu")) {
            Some(new) => EventKind::Mtu { new },
            None => other(),
        },
        _ => other(),
    }
}

fn path_feature(data: &Value) -> Option<EventKind> {
    Some(EventKind::PathFeature {
        feature: text(data, "feature")?,
        is_used: text(data, "new")? == "used",
    })
}

/// Reads an event of HTTP/3 or QPACK.
fn of_application(category: &str, bare: &str, data: &Value) -> Option<EventKind> {
    match (category, bare) {
        ("http3" | "h3" | "http", "frame_created" | "frame_parsed") => {
            let frame_type = text(data.get("frame")?, "frame_type")?;
            Some(EventKind::Http3Frame {
                is_received: bare == "frame_parsed",
                frame_type,
            })
        }
        ("qpack", "stream_state_updated") => Some(EventKind::QpackStream {
            stream: uint(data, "stream_id")?,
            is_blocked: text(data, "state")? == "blocked",
        }),
        _ => None,
    }
}

/// Returns the current spelling of a state: older drafts ended this name differently.
fn state(name: String) -> String {
    match name.as_str() {
        "handshake_completed" => "handshake_complete".to_owned(),
        _ => name,
    }
}

fn packet(data: &Value, per_second: f64) -> Packet {
    let header = data.get("header").unwrap_or(&Value::Null);
    let raw = data.get("raw").unwrap_or(&Value::Null);
    // Before main-schema-02 the type was outside the header, and the size inside it. aioquic calls the type of lost
    // packets `type`.
    let type_outside = || text(data, "packet_type").or_else(|| text(data, "type"));
    let packet_type = text(header, "packet_type").or_else(type_outside);
    let len = size(raw, "length").or_else(|| size(header, "packet_size"));
    let mut packet = Packet {
        packet_type: packet_type.unwrap_or_else(|| "unknown".to_owned()),
        number: uint(header, "packet_number").or_else(|| uint(data, "packet_number")),
        len: len.unwrap_or(0),
        streams: Vec::new(),
        acked: Vec::new(),
        frames: Vec::new(),
        ack_eliciting: false,
    };
    let list = data.get("frames").and_then(Value::as_array);
    for frame in list.into_iter().flatten() {
        frames::read(frame, per_second, &mut packet);
    }
    packet
}

fn lost(data: &Value) -> Lost {
    let packet = packet(data, 1e3);
    Lost {
        space: space_of(&packet.packet_type),
        number: packet.number,
        len: Some(packet.len).filter(|&len| len > 0),
        trigger: text(data, "trigger"),
        is_mtu_probe: data
            .get("is_mtu_probe_packet")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    }
}

/// Reads a time in seconds. Negative and infinite times are errors of the writer, and left out.
fn seconds(data: &Value, key: &str, per_second: f64) -> Option<f64> {
    let time = data.get(key).and_then(Value::as_f64);
    time.filter(|time| time.is_finite() && *time >= 0.0)
        .map(|time| time / per_second)
}

fn recovery_parameters(data: &Value) -> EventKind {
    EventKind::RecoveryParameters {
        controller: text(data, "congestion_controller"),
    }
}

/// Reads transport parameters. Up to quic-events-08, `initiator` was named `owner`. Times are in
/// milliseconds, as on the wire, whatever the unit of the trace.
fn parameters(data: &Value) -> Parameters {
    let end = text(data, "initiator").or_else(|| text(data, "owner"));
    Parameters {
        is_peers: end.as_deref() == Some("remote"),
        max_idle_timeout: seconds(data, "max_idle_timeout", 1e3),
        max_ack_delay: seconds(data, "max_ack_delay", 1e3),
        max_udp_payload_size: size(data, "max_udp_payload_size"),
        initial_max_data: uint(data, "initial_max_data"),
        initial_max_stream_data_bidi_local: uint(data, "initial_max_stream_data_bidi_local"),
        initial_max_stream_data_bidi_remote: uint(data, "initial_max_stream_data_bidi_remote"),
        initial_max_stream_data_uni: uint(data, "initial_max_stream_data_uni"),
        initial_max_streams_bidi: uint(data, "initial_max_streams_bidi"),
        initial_max_streams_uni: uint(data, "initial_max_streams_uni"),
    }
}

fn metrics(data: &Value, per_second: f64) -> Metrics {
    let seconds = |key| seconds(data, key, per_second);
    Metrics {
        min_rtt: seconds("min_rtt"),
        smoothed_rtt: seconds("smoothed_rtt"),
        latest_rtt: seconds("latest_rtt"),
        congestion_window: uint(data, "congestion_window").or_else(|| uint(data, "cwnd")),
        bytes_in_flight: uint(data, "bytes_in_flight"),
        // quiche writes 2^64 - 1 for "none yet": no window is that large.
        ssthresh: uint(data, "ssthresh").filter(|&ssthresh| ssthresh < MAX_NUMBER),
        pacing_rate: uint(data, "pacing_rate"),
        pto_count: uint(data, "pto_count"),
        lost_packets: data
            .get("cf_lost_packets")
            .and_then(|lost| uint(lost, "total")),
    }
}

fn closed(data: &Value) -> Closed {
    let keys = ["error_code", "connection_code", "application_code"];
    let found = keys.into_iter().find_map(|key| data.get(key));
    let code = || {
        let code = found?;
        number(code)
            .map(|code| code.to_string())
            .or_else(|| Some(code.as_str()?.to_owned()))
    };
    let is_application = ["application_error", "application_code"]
        .into_iter()
        .any(|key| data.get(key).is_some());
    let named = text(data, "connection_error").or_else(|| text(data, "application_error"));
    let error = match named {
        Some(name) if name != "unknown" => Some(name),
        unknown => code().or(unknown),
    };
    Closed {
        initiator: text(data, "initiator").or_else(|| text(data, "owner")),
        error,
        code: found.and_then(number),
        is_application: is_application
            || data.get("trigger").and_then(Value::as_str) == Some("application"),
        reason: text(data, "reason").filter(|reason| !reason.is_empty()),
        trigger: text(data, "trigger"),
    }
}
