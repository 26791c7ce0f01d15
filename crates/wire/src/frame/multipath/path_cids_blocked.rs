//! PATH_CIDS_BLOCKED frames: a path that lacks connection IDs. RFC 10069 §4.7.

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A notice that the sender lacks unused connection IDs for a path. RFC 10069 §4.7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathCidsBlocked {
    /// ID of the path.
    pub path_id: u64,
    /// Sequence number of the connection ID that the sender expects next for this path.
    pub next_sequence: u64,
}

impl PathCidsBlocked {
    /// Returns the number of bytes of the frame, including its type.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::PATH_CIDS_BLOCKED.0)
            + varint_len(self.path_id)
            + varint_len(self.next_sequence)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_CIDS_BLOCKED.encode(writer);
        writer.varint(self.path_id);
        writer.varint(self.next_sequence);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            path_id: reader.varint()?,
            next_sequence: reader.varint()?,
        })
    }
}
