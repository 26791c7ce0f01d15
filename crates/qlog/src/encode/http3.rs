//! Encodes events of HTTP/3: draft-ietf-quic-qlog-h3-events-13.

use std::fmt::Write as _;

use courser_telemetry::{
    Field, FieldSection, Http3Frame, Http3Parameters, Http3Record, Http3StreamType, SessionChange,
};
use courser_wire::varint_len;

use super::events::Events;
use crate::json::{Object, object};
use crate::schema::{self, Dialect};

pub(super) fn record(events: &mut Events<'_>, record: &Http3Record, dialect: Dialect) {
    match record {
        Http3Record::ParametersSet {
            by_peer,
            parameters,
        } => events.event("http3:parameters_set", |data| {
            data.constant("initiator", schema::initiator(*by_peer));
            write_parameters(data, parameters);
            if !by_peer {
                // Requests leave and are answered before SETTINGS have arrived.
                data.boolean("waits_for_settings", false);
            }
        }),
        Http3Record::ParametersRestored { parameters } => {
            events.event("http3:parameters_restored", |data| {
                write_parameters(data, parameters);
            });
        }
        Http3Record::StreamTypeSet {
            by_peer,
            stream,
            stream_type,
        } => events.event("http3:stream_type_set", |data| {
            data.constant("initiator", schema::initiator(*by_peer))
                .uint("stream_id", *stream);
            write_stream_type(data, *stream_type);
        }),
        Http3Record::PriorityUpdated {
            stream,
            new,
            by_peer,
        } => events.event("http3:priority_updated", |data| {
            data.uint("stream_id", *stream).text("new", new);
            let trigger = if *by_peer {
                "client_signal_received"
            } else {
                "local"
            };
            data.constant("trigger", trigger)
                .constant("reason", "client_signal_only");
        }),
        Http3Record::FrameCreated { stream, frame } => {
            events.event("http3:frame_created", |data| {
                data.uint("stream_id", *stream);
                data.object("frame", |out| write_frame(out, frame, true, dialect));
            });
        }
        Http3Record::FrameParsed { stream, frame } => {
            events.event("http3:frame_parsed", |data| {
                data.uint("stream_id", *stream);
                data.object("frame", |out| write_frame(out, frame, false, dialect));
            });
        }
        Http3Record::DatagramCreated { stream, len } => {
            events.event("http3:datagram_created", |data| {
                write_datagram(data, *stream, *len);
            });
        }
        Http3Record::DatagramParsed { stream, len } => {
            events.event("http3:datagram_parsed", |data| {
                write_datagram(data, *stream, *len);
            });
        }
        Http3Record::SessionUpdated { session, change } => write_session(events, *session, change),
        // A kind of record newer than this encoder.
        _ => {}
    }
}

/// Writes the events of sessions of WebTransport, which no draft defines.
fn write_session(events: &mut Events<'_>, session: u64, change: &SessionChange) {
    match change {
        SessionChange::Opened { dialect, protocol } => {
            events.event("webtransport:session_opened", |data| {
                data.uint("session_id", session).text("dialect", dialect);
                if let Some(protocol) = protocol {
                    data.text("protocol", protocol);
                }
            });
        }
        SessionChange::Refused { reason } => {
            events.event("webtransport:session_refused", |data| {
                data.uint("session_id", session).text("reason", reason);
            });
        }
        SessionChange::Draining { by_peer } => {
            events.event("webtransport:session_draining", |data| {
                data.constant("initiator", schema::initiator(*by_peer))
                    .uint("session_id", session);
            });
        }
        SessionChange::Closed {
            by_peer,
            code,
            reason,
            streams,
            datagrams_dropped,
        } => events.event("webtransport:session_closed", |data| {
            if let Some(by_peer) = by_peer {
                data.constant("initiator", schema::initiator(*by_peer));
            }
            data.uint("session_id", session);
            if let Some(code) = code {
                data.uint("application_code", (*code).into());
            }
            data.text("reason", reason)
                .uint("streams", *streams)
                .uint("datagrams_dropped", *datagrams_dropped);
        }),
        _ => {}
    }
}

fn write_parameters(data: &mut Object<'_>, parameters: &Http3Parameters) {
    if let Some(size) = parameters.max_field_section_size {
        data.uint("max_field_section_size", size);
    }
    data.uint("max_table_capacity", parameters.max_table_capacity)
        .uint("blocked_streams_count", parameters.blocked_streams)
        .uint("extended_connect", parameters.extended_connect.into())
        .uint("h3_datagram", parameters.datagrams.into());
}

fn write_stream_type(data: &mut Object<'_>, stream_type: Http3StreamType) {
    let name = match stream_type {
        Http3StreamType::Request => "request",
        Http3StreamType::Control => "control",
        Http3StreamType::Push => "push",
        Http3StreamType::QpackEncoder => "qpack_encode",
        Http3StreamType::QpackDecoder => "qpack_decode",
        Http3StreamType::Other(value) if is_reserved(value) => "reserved",
        Http3StreamType::Other(_) => "unknown",
    };
    data.constant("stream_type", name);
    if let Http3StreamType::Other(value) = stream_type {
        data.uint("stream_type_bytes", value);
    }
}

