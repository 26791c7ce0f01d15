//! DATA_BLOCKED frames: a sender reports that it waits for MAX_DATA. RFC 9000 §19.12.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A report that the connection's flow control limit blocks data. RFC 9000 §19.12.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataBlocked {
    /// The limit that blocks the sender.
    pub limit: u64,
}

impl DataBlocked {
    /// Returns the number of bytes that [`DataBlocked::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::DATA_BLOCKED.encode(writer);
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
