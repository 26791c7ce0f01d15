//! MAX_STREAM_DATA frames: the limit on the data of a stream. RFC 9000 §19.10.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A new limit on the data of one stream. RFC 9000 §19.10.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxStreamData {
    /// ID of the stream.
    pub id: StreamId,
    /// The limit in bytes, counted from the start of the stream.
    pub limit: u64,
}

impl MaxStreamData {
    /// Returns the number of bytes that [`MaxStreamData::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::MAX_STREAM_DATA.encode(writer);
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
