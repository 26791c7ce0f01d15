//! RESET_STREAM_AT frames: the abrupt end of a stream whose beginning is still delivered.
//! draft-ietf-quic-reliable-stream-reset-10 §4.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// An abrupt end of the sending part of a stream, with reliable delivery of its beginning.
/// draft-ietf-quic-reliable-stream-reset-10 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetStreamAt {
    /// ID of the stream.
    pub id: StreamId,
    /// The application's error code.
    pub error_code: u64,
    /// The final size of the stream in bytes, sent or not. Flow control counts all of them.
    pub final_size: u64,
    /// The number of bytes at the beginning of the stream that are delivered; at most
    /// `final_size`, which decoding does not check.
    pub reliable_size: u64,
}

impl ResetStreamAt {
    /// Returns the number of bytes that [`ResetStreamAt::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value())
            + varint_len(self.error_code)
            + varint_len(self.final_size)
            + varint_len(self.reliable_size)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::RESET_STREAM_AT.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.error_code);
        writer.varint(self.final_size);
        writer.varint(self.reliable_size);
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
            reliable_size: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
