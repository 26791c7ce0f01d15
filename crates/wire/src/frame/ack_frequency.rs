//! ACK_FREQUENCY frames: when the sender of data wants acknowledgements.
//! draft-ietf-quic-ack-frequency-12 §4.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Asks the receiver of data to change when it acknowledges.
/// draft-ietf-quic-ack-frequency-12 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckFrequency {
    /// Rises with each frame; what is not above the largest processed one is obsolete.
    pub sequence: u64,
    /// Ack-eliciting packets that may arrive without an ACK; one more is to be followed by one.
    pub ack_eliciting_threshold: u64,
    /// Microseconds by which an ACK may be delayed at most.
    pub requested_max_ack_delay: u64,
    /// How far a missing packet may lie behind the newest before an ACK is due at once: 1 for any
    /// gap, 0 for never.
    pub reordering_threshold: u64,
}

impl AckFrequency {
    /// Bytes that [`AckFrequency::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::ACK_FREQUENCY.0)
            + varint_len(self.sequence)
            + varint_len(self.ack_eliciting_threshold)
            + varint_len(self.requested_max_ack_delay)
            + varint_len(self.reordering_threshold)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::ACK_FREQUENCY.encode(writer);
        writer.varint(self.sequence);
        writer.varint(self.ack_eliciting_threshold);
        writer.varint(self.requested_max_ack_delay);
        writer.varint(self.reordering_threshold);
    }

    /// Reads the fields behind the type. Whether the delay is one that the reader offered is for
    /// the connection to say.
    ///
    /// # Errors
    /// Truncated input.
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
