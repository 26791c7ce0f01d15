//! PATH_CHALLENGE frames: checks of a path's reachability. RFC 9000 §19.17.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::writer::Writer;

/// A request to the peer to prove that it is reachable on a path. RFC 9000 §19.17.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathChallenge {
    /// Data that the PATH_RESPONSE must repeat. Only an observer of the frame can know it.
    pub data: [u8; 8],
}

impl PathChallenge {
    /// Returns the number of bytes that [`PathChallenge::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + self.data.len()
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_CHALLENGE.encode(writer);
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
