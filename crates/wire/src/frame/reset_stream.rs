//! RESET_STREAM frames: the sender gives up a stream. RFC 9000 §19.4.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Ends the sending part of a stream abruptly. RFC 9000 §19.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetStream {
    /// Which stream.
    pub id: StreamId,
    /// The application's reason.
    pub error_code: u64,
    /// How many bytes the stream has, sent or not: they count for flow control.
    pub final_size: u64,
}

impl ResetStream {
    /// Bytes that [`ResetStream::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.error_code) + varint_len(self.final_size)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::RESET_STREAM.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.error_code);
        writer.varint(self.final_size);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
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
