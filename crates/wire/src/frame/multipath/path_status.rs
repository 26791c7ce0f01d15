//! PATH_STATUS_BACKUP and PATH_STATUS_AVAILABLE frames: the preference for a path. RFC 10069 §4.3.

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// The status of a path that the sender of the frame prefers. RFC 10069 §4.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStatus {
    /// ID of the path, which need not be open yet.
    pub path_id: u64,
    /// Sequence number, which increases with each status of this path. A status with a smaller
    /// number than another one is obsolete.
    pub sequence: u64,
}

impl PathStatus {
    /// Returns the number of bytes of the frame, including its type.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::PATH_STATUS_BACKUP.0)
            + varint_len(self.path_id)
            + varint_len(self.sequence)
    }

    /// Writes the frame with one of its two types.
    pub(in crate::frame) fn encode(&self, writer: &mut Writer<'_>, frame_type: FrameType) {
        frame_type.encode(writer);
        writer.varint(self.path_id);
        writer.varint(self.sequence);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            path_id: reader.varint()?,
            sequence: reader.varint()?,
        })
    }
}
