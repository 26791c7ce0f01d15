//! STOP_SENDING frames: the receiver wants no more. RFC 9000 §19.5.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Asks the peer to end its sending part of a stream. RFC 9000 §19.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StopSending {
    /// Which stream.
    pub id: StreamId,
    /// The application's reason.
    pub error_code: u64,
}

impl StopSending {
    /// Bytes that [`StopSending::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.id.value()) + varint_len(self.error_code)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::STOP_SENDING.encode(writer);
        writer.varint(self.id.value());
        writer.varint(self.error_code);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId::decode(reader)?,
            error_code: reader.varint()?,
        })
    }
}

#[cfg(test)]
mod tests;
