//! RETIRE_CONNECTION_ID frames: the end of a connection ID's use. RFC 9000 §19.16.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A notice to the issuer of a connection ID that it is no longer used. RFC 9000 §19.16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetireConnectionId {
    /// The sequence number of the connection ID.
    pub sequence: u64,
}

impl RetireConnectionId {
    /// Returns the number of bytes that [`RetireConnectionId::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + self.fields_len()
    }

    /// Returns the length of the field that RETIRE_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID share.
    pub(super) const fn fields_len(&self) -> usize {
        varint_len(self.sequence)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::RETIRE_CONNECTION_ID.encode(writer);
        self.encode_fields(writer);
    }

    /// Writes the field that RETIRE_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID share.
    pub(super) fn encode_fields(&self, writer: &mut Writer<'_>) {
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

#[cfg(test)]
mod tests;
