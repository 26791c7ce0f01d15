//! CRYPTO frames: data of the TLS handshake. RFC 9000 §19.6.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::{MAX_VARINT, varint_len};
use crate::writer::Writer;

/// A CRYPTO frame. RFC 9000 §19.6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crypto<'a> {
    /// Offset of the data in the handshake data of this encryption level.
    pub offset: u64,
    /// A part of the TLS messages at this encryption level, without framing.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    /// Returns the number of bytes that [`Crypto::encode`] writes.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        Self::header_len(self.offset, self.data.len()) + self.data.len()
    }

    /// Writes the frame, including its type.
    #[inline]
    pub fn encode(&self, writer: &mut Writer<'_>) {
        Self::encode_header(writer, self.offset, self.data.len());
        writer.bytes(self.data);
    }

    /// Returns the number of bytes before `len` bytes of data.
    #[inline]
    pub const fn header_len(offset: u64, len: usize) -> usize {
        1 + varint_len(offset) + varint_len(len as u64)
    }

    /// Writes the fields before `len` bytes of data. The caller appends the data.
    #[inline]
    pub fn encode_header(writer: &mut Writer<'_>, offset: u64, len: usize) {
        FrameType::CRYPTO.encode(writer);
        writer.varint(offset);
        writer.varint(len as u64);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated or if the data ends beyond the largest offset, 2^62 - 1.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let offset_at = reader.offset();
        let offset = reader.varint()?;
        let data = reader.varint_bytes()?;
        // The sum cannot overflow: the offset is a varint, the length that of a slice.
        if offset + data.len() as u64 > MAX_VARINT {
            return Err(DecodeError::invalid(
                "CRYPTO data ends above 2^62 - 1",
                offset_at,
            ));
        }
        Ok(Self { offset, data })
    }
}

#[cfg(test)]
mod tests;
