//! PATH_RESPONSE frames: the response to PATH_CHALLENGE. RFC 9000 §19.18.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::writer::Writer;

/// The response to a PATH_CHALLENGE. RFC 9000 §19.18.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathResponse {
    /// Data repeated from the challenge.
    pub data: [u8; 8],
}

impl PathResponse {
    /// Returns the number of bytes that [`PathResponse::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + self.data.len()
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_RESPONSE.encode(writer);
        writer.bytes(&self.data);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            data: reader.array()?,
        })
    }
}

#[cfg(test)]
mod tests;
