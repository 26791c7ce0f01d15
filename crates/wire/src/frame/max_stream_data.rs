//! MAX_STREAM_DATA frames: how much a stream may carry. RFC 9000 §19.10.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Raises the limit on the data of one stream. RFC 9000 §19.10.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxStreamData {
    /// Which stream.
    pub id: StreamId,
    /// Bytes, counted from the start of the stream.
    pub limit: u64,
}

impl MaxStreamData {
    /// Bytes that [`MaxStreamData::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.limit)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::MAX_STREAM_DATA.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.limit);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId::decode(reader)?,
            limit: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
