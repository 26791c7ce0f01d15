//! STOP_SENDING frames: a receiver's request for no more data. RFC 9000 §19.5.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A request to the peer to end its sending part of a stream. RFC 9000 §19.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StopSending {
    /// ID of the stream.
    pub id: StreamId,
    /// The application's error code.
    pub error_code: u64,
}

impl StopSending {
    /// Returns the number of bytes that [`StopSending::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.error_code)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::STOP_SENDING.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.error_code);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId::decode(reader)?,
            error_code: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
