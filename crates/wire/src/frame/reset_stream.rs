//! RESET_STREAM frames: the abrupt end of a stream by its sender. RFC 9000 §19.4.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// An abrupt end of the sending part of a stream. RFC 9000 §19.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetStream {
    /// ID of the stream.
    pub id: StreamId,
    /// The application's error code.
    pub error_code: u64,
    /// The final size of the stream in bytes, sent or not. Flow control counts all of them.
    pub final_size: u64,
}

impl ResetStream {
    /// Returns the number of bytes that [`ResetStream::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.error_code) + varint_len(self.final_size)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::RESET_STREAM.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.error_code);
        writer.varint(self.final_size);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId::decode(reader)?,
            error_code: reader.varint()?,
            final_size: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
