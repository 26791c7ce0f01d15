//! ACK_FREQUENCY frames: requests of a data sender for more or fewer acknowledgements.
//! draft-ietf-quic-ack-frequency-12 §4.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A request to the receiver of data to change when it sends acknowledgements.
/// draft-ietf-quic-ack-frequency-12 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckFrequency {
    /// Sequence number, which increases with each frame. A frame is obsolete unless its number is
    /// above the largest one processed.
    pub sequence: u64,
    /// Number of ack-eliciting packets that may arrive without an ACK. The next one after them
    /// requires an ACK.
    pub ack_eliciting_threshold: u64,
    /// The largest delay of an ACK in microseconds.
    pub requested_max_ack_delay: u64,
    /// Distance of a missing packet to the newest one at which an ACK is due immediately: 1 for any
    /// gap, 0 for never.
    pub reordering_threshold: u64,
}

impl AckFrequency {
    /// Returns the number of bytes that [`AckFrequency::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::ACK_FREQUENCY.0)
            + varint_len(self.sequence)
            + varint_len(self.ack_eliciting_threshold)
            + varint_len(self.requested_max_ack_delay)
            + varint_len(self.reordering_threshold)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::ACK_FREQUENCY.encode(writer);
        writer.varint(self.sequence);
        writer.varint(self.ack_eliciting_threshold);
        writer.varint(self.requested_max_ack_delay);
        writer.varint(self.reordering_threshold);
    }

    /// Reads the fields that follow the frame type. The connection must check the requested delay
    /// against the `min_ack_delay` that it offered.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            sequence: reader.varint()?,
            ack_eliciting_threshold: reader.varint()?,
            requested_max_ack_delay: reader.varint()?,
            reordering_threshold: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
