//! Reads frames.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::frame::{Frame, Span};
use super::values::{number, size, text, uint};
use super::{Closed, Packet};

/// Adds a frame to its packet. `per_second` is the number of time units in a second.
pub(super) fn read(frame: &Value, per_second: f64, packet: &mut Packet) {
    let name = text(frame, "frame_type").unwrap_or_else(|| "unknown".to_owned());
    let stream = uint(frame, "stream_id");
    let of = |key| uint(frame, key).unwrap_or(0);
    let read = match (name.as_str(), stream) {
        ("ack", _) => {
            let ranges = frame.get("acked_ranges").and_then(Value::as_array);
            let ranges = ranges.into_iter().flatten().filter_map(range);
            packet.acked.extend(ranges);
            Frame::Ack {
                delay: delay(frame).map(|delay| delay / per_second),
                ecn: uint(frame, "ce").map(|ce| [of("ect0"), of("ect1"), ce]),
            }
        }
        ("padding", _) => Frame::Padding,
        ("crypto", _) => Frame::Crypto { len: len(frame) },
        ("datagram", _) => Frame::Datagram { len: len(frame) },
        ("stream", Some(stream)) => {
            let (offset, len) = (of("offset"), len(frame));
            let span = Span {
                stream,
                offset,
                len,
            };
            packet.streams.push(span);
            let fin = frame.get("fin").and_then(Value::as_bool);
            let fin = fin.unwrap_or(false);
            Frame::Stream { span, fin }
        }
        ("max_data", _) => Frame::MaxData {
            maximum: of("maximum"),
        },
        ("max_stream_data", Some(stream)) => Frame::MaxStreamData {
            stream,
            maximum: of("maximum"),
        },
        ("max_streams", _) => Frame::MaxStreams {
            is_bidirectional: text(frame, "stream_type").as_deref() != Some("unidirectional"),
            maximum: of("maximum"),
        },
        ("data_blocked", _) => Frame::DataBlocked { limit: of("limit") },
        ("stream_data_blocked", Some(stream)) => Frame::StreamDataBlocked {
            stream,
            limit: of("limit"),
        },
        ("streams_blocked", _) => Frame::StreamsBlocked { limit: of("limit") },
        ("reset_stream", Some(stream)) => Frame::ResetStream { stream },
        ("path_challenge", _) => Frame::PathChallenge,
        ("handshake_done", _) => Frame::HandshakeDone,
        ("connection_close", _) => Frame::ConnectionClose(closed(frame)),
        _ => Frame::Other { name },
    };
    let is_silent = matches!(
        read,
        Frame::Ack { .. } | Frame::Padding | Frame::ConnectionClose(_)
    );
    packet.ack_eliciting |= !is_silent;
    packet.frames.push(read);
}

/// Reads the error of a frame that closes the connection. Up to quic-events-08, `error_code` is a name or a number, and
/// `raw_error_code` the number. Since then, `error` is the name.
fn closed(frame: &Value) -> Closed {
    let code = uint(frame, "raw_error_code").or_else(|| uint(frame, "error_code"));
    let name = text(frame, "error").or_else(|| text(frame, "error_code"));
    let name = name.filter(|name| name != "unknown");
    let space = text(frame, "error_space").unwrap_or_default();
    Closed {
        initiator: None,
        error: name.or_else(|| code.map(|code| code.to_string())),
        code,
        is_application: space.starts_with("application"),
        reason: text(frame, "reason").filter(|reason| !reason.is_empty()),
        trigger: None,
    }
}

/// Reads the delay of an acknowledgement, in the unit of the trace. Some writers use strings.
fn delay(frame: &Value) -> Option<f64> {
    let delay = match frame.get("ack_delay")? {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    delay.filter(|delay| delay.is_finite() && *delay >= 0.0)
}

/// Returns the length of a frame: `length` up to quic-events-11, `raw.length` since.
fn len(frame: &Value) -> u64 {
    let raw = frame.get("raw").unwrap_or(&Value::Null);
    size(frame, "length")
        .or_else(|| size(raw, "payload_length"))
        .or_else(|| size(raw, "length"))
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
