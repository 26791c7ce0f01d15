//! REMOVE_ADDRESS frames: the end of a candidate. draft-seemann-quic-nat-traversal-02 §4.

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A notice that an address of the server is no longer usable. draft-seemann-quic-nat-traversal-02 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoveAddress {
    /// Number of the address in its ADD_ADDRESS frame.
    pub sequence: u64,
}

impl RemoveAddress {
    /// Returns the number of bytes of the frame, including its type.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::REMOVE_ADDRESS.0) + varint_len(self.sequence)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::REMOVE_ADDRESS.encode(writer);
        writer.varint(self.sequence);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            sequence: reader.varint()?,
        })
    }
}
