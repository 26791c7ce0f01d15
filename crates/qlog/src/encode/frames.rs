//! Encodes frames: quic-events §8.13.

use std::ops::RangeInclusive;

use courser_base::EcnCounts;
use courser_telemetry::FrameRecord;
use courser_wire::TransportErrorCode;
use courser_wire::frame::FrameType;

use crate::json::{Object, array, object, plain};
use crate::schema::{self, Dialect};

pub(super) fn write_frames(data: &mut Object<'_>, frames: &[FrameRecord], dialect: Dialect) {
    data.array("frames", frames, |out, frame| {
        object(out, |o| write_frame(o, frame, dialect));
    });
}

fn write_frame(o: &mut Object<'_>, frame: &FrameRecord, dialect: Dialect) {
    match frame {
        FrameRecord::Stream {
            id,
            offset,
            len,
            fin,
        } => {
            o.constant("frame_type", "stream")
                .uint("stream_id", id.value())
                .uint("offset", *offset);
            if *fin {
                o.boolean("fin", true);
            }
            length(o, *len);
        }
        FrameRecord::Ack { delay, ranges, ecn } => {
            o.constant("frame_type", "ack").millis("ack_delay", *delay);
            acked(o, ranges, *ecn);
        }
        FrameRecord::Padding { len } => {
            o.constant("frame_type", "padding").object("raw", |raw| {
                raw.size("payload_length", *len);
            });
        }
        FrameRecord::Crypto { offset, len } => {
            o.constant("frame_type", "crypto").uint("offset", *offset);
            length(o, *len);
        }
        FrameRecord::NewToken { .. }
        | FrameRecord::PathChallenge { .. }
        | FrameRecord::PathResponse { .. }
        | FrameRecord::NewConnectionId { .. }
        | FrameRecord::RetireConnectionId { .. } => write_path_frame(o, frame),
        FrameRecord::Datagram { len } => {
            o.constant("frame_type", "datagram");
            length(o, *len);
        }
        FrameRecord::ConnectionClose { .. } => write_close(o, frame, dialect),
        FrameRecord::Other { frame_type } => match frame_type {
            0x01 => _ = o.constant("frame_type", "ping"),
            0x1e => _ = o.constant("frame_type", "handshake_done"),
            _ => write_unknown(o, *frame_type),
        },
        FrameRecord::ImmediateAck | FrameRecord::AckFrequency { .. } => {
            write_ack_request(o, frame, dialect);
        }
        // Named one by one, so that a new record needs a name here.
        FrameRecord::ResetStream { .. }
        | FrameRecord::ResetStreamAt { .. }
        | FrameRecord::StopSending { .. }
        | FrameRecord::MaxData { .. }
        | FrameRecord::MaxStreamData { .. }
        | FrameRecord::MaxStreams { .. }
        | FrameRecord::DataBlocked { .. }
        | FrameRecord::StreamDataBlocked { .. }
        | FrameRecord::StreamsBlocked { .. } => write_flow_frame(o, frame),
    }
}

/// Writes a frame without a name.
fn write_unknown(o: &mut Object<'_>, frame_type: u64) {
    o.constant("frame_type", "unknown")
        .uint("frame_type_bytes", frame_type);
}

/// Writes requests for acknowledgements (draft-ietf-quic-ack-frequency-12), whose names the crate `qlog` does
/// not know.
fn write_ack_request(o: &mut Object<'_>, frame: &FrameRecord, dialect: Dialect) {
    match frame {
        FrameRecord::ImmediateAck if dialect == Dialect::QlogCrate => {
            write_unknown(o, FrameType::IMMEDIATE_ACK.value());
        }
        FrameRecord::AckFrequency { .. } if dialect == Dialect::QlogCrate => {
            write_unknown(o, FrameType::ACK_FREQUENCY.value());
        }
        FrameRecord::ImmediateAck => _ = o.constant("frame_type", "immediate_ack"),
        FrameRecord::AckFrequency {
            sequence,
            ack_eliciting_threshold,
            max_ack_delay,
            reordering_threshold,
        } => {
            o.constant("frame_type", "ack_frequency")
                .uint("sequence_number", *sequence)
                .uint("ack_eliciting_threshold", *ack_eliciting_threshold)
                .millis("requested_max_ack_delay", *max_ack_delay)
                .uint("reordering_threshold", *reordering_threshold);
        }
        _ => _ = o.constant("frame_type", "unknown"),
    }
}

