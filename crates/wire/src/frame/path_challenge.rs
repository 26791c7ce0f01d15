//! PATH_CHALLENGE frames: is the peer reachable on this path. RFC 9000 §19.17.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::writer::Writer;

/// Asks the peer to prove that it is reachable on a path. RFC 9000 §19.17.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathChallenge {
    /// What the answer repeats; unpredictable to anyone who does not see it.
    pub data: [u8; 8],
}

impl PathChallenge {
    /// Bytes that [`PathChallenge::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + self.data.len()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_CHALLENGE.encode(writer);
        writer.bytes(&self.data);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            data: reader.array()?,
        })
    }
}

#[cfg(test)]
mod tests;
