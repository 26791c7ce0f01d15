//! Events of packets.

use std::fmt;

use courser_telemetry::{FrameRecord, PacketBuffered, PacketDropped, PacketReceived, PacketSent};
use courser_wire::FrameType;
use tracing::{Span, debug, trace};

use super::targets::PACKET;
use crate::names;

pub(super) fn sent(span: &Span, packet: &PacketSent) {
    trace!(
        target: PACKET,
        parent: span,
        kind = names::kind(packet.kind),
        number = packet.packet_number,
        bytes = packet.len,
        frames = %List(&packet.frames),
        "sent"
    );
}

pub(super) fn received(span: &Span, packet: &PacketReceived) {
    trace!(
        target: PACKET,
        parent: span,
        kind = names::kind(packet.kind),
        number = packet.packet_number,
        bytes = packet.len,
        frames = %List(&packet.frames),
        "received"
    );
}

pub(super) fn dropped(span: &Span, packet: &PacketDropped) {
    debug!(
        target: PACKET,
        parent: span,
        kind = names::kind(packet.kind),
        bytes = packet.len,
        reason = names::drop_reason(packet.reason),
        "dropped"
    );
}

pub(super) fn buffered(span: &Span, packet: &PacketBuffered) {
    let (kind, bytes) = (names::kind(packet.kind), packet.len);
    trace!(target: PACKET, parent: span, kind, bytes, "buffered until its keys exist");
}

/// Frames as a list: `ACK 3-7, STREAM 0 1448+1178 FIN`.
struct List<'a>(&'a [FrameRecord]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, frame) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write_frame(f, frame)?;
        }
        Ok(())
    }
}

fn write_frame(f: &mut fmt::Formatter<'_>, frame: &FrameRecord) -> fmt::Result {
    match frame {
        FrameRecord::Padding { len } => write!(f, "PADDING {len}"),
        FrameRecord::Ack { ranges, .. } => {
            f.write_str("ACK")?;
            ranges.iter().try_for_each(|range| {
                let (first, last) = (range.start(), range.end());
                write!(f, " {first}-{last}")
            })
        }
        FrameRecord::Crypto { offset, len } => write!(f, "CRYPTO {offset}+{len}"),
        FrameRecord::Stream {
            id,
            offset,
            len,
            fin,
        } => {
            let fin = if *fin { " FIN" } else { "" };
            write!(f, "STREAM {id} {offset}+{len}{fin}")
        }
        FrameRecord::ResetStreamAt {
            id,
            error_code,
            reliable_size,
            ..
        } => write!(
            f,
            "RESET_STREAM_AT {id} {error_code:#x} after {reliable_size}"
        ),
        FrameRecord::ResetStream { id, error_code, .. } => {
            write!(f, "RESET_STREAM {id} {error_code:#x}")
        }
        FrameRecord::StopSending { id, error_code } => {
            write!(f, "STOP_SENDING {id} {error_code:#x}")
        }
        FrameRecord::NewToken { len } => write!(f, "NEW_TOKEN {len}"),
        FrameRecord::MaxData { maximum } => write!(f, "MAX_DATA {maximum}"),
        FrameRecord::MaxStreamData { id, maximum } => write!(f, "MAX_STREAM_DATA {id} {maximum}"),
        FrameRecord::MaxStreams { maximum, .. } => write!(f, "MAX_STREAMS {maximum}"),
        FrameRecord::DataBlocked { limit } => write!(f, "DATA_BLOCKED {limit}"),
        FrameRecord::StreamDataBlocked { id, limit } => {
            write!(f, "STREAM_DATA_BLOCKED {id} {limit}")
        }
        FrameRecord::StreamsBlocked { limit, .. } => write!(f, "STREAMS_BLOCKED {limit}"),
        FrameRecord::NewConnectionId { sequence, .. } => write!(f, "NEW_CONNECTION_ID {sequence}"),
        FrameRecord::RetireConnectionId { sequence } => {
            write!(f, "RETIRE_CONNECTION_ID {sequence}")
        }
        FrameRecord::PathChallenge { .. } => f.write_str("PATH_CHALLENGE"),
        FrameRecord::PathResponse { .. } => f.write_str("PATH_RESPONSE"),
        FrameRecord::ConnectionClose { error_code, .. } => {
            write!(f, "CONNECTION_CLOSE {error_code:#x}")
        }
        FrameRecord::Datagram { len } => write!(f, "DATAGRAM {len}"),
        FrameRecord::ImmediateAck => f.write_str("IMMEDIATE_ACK"),
        FrameRecord::AckFrequency { sequence, .. } => write!(f, "ACK_FREQUENCY {sequence}"),
        FrameRecord::Other { frame_type } => fmt::Display::fmt(&FrameType(*frame_type), f),
    }
}
