//! PATH_NEW_CONNECTION_ID frames: a connection ID for one path.
//! RFC 10069 §4.4.

use crate::error::DecodeError;
use crate::frame::{FrameType, NewConnectionId};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A newly issued connection ID for one path. RFC 10069 §4.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathNewConnectionId {
    /// ID of the path.
    pub path_id: u64,
    /// The connection ID, with a sequence number of this path.
    pub issued: NewConnectionId,
}

impl PathNewConnectionId {
    /// Returns the number of bytes that [`PathNewConnectionId::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        varint_len(FrameType::PATH_NEW_CONNECTION_ID.0)
            + varint_len(self.path_id)
            + self.issued.fields_len()
    }

    /// Writes the frame, including its type.
    ///
    /// # Panics
    /// Panics as [`NewConnectionId::encode`] does.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::PATH_NEW_CONNECTION_ID.encode(writer);
        writer.varint(self.path_id);
        self.issued.encode_fields(writer);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated, and as [`NewConnectionId::decode`] does.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            path_id: reader.varint()?,
            issued: NewConnectionId::decode(reader)?,
        })
    }
}
