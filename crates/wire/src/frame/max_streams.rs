//! MAX_STREAMS frames: the limit on the number of streams. RFC 9000 §19.11.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::{Direction, MAX_STREAMS};
use crate::varint::varint_len;
use crate::writer::Writer;

/// A new limit on the number of streams of one direction. RFC 9000 §19.11.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxStreams {
    /// The direction of the streams that the limit applies to.
    pub direction: Direction,
    /// The number of streams, counted from the start of the connection; at most 2^60.
    pub limit: u64,
}

impl MaxStreams {
    /// Returns the frame type, which depends on the direction.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        match self.direction {
            Direction::Bidirectional => FrameType::MAX_STREAMS_BIDI,
            Direction::Unidirectional => FrameType::MAX_STREAMS_UNI,
        }
    }

    /// Returns the number of bytes that [`MaxStreams::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        self.frame_type().encode(writer);
        writer.varint(self.limit);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated or if the limit is above 2^60, the number of streams that
    /// can have an ID.
    pub fn decode(reader: &mut Reader<'_>, frame_type: u64) -> Result<Self, DecodeError> {
        let direction = if frame_type == FrameType::MAX_STREAMS_BIDI.0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        };
        let limit_at = reader.offset();
        let limit = reader.varint()?;
        if limit > MAX_STREAMS {
            return Err(DecodeError::invalid("MAX_STREAMS is above 2^60", limit_at));
        }
        Ok(Self { direction, limit })
    }
}

#[cfg(test)]
mod tests;
