//! MAX_STREAMS frames: how many streams may be opened. RFC 9000 §19.11.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::{Direction, MAX_STREAMS};
use crate::varint::varint_len;
use crate::writer::Writer;

/// Raises the limit on streams of one kind. RFC 9000 §19.11.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxStreams {
    /// Which kind of streams.
    pub direction: Direction,
    /// Streams, counted from the start of the connection; at most 2^60.
    pub limit: u64,
}

impl MaxStreams {
    /// One of two types, by direction.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        match self.direction {
            Direction::Bidirectional => FrameType::MAX_STREAMS_BIDI,
            Direction::Unidirectional => FrameType::MAX_STREAMS_UNI,
        }
    }

    /// Bytes that [`MaxStreams::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.limit)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        self.frame_type().encode(writer);
        writer.varint(self.limit);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input, or more streams than can have an ID, 2^60.
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
