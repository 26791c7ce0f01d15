//! NEW_CONNECTION_ID frames: another connection ID to reach the sender by. RFC 9000 §19.15.

use super::FrameType;
use crate::connection_id::ConnectionId;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Issues a connection ID. RFC 9000 §19.15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewConnectionId {
    /// Its sequence number.
    pub sequence: u64,
    /// The peer gives back all connection IDs with a smaller sequence number than this, which is
    /// at most [`NewConnectionId::sequence`].
    pub retire_prior_to: u64,
    /// The connection ID; never empty.
    pub id: ConnectionId,
    /// Stateless resets for this connection ID end in it.
    pub reset_token: [u8; 16],
}

impl NewConnectionId {
    /// Bytes that [`NewConnectionId::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        let numbers = varint_len(self.sequence) + varint_len(self.retire_prior_to);
        1 + numbers + 1 + self.id.len() + self.reset_token.len()
    }

    /// Writes the frame.
    ///
    /// # Panics
    /// Panics when the connection ID is empty or `retire_prior_to` above `sequence`: the peer
    /// would close the connection.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        assert!(!self.id.is_empty(), "NEW_CONNECTION_ID has a connection id");
        assert!(
            self.retire_prior_to <= self.sequence,
            "a connection id does not retire itself"
        );
        FrameType::NEW_CONNECTION_ID.encode(writer);
        writer.varint(self.sequence);
        writer.varint(self.retire_prior_to);
        self.id.encode(writer);
        writer.bytes(&self.reset_token);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input, a connection ID that is empty or longer than 20 bytes, or
    /// `retire_prior_to` above `sequence`.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let sequence = reader.varint()?;
        let retire_at = reader.offset();
        let retire_prior_to = reader.varint()?;
        if retire_prior_to > sequence {
            return Err(DecodeError::invalid(
                "retire prior to is above sequence",
                retire_at,
            ));
        }
        let id_at = reader.offset();
        let id = usize::from(reader.u8()?);
        if id == 0 || id > ConnectionId::MAX_LEN {
            return Err(DecodeError::invalid(
                "connection id has not 1 to 20 bytes",
                id_at,
            ));
        }
        let id = ConnectionId::new(reader.bytes(id)?).expect("the length was checked");
        Ok(Self {
            sequence,
            retire_prior_to,
            id,
            reset_token: reader.array()?,
        })
    }
}

#[cfg(test)]
mod tests;
