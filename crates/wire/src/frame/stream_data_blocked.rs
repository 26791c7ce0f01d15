//! STREAM_DATA_BLOCKED frames: a sender reports that it waits for MAX_STREAM_DATA. RFC 9000 §19.13.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A report that a stream's flow control limit blocks data. RFC 9000 §19.13.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamDataBlocked {
    /// ID of the stream.
    pub id: StreamId,
    /// The limit that blocks the sender.
    pub limit: u64,
}

impl StreamDataBlocked {
    /// Returns the number of bytes that [`StreamDataBlocked::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::STREAM_DATA_BLOCKED.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.limit);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId::decode(reader)?,
            limit: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
