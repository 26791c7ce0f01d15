//! NEW_CONNECTION_ID frames: an additional connection ID of the sender. RFC 9000 §19.15.

use super::FrameType;
use crate::connection_id::ConnectionId;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A newly issued connection ID. RFC 9000 §19.15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewConnectionId {
    /// Sequence number of the connection ID.
    pub sequence: u64,
    /// The peer must retire all connection IDs with a sequence number below this one, which is at
    /// most [`NewConnectionId::sequence`].
    pub retire_prior_to: u64,
    /// The connection ID, which is never empty.
    pub id: ConnectionId,
    /// The token at the end of stateless resets for this connection ID.
    pub reset_token: [u8; 16],
}

impl NewConnectionId {
    /// Returns the number of bytes that [`NewConnectionId::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + self.fields_len()
    }

    /// Returns the length of the fields that NEW_CONNECTION_ID and PATH_NEW_CONNECTION_ID share.
    pub(super) const fn fields_len(&self) -> usize {
        let numbers = varint_len(self.sequence) + varint_len(self.retire_prior_to);
        numbers + 1 + self.id.len() + self.reset_token.len()
    }

    /// Writes the frame, including its type.
    ///
    /// # Panics
    /// Panics if the connection ID is empty or if `retire_prior_to` is above `sequence`, because
    /// the peer would close the connection.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        FrameType::NEW_CONNECTION_ID.encode(writer);
        self.encode_fields(writer);
    }

    /// Writes the fields that NEW_CONNECTION_ID and PATH_NEW_CONNECTION_ID share.
    pub(super) fn encode_fields(&self, writer: &mut Writer<'_>) {
        assert!(
            !self.id.is_empty(),
            "the connection id of NEW_CONNECTION_ID is empty"
        );
        assert!(
            self.retire_prior_to <= self.sequence,
            "retire_prior_to is above sequence"
        );
        writer.varint(self.sequence);
        writer.varint(self.retire_prior_to);
        self.id.encode(writer);
        writer.bytes(&self.reset_token);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated, if the connection ID is empty or longer than 20 bytes, or
    /// if `retire_prior_to` is above `sequence`.
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
                "connection id is not 1 to 20 bytes long",
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
