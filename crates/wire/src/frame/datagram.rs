//! DATAGRAM frames: data that is delivered at most once and never retransmitted. RFC 9221 §4.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A DATAGRAM frame. RFC 9221 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The data, which may be empty.
    pub data: &'a [u8],
    /// True if the frame has a Length field. Without one, the data extends to the end of the
    /// packet.
    pub has_length: bool,
}

impl<'a> Datagram<'a> {
    /// Returns the frame type, which depends on the presence of a Length field.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        if self.has_length {
            FrameType::DATAGRAM_WITH_LENGTH
        } else {
            FrameType::DATAGRAM
        }
    }

    /// Returns the number of bytes that [`Datagram::encode`] writes. The receiver's
    /// `max_datagram_frame_size` limits this number (RFC 9221 §3).
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        Self::header_len(self.data.len(), self.has_length) + self.data.len()
    }

    /// Returns the number of bytes before `len` bytes of data.
    #[inline]
    pub const fn header_len(len: usize, has_length: bool) -> usize {
        if has_length {
            1 + varint_len(len as u64)
        } else {
            1
        }
    }

    /// Writes the frame, including its type. A frame without a Length field must be the last of its
    /// packet.
    #[inline]
    pub fn encode(&self, writer: &mut Writer<'_>) {
        Self::encode_header(self.data.len(), self.has_length, writer);
        writer.bytes(self.data);
    }

    /// Writes what precedes `len` bytes of data.
    #[inline]
    pub fn encode_header(len: usize, has_length: bool, writer: &mut Writer<'_>) {
        let frame_type = match has_length {
            true => FrameType::DATAGRAM_WITH_LENGTH,
            false => FrameType::DATAGRAM,
        };
        frame_type.encode(writer);
        if has_length {
            writer.varint(len as u64);
        }
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'a>, frame_type: u64) -> Result<Self, DecodeError> {
        let has_length = frame_type == FrameType::DATAGRAM_WITH_LENGTH.0;
        let data = if has_length {
            reader.varint_bytes()?
        } else {
            reader.rest()
        };
        Ok(Self { data, has_length })
    }
}

#[cfg(test)]
mod tests;
