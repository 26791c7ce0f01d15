//! Frames of paths in packets.

use courser_wire::frame::Frame;

use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// Writes a frame if it fits, and records it.
pub(super) fn write(packet: &mut PacketBuilder<'_>, frame: &Frame<'_>, record: SentFrame) -> bool {
    let fits = packet.remaining() >= frame.encoded_len();
    if fits {
        frame.encode(packet.writer());
        packet.record(record);
    }
    fits
}
