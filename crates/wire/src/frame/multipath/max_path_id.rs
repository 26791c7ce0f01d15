//! MAX_PATH_ID frames: the limit on path IDs. RFC 10069 §4.6.

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A new limit on the path IDs that the other end may use. RFC 10069 §4.6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxPathId {
    /// The largest path ID; at most 2^32 - 1, which the connection checks.
    pub limit: u64,
}

impl MaxPathId {
    /// Returns the number of bytes of the frame, including its type.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::MAX_PATH_ID.0) + varint_len(self.limit)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::MAX_PATH_ID.encode(writer);
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
