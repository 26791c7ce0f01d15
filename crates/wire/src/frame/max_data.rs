//! MAX_DATA frames: the limit on the data of all streams. RFC 9000 §19.9.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A new limit on the data of all streams together. RFC 9000 §19.9.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxData {
    /// The limit in bytes, counted from the start of the connection.
    pub limit: u64,
}

impl MaxData {
    /// Returns the number of bytes that [`MaxData::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::MAX_DATA.encode(writer);
        writer.varint(self.limit);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            limit: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
