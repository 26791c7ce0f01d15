//! RETIRE_CONNECTION_ID frames: a connection ID is no longer used. RFC 9000 §19.16.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Gives a connection ID back to the end that issued it. RFC 9000 §19.16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetireConnectionId {
    /// The sequence number it was issued under.
    pub sequence: u64,
}

impl RetireConnectionId {
    /// Bytes that [`RetireConnectionId::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.sequence)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::RETIRE_CONNECTION_ID.encode(writer);
        writer.varint(self.sequence);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            sequence: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
