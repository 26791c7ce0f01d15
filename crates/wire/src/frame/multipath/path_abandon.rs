//! PATH_ABANDON frames: the end of a path. RFC 10069 §4.2.

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A notice that the sender no longer uses a path. RFC 10069 §4.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathAbandon {
    /// ID of the path.
    pub path_id: u64,
    /// The reason: NO_ERROR or one of the codes for paths. It is no error of the connection.
    pub error_code: u64,
}

impl PathAbandon {
    /// Returns the number of bytes of the frame, including its type.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::PATH_ABANDON.0)
            + varint_len(self.path_id)
            + varint_len(self.error_code)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_ABANDON.encode(writer);
        writer.varint(self.path_id);
        writer.varint(self.error_code);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            path_id: reader.varint()?,
            error_code: reader.varint()?,
        })
    }
}
