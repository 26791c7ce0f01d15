//! PATH_RETIRE_CONNECTION_ID frames: the end of the use of a connection ID of one path.
//! RFC 10069 §4.5.

use crate::error::DecodeError;
use crate::frame::{FrameType, RetireConnectionId};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A notice to the issuer of a connection ID of a path that it is no longer used. RFC 10069 §4.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRetireConnectionId {
    /// ID of the path.
    pub path_id: u64,
    /// The connection ID, by its sequence number on this path.
    pub retired: RetireConnectionId,
}

impl PathRetireConnectionId {
    /// Returns the number of bytes that [`PathRetireConnectionId::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::PATH_RETIRE_CONNECTION_ID.0)
            + varint_len(self.path_id)
            + self.retired.fields_len()
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_RETIRE_CONNECTION_ID.encode(writer);
        writer.varint(self.path_id);
        self.retired.encode_fields(writer);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            path_id: reader.varint()?,
            retired: RetireConnectionId::decode(reader)?,
        })
    }
}
