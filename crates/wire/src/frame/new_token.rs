//! NEW_TOKEN frames: a token for the client's next connection. RFC 9000 §19.7.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A token that the client can use in its next connection. RFC 9000 §19.7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewToken<'a> {
    /// The token, which is opaque to the client and never empty.
    pub token: &'a [u8],
}

impl<'a> NewToken<'a> {
    /// Returns the number of bytes that [`NewToken::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        1 + varint_len(self.token.len() as u64) + self.token.len()
    }

    /// Writes the frame, including its type.
    ///
    /// # Panics
    /// Panics if the token is empty, because the client would close the connection.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        assert!(!self.token.is_empty(), "the token of NEW_TOKEN is empty");
        FrameType::NEW_TOKEN.encode(writer);
        writer.varint_bytes(self.token);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated or the token is empty.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let token_at = reader.offset();
        let token = reader.varint_bytes()?;
        if token.is_empty() {
            return Err(DecodeError::invalid("NEW_TOKEN has no token", token_at));
        }
        Ok(Self { token })
    }
}

#[cfg(test)]
mod tests;