/// Writes frames of addresses, paths and connection IDs.
fn write_path_frame(o: &mut Object<'_>, frame: &FrameRecord) {
    match frame {
        FrameRecord::NewToken { len } => {
            o.constant("frame_type", "new_token");
            o.object("token", |token| length(token, *len));
        }
        FrameRecord::PathChallenge { data } => {
            o.constant("frame_type", "path_challenge").hex("data", data);
        }
        FrameRecord::PathResponse { data } => {
            o.constant("frame_type", "path_response").hex("data", data);
        }
        FrameRecord::NewConnectionId {
            sequence,
            retire_prior_to,
            id,
        } => {
            o.constant("frame_type", "new_connection_id")
                .uint("sequence_number", *sequence)
                .uint("retire_prior_to", *retire_prior_to)
                .size("connection_id_length", id.len())
                .hex("connection_id", id);
        }
        FrameRecord::RetireConnectionId { sequence } => {
            o.constant("frame_type", "retire_connection_id")
                .uint("sequence_number", *sequence);
        }
        _ => _ = o.constant("frame_type", "unknown"),
    }
}

/// Writes frames of streams and flow control.
fn write_flow_frame(o: &mut Object<'_>, frame: &FrameRecord) {
    match frame {
        FrameRecord::ResetStream {
            id,
            error_code,
            final_size,
        } => {
            o.constant("frame_type", "reset_stream")
                .uint("stream_id", id.value())
                .constant("error", "unknown")
                .uint("error_code", *error_code)
                .uint("final_size", *final_size);
        }
        FrameRecord::ResetStreamAt {
            id,
            error_code,
            final_size,
            reliable_size,
        } => {
            o.constant("frame_type", "reset_stream_at")
                .uint("stream_id", id.value())
                .constant("error", "unknown")
                .uint("error_code", *error_code)
                .uint("final_size", *final_size)
                .uint("reliable_size", *reliable_size);
        }
        FrameRecord::StopSending { id, error_code } => {
            o.constant("frame_type", "stop_sending")
                .uint("stream_id", id.value())
                .constant("error", "unknown")
                .uint("error_code", *error_code);
        }
        FrameRecord::MaxData { maximum } => {
            o.constant("frame_type", "max_data")
                .uint("maximum", *maximum);
        }
        FrameRecord::MaxStreamData { id, maximum } => {
            o.constant("frame_type", "max_stream_data")
                .uint("stream_id", id.value())
                .uint("maximum", *maximum);
        }
        FrameRecord::MaxStreams { direction, maximum } => {
            o.constant("frame_type", "max_streams")
                .constant("stream_type", schema::stream_type(*direction))
                .uint("maximum", *maximum);
        }
        FrameRecord::DataBlocked { limit } => {
            o.constant("frame_type", "data_blocked")
                .uint("limit", *limit);
        }
        FrameRecord::StreamDataBlocked { id, limit } => {
            o.constant("frame_type", "stream_data_blocked")
                .uint("stream_id", id.value())
                .uint("limit", *limit);
        }
        FrameRecord::StreamsBlocked { direction, limit } => {
            o.constant("frame_type", "streams_blocked")
                .constant("stream_type", schema::stream_type(*direction))
                .uint("limit", *limit);
        }
        // `write_frame` handles all others. A mistake here must not end the connection.
        _ => _ = o.constant("frame_type", "unknown"),
    }
}

/// Writes the Length field of a frame, which is logged as `raw.length` (quic-events §8.13.7).
fn length(o: &mut Object<'_>, len: usize) {
    o.object("raw", |raw| {
        raw.size("length", len);
    });
}

fn acked(o: &mut Object<'_>, ranges: &[RangeInclusive<u64>], ecn: Option<EcnCounts>) {
    o.array("acked_ranges", ranges, |out, range| {
        let last = (range.start() != range.end()).then_some(range.end());
        array(
            out,
            [Some(range.start()), last].into_iter().flatten(),
            plain,
        );
    });
    if let Some(ecn) = ecn {
        o.uint("ect1", ecn.ect1)
            .uint("ect0", ecn.ect0)
            .uint("ce", ecn.ce);
    }
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
    o.constant("frame_type", "connection_close");
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
