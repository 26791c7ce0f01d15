//! Encodes frames: quic-events §8.13.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new frame must not be written without its fields"
)]

use courser_telemetry::FrameRecord;
use courser_wire::frame::FrameType;
use courser_wire::{StreamId, TransportErrorCode};

use super::acked::acked;
use super::{addresses, multipath};
use crate::json::{Object, object};
use crate::schema::{self, Dialect};

pub(super) fn write_frames(data: &mut Object<'_>, frames: &[FrameRecord], dialect: Dialect) {
    data.array("frames", frames, |out, frame| {
        object(out, |o| write_frame(o, frame, dialect));
    });
}

fn write_frame(o: &mut Object<'_>, frame: &FrameRecord, dialect: Dialect) {
    match frame.frame_type().kind() {
        Some(kind) if has_name(frame, dialect) => {
            o.constant("frame_type", kind.qlog_name());
            write_fields(o, frame, dialect);
        }
        _ => write_unknown(o, frame),
    }
}

/// Returns true if the dialect has a name for the frame. The crate `qlog` has none for those of
/// draft-ietf-quic-ack-frequency-12 and RFC 10069.
fn has_name(frame: &FrameRecord, dialect: Dialect) -> bool {
    match (frame, dialect) {
        // A frame that cannot be decoded has no fields, so only frames that never have any are named.
        (FrameRecord::Other { frame_type }, _) => {
            let frame_type = FrameType(*frame_type);
            frame_type == FrameType::PING || frame_type == FrameType::HANDSHAKE_DONE
        }
        (
            FrameRecord::ImmediateAck
            | FrameRecord::AckFrequency { .. }
            | FrameRecord::Multipath(_)
            | FrameRecord::Address(_),
            Dialect::QlogCrate,
        ) => false,
        _ => true,
    }
}

/// Writes a frame without a name.
fn write_unknown(o: &mut Object<'_>, frame: &FrameRecord) {
    let frame_type = frame.frame_type().value();
    o.constant("frame_type", "unknown")
        .uint("frame_type_bytes", frame_type);
}

/// Writes the fields of a frame, in the order of the schema.
fn write_fields(o: &mut Object<'_>, frame: &FrameRecord, dialect: Dialect) {
    match frame {
        FrameRecord::Other { .. } | FrameRecord::ImmediateAck => {}
        FrameRecord::Stream { .. } => write_stream(o, frame),
        FrameRecord::Ack { delay, ranges, ecn } => {
            o.millis("ack_delay", *delay);
            acked(o, ranges, *ecn);
        }
        FrameRecord::Padding { len } => {
            o.object("raw", |raw| _ = raw.size("payload_length", *len));
        }
        FrameRecord::Crypto { offset, len } => length(o.uint("offset", *offset), *len),
        FrameRecord::Datagram { len } => length(o, *len),
        FrameRecord::NewToken { len } => _ = o.object("token", |token| length(token, *len)),
        FrameRecord::ResetStream {
            id,
            error_code,
            final_size,
        } => _ = abort(o, *id, *error_code).uint("final_size", *final_size),
        FrameRecord::ResetStreamAt {
            id,
            error_code,
            final_size,
            reliable_size,
        } => {
            abort(o, *id, *error_code)
                .uint("final_size", *final_size)
                .uint("reliable_size", *reliable_size);
        }
        FrameRecord::StopSending { id, error_code } => _ = abort(o, *id, *error_code),
        FrameRecord::MaxData { maximum } => _ = o.uint("maximum", *maximum),
        FrameRecord::MaxStreamData { id, maximum } => {
            o.uint("stream_id", id.value()).uint("maximum", *maximum);
        }
        FrameRecord::MaxStreams { direction, maximum } => {
            o.constant("stream_type", schema::stream_type(*direction))
                .uint("maximum", *maximum);
        }
        FrameRecord::DataBlocked { limit } => _ = o.uint("limit", *limit),
        FrameRecord::StreamDataBlocked { id, limit } => {
            o.uint("stream_id", id.value()).uint("limit", *limit);
        }
        FrameRecord::StreamsBlocked { direction, limit } => {
            o.constant("stream_type", schema::stream_type(*direction))
                .uint("limit", *limit);
        }
        FrameRecord::NewConnectionId { .. } => write_new_connection_id(o, frame),
        FrameRecord::RetireConnectionId { sequence } => _ = o.uint("sequence_number", *sequence),
        FrameRecord::PathChallenge { data } | FrameRecord::PathResponse { data } => {
            o.hex("data", data);
        }
        FrameRecord::ConnectionClose { .. } => write_close(o, frame, dialect),
        FrameRecord::AckFrequency { .. } => write_ack_frequency(o, frame),
        FrameRecord::Multipath(record) => multipath::write_fields(o, record),
        FrameRecord::Address(record) => addresses::write_fields(o, *record),
    }
}

fn write_stream(o: &mut Object<'_>, frame: &FrameRecord) {
    let FrameRecord::Stream {
        id,
        offset,
        len,
        fin,
    } = frame
    else {
        return;
    };
    o.uint("stream_id", id.value()).uint("offset", *offset);
    if *fin {
        o.boolean("fin", true);
    }
    length(o, *len);
}

/// Writes the fields that the frames which abort a direction of a stream have in common.
fn abort<'a, 'o>(o: &'a mut Object<'o>, id: StreamId, error_code: u64) -> &'a mut Object<'o> {
    o.uint("stream_id", id.value())
        .constant("error", "unknown")
        .uint("error_code", error_code)
}

fn write_new_connection_id(o: &mut Object<'_>, frame: &FrameRecord) {
    let FrameRecord::NewConnectionId {
        sequence,
        retire_prior_to,
        id,
    } = frame
    else {
        return;
    };
    o.uint("sequence_number", *sequence)
        .uint("retire_prior_to", *retire_prior_to)
        .size("connection_id_length", id.len())
        .hex("connection_id", id);
}

fn write_ack_frequency(o: &mut Object<'_>, frame: &FrameRecord) {
    let FrameRecord::AckFrequency {
        sequence,
        ack_eliciting_threshold,
        max_ack_delay,
        reordering_threshold,
    } = frame
    else {
        return;
    };
    o.uint("sequence_number", *sequence)
        .uint("ack_eliciting_threshold", *ack_eliciting_threshold)
        .millis("requested_max_ack_delay", *max_ack_delay)
        .uint("reordering_threshold", *reordering_threshold);
}

/// Writes the Length field of a frame, which is logged as `raw.length` (quic-events §8.13.7).
fn length(o: &mut Object<'_>, len: usize) {
    o.object("raw", |raw| {
        raw.size("length", len);
    });
}

fn write_close(o: &mut Object<'_>, frame: &FrameRecord, dialect: Dialect) {
    let FrameRecord::ConnectionClose {
        by_application,
        error_code,
        frame_type,
        reason,
    } = frame
    else {
        return;
    };
    let name = if *by_application {
        o.constant("error_space", "application");
        None
    } else {
        o.constant("error_space", "transport");
        dialect.transport_error(TransportErrorCode::from_value(*error_code))
    };
    match name {
        Some(name) => o.text("error", &name),
        None => o
            .constant("error", "unknown")
            .uint("error_code", *error_code),
    };
    if !reason.is_empty() {
        o.text("reason", reason);
    }
    if *frame_type != 0 {
        o.uint("trigger_frame_type", *frame_type);
    }
}