fn write_datagram(data: &mut Object<'_>, stream: u64, len: usize) {
    let quarter = stream / 4;
    data.uint("quarter_stream_id", quarter);
    data.object("raw", |raw| {
        raw.size("length", varint_len(quarter) + len)
            .size("payload_length", len);
    });
}

fn write_frame(out: &mut Object<'_>, frame: &Http3Frame, is_created: bool, dialect: Dialect) {
    let raw = |out: &mut Object<'_>, frame_type: u64, len: u64| {
        out.object("raw", |raw| {
            if is_created {
                // The peer may have chosen a longer header than necessary.
                let header = varint_len(frame_type) + varint_len(len);
                raw.uint("length", header as u64 + len);
            }
            raw.uint("payload_length", len);
        });
    };
    match frame {
        Http3Frame::Data { len } => {
            out.constant("frame_type", "data");
            raw(out, 0x00, *len);
        }
        Http3Frame::Headers { len, section } => {
            out.constant("frame_type", "headers");
            write_section(out, section);
            raw(out, 0x01, *len);
        }
        Http3Frame::CancelPush { push } => {
            out.constant("frame_type", "cancel_push")
                .uint("push_id", *push);
        }
        Http3Frame::Settings { settings } => {
            out.constant("frame_type", "settings");
            out.array("settings", settings, |out, &(id, value)| {
                object(out, |setting| write_setting(setting, id, value));
            });
        }
        Http3Frame::GoAway { id } => {
            out.constant("frame_type", "goaway").uint("id", *id);
        }
        Http3Frame::MaxPushId { push } => {
            out.constant("frame_type", "max_push_id")
                .uint("push_id", *push);
        }
        Http3Frame::PriorityUpdate { stream, value } => {
            out.constant("frame_type", "priority_update")
                .uint("stream_id", *stream)
                .text("priority_field_value", value);
        }
        Http3Frame::Origin { len, origins } if dialect == Dialect::Draft13 => {
            out.constant("frame_type", "origin");
            // The origins are not part of the record.
            out.array("origin_entries", [(); 0], |_, ()| {});
            out.size("origin_count", *origins);
            raw(out, 0x0c, *len);
        }
        Http3Frame::Origin { len, .. } => {
            out.constant("frame_type", "unknown")
                .uint("frame_type_bytes", 0x0c);
            raw(out, 0x0c, *len);
        }
        Http3Frame::Other { frame_type, len } => {
            let is_reserved = is_reserved(*frame_type);
            let name = if is_reserved { "reserved" } else { "unknown" };
            out.constant("frame_type", name)
                .uint("frame_type_bytes", *frame_type);
            raw(out, *frame_type, *len);
        }
        // A kind of frame newer than this encoder. The field is required.
        _ => {
            out.constant("frame_type", "unknown")
                .uint("frame_type_bytes", u64::MAX);
        }
    }
}

fn write_setting(out: &mut Object<'_>, id: u64, value: u64) {
    let name = match id {
        0x01 => "settings_qpack_max_table_capacity",
        0x06 => "settings_max_field_section_size",
        0x07 => "settings_qpack_blocked_streams",
        0x08 => "settings_enable_connect_protocol",
        0x33 => "settings_h3_datagram",
        _ if is_reserved(id) => "reserved",
        _ => "unknown",
    };
    out.constant("name", name);
    if name == "unknown" || name == "reserved" {
        out.uint("name_bytes", id);
    }
    out.uint("value", value);
}

fn write_section(out: &mut Object<'_>, section: &FieldSection) {
    out.array("headers", &section.fields, |out, field| {
        object(out, |line| write_field(line, field));
    });
    if section.omitted > 0 {
        out.uint("headers_omitted", section.omitted);
    }
}

/// Writes name and value of a field line. Bytes that messages must not have there are written as
/// hexadecimal numbers (h3-events §5.2.2).
pub(super) fn write_field(line: &mut Object<'_>, field: &Field) {
    write_text(line, ["name", "name_bytes"], &field.name);
    if field.name.len() < field.name_len {
        line.size("name_length", field.name_len);
    }
    match &field.value {
        Some(value) => write_text(line, ["value", "value_bytes"], value),
        None => {
            line.constant("value", REDACTED);
        }
    }
    if let Some(value) = &field.value
        && value.len() < field.value_len
    {
        line.size("value_length", field.value_len);
    }
}

fn write_text(line: &mut Object<'_>, [text, bytes]: [&'static str; 2], value: &[u8]) {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    match std::str::from_utf8(value) {
        Ok(value) if value.as_bytes().iter().all(is_text) => line.text(text, value),
        _ => {
            let mut hex = String::with_capacity(2 * value.len());
            for byte in value {
                let _ = write!(hex, "{byte:02x}");
            }
            line.text(bytes, &hex)
        }
    };
}

/// Returns true for numbers that have no meaning, `0x1f * n + 0x21` (RFC 9114 §7.2.8).
const fn is_reserved(value: u64) -> bool {
    value >= 0x21 && (value - 0x21).is_multiple_of(0x1f)
}

/// The value of fields that are hidden, as `courser get -v` prints it.
const REDACTED: &str = "[redacted]";

#[cfg(test)]
mod tests;
