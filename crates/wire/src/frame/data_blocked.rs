//! DATA_BLOCKED frames: the sender waits for MAX_DATA. RFC 9000 §19.12.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Says that the limit of the connection keeps data back. RFC 9000 §19.12.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataBlocked {
    /// The limit that is in the way.
    pub limit: u64,
}

impl DataBlocked {
    /// Bytes that [`DataBlocked::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.limit)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::DATA_BLOCKED.encode(writer);
        writer.varint(self.limit);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            limit: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
