//! Events of packets.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new frame must be formatted with its fields"
)]

use std::fmt;
use std::ops::RangeInclusive;

use courser_telemetry::{
    AddressRecord, FrameRecord, MultipathRecord, PacketBuffered, PacketDropped, PacketReceived,
    PacketSent,
};
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
    trace!(target: PACKET, parent: span, kind, bytes, "buffered until its keys are available");
}

/// Formats frames as a list: `ACK 3-7, STREAM 0 1448+1178 FIN`.
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
    write!(f, "{}", frame.frame_type())?;
    match frame {
        FrameRecord::Padding { len }
        | FrameRecord::NewToken { len }
        | FrameRecord::Datagram { len } => write!(f, " {len}"),
        FrameRecord::Ack { ranges, .. } => write_ranges(f, ranges),
        FrameRecord::Crypto { offset, len } => write!(f, " {offset}+{len}"),
        FrameRecord::Stream {
            id,
            offset,
            len,
            fin,
        } => {
            let fin = if *fin { " FIN" } else { "" };
            write!(f, " {id} {offset}+{len}{fin}")
        }
        FrameRecord::ResetStreamAt {
            id,
            error_code,
            reliable_size,
            ..
        } => write!(f, " {id} {error_code:#x} after {reliable_size}"),
        FrameRecord::ResetStream { id, error_code, .. }
        | FrameRecord::StopSending { id, error_code } => write!(f, " {id} {error_code:#x}"),
        FrameRecord::MaxData { maximum } | FrameRecord::MaxStreams { maximum, .. } => {
            write!(f, " {maximum}")
        }
        FrameRecord::MaxStreamData { id, maximum } => write!(f, " {id} {maximum}"),
        FrameRecord::DataBlocked { limit } | FrameRecord::StreamsBlocked { limit, .. } => {
            write!(f, " {limit}")
        }
        FrameRecord::StreamDataBlocked { id, limit } => write!(f, " {id} {limit}"),
        FrameRecord::NewConnectionId { sequence, .. }
        | FrameRecord::RetireConnectionId { sequence }
        | FrameRecord::AckFrequency { sequence, .. } => write!(f, " {sequence}"),
        FrameRecord::Multipath(record) => write_multipath(f, record),
        FrameRecord::Address(
            AddressRecord::Observed { address, .. }
            | AddressRecord::Add { address, .. }
            | AddressRecord::ReachOut { address, .. },
        ) => write!(f, " {address}"),
        FrameRecord::Address(AddressRecord::Remove { sequence }) => write!(f, " {sequence}"),
        FrameRecord::ConnectionClose { error_code, .. } => write!(f, " {error_code:#x}"),
        FrameRecord::PathChallenge { .. }
        | FrameRecord::PathResponse { .. }
        | FrameRecord::ImmediateAck
        | FrameRecord::Other { .. } => Ok(()),
    }
}

fn write_multipath(f: &mut fmt::Formatter<'_>, record: &MultipathRecord) -> fmt::Result {
    match record {
        MultipathRecord::Ack {
            path_id, ranges, ..
        } => {
            write!(f, " path {path_id}")?;
            write_ranges(f, ranges)
        }
        MultipathRecord::Abandon {
            path_id,
            error_code,
        } => write!(f, " path {path_id} {error_code:#x}"),
        MultipathRecord::Status {
            path_id, sequence, ..
        }
        | MultipathRecord::NewConnectionId {
            path_id, sequence, ..
        }
        | MultipathRecord::RetireConnectionId { path_id, sequence }
        | MultipathRecord::CidsBlocked {
            path_id,
            next_sequence: sequence,
        } => write!(f, " path {path_id} {sequence}"),
        MultipathRecord::MaxPathId { maximum } | MultipathRecord::PathsBlocked { maximum } => {
            write!(f, " {maximum}")
        }
    }
}

fn write_ranges(f: &mut fmt::Formatter<'_>, ranges: &[RangeInclusive<u64>]) -> fmt::Result {
    ranges.iter().try_for_each(|range| {
        let (first, last) = (range.start(), range.end());
        write!(f, " {first}-{last}")
    })
}
