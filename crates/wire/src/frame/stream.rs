//! STREAM frames: data of a stream. RFC 9000 §19.8.

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::stream_id::StreamId;
use crate::varint::{MAX_VARINT, varint_len};
use crate::writer::Writer;

/// A STREAM frame. RFC 9000 §19.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream<'a> {
    /// ID of the stream.
    pub id: StreamId,
    /// Offset of the data in the stream.
    pub offset: u64,
    /// The data. Empty if the frame only opens the stream or announces its end.
    pub data: &'a [u8],
    /// True if the data ends the stream.
    pub fin: bool,
}

impl<'a> Stream<'a> {
    /// Returns the frame type that [`Stream::encode`] writes.
    #[inline]
    pub fn frame_type(&self) -> FrameType {
        stream_type(self.offset, true, self.fin)
    }

    /// Returns the number of bytes that [`Stream::encode`] writes.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        Self::header_len(self.id, self.offset, Some(self.data.len())) + self.data.len()
    }

    /// Writes the frame with a LEN field.
    #[inline]
    pub fn encode(&self, writer: &mut Writer<'_>) {
        Self::encode_header(
            writer,
            self.id,
            self.offset,
            Some(self.data.len()),
            self.fin,
        );
        writer.bytes(self.data);
    }

    /// Returns the number of bytes before the data, with a LEN field if `data_len` is given.
    #[inline]
    pub const fn header_len(id: StreamId, offset: u64, data_len: Option<usize>) -> usize {
        let offset = if offset == 0 { 0 } else { varint_len(offset) };
        let len = match data_len {
            None => 0,
            Some(len) => varint_len(len as u64),
        };
        1 + varint_len(id.value()) + offset + len
    }

    /// Writes the fields before the data. The caller appends the data. Without `data_len`, the
    /// frame has no LEN field and extends to the end of the packet.
    #[inline]
    pub fn encode_header(
        writer: &mut Writer<'_>,
        id: StreamId,
        offset: u64,
        data_len: Option<usize>,
        fin: bool,
    ) {
        stream_type(offset, data_len.is_some(), fin).encode(writer);
        writer.varint(id.value());
        if offset != 0 {
            writer.varint(offset);
        }
        if let Some(len) = data_len {
            writer.varint(len as u64);
        }
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated or if the data ends beyond the largest offset, 2^62 - 1.
    #[inline]
    pub fn decode(reader: &mut Reader<'a>, frame_type: u64) -> Result<Self, DecodeError> {
        let id = StreamId::decode(reader)?;
        let offset_at = reader.offset();
        let offset = if frame_type & OFF == 0 {
            0
        } else {
            reader.varint()?
        };
        let data = if frame_type & LEN == 0 {
            reader.rest()
        } else {
            reader.varint_bytes()?
        };
        // The sum cannot overflow: the offset is a varint, the length that of a slice.
        if offset + data.len() as u64 > MAX_VARINT {
            return Err(DecodeError::invalid(
                "stream data ends above 2^62 - 1",
                offset_at,
            ));
        }
        Ok(Self {
            id,
            offset,
            data,
            fin: frame_type & FIN != 0,
        })
    }
}

#[inline]
fn stream_type(offset: u64, has_len: bool, fin: bool) -> FrameType {
    let off = if offset == 0 { 0 } else { OFF };
    let len = if has_len { LEN } else { 0 };
    FrameType(FrameType::STREAM.0 | off | len | u64::from(fin))
}

const FIN: u64 = 0x01;
const LEN: u64 = 0x02;
const OFF: u64 = 0x04;

#[cfg(test)]
mod tests;
