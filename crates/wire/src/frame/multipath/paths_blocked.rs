//! PATHS_BLOCKED frames: a path that the limit on path IDs prevents. RFC 10069 §4.7.

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A notice that the limit on path IDs keeps the sender from opening a path. RFC 10069 §4.7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathsBlocked {
    /// The largest path ID that was permitted when the frame was sent.
    pub limit: u64,
}

impl PathsBlocked {
    /// Returns the number of bytes of the frame, including its type.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::PATHS_BLOCKED.0) + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATHS_BLOCKED.encode(writer);
        writer.varint(self.limit);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            limit: reader.varint()?,
        })
    }
}
