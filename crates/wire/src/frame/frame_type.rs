//! Frame types, and the errors of frames of these types. RFC 9000 §12.4, Table 3.

use std::fmt;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// The type of a frame, which precedes its fields. RFC 9000 §12.4.
///
/// The constants of the types come from the table of frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameType(pub u64);

impl FrameType {
    /// Type of STREAM frames with all three bits.
    pub const STREAM_LAST: Self = Self(0x0f);

    /// Returns the number on the wire.
    #[inline]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns true for the eight types of STREAM frames.
    #[inline]
    pub const fn is_stream(self) -> bool {
        self.0 & !0b111 == Self::STREAM.0
    }

    /// Writes the type in its shortest encoding, as RFC 9000 §12.4 requires.
    #[inline]
    pub(super) fn encode(self, writer: &mut Writer<'_>) {
        writer.varint(self.0);
    }

    /// Reads a type. An encoding longer than necessary is an error.
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        match reader.peek() {
            Some(first @ 0..=0x3f) => {
                // This cannot fail, because the byte was just peeked.
                let _ = reader.u8();
                Ok(Self(u64::from(first)))
            }
            _ => Self::decode_long(reader),
        }
    }

    #[cold]
    fn decode_long(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let offset = reader.offset();
        let value = reader.varint().map_err(|error| FrameError {
            error,
            frame_type: 0,
        })?;
        if varint_len(value) < reader.offset() - offset {
            let kind = DecodeErrorKind::OverlongFrameType;
            return Err(FrameError {
                error: DecodeError { kind, offset },
                frame_type: value,
            });
        }
        Ok(Self(value))
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Some(kind) => f.write_str(kind.name()),
            None => write!(f, "frame type {:#x}", self.0),
        }
    }
}

/// The error of a frame that cannot be decoded: FRAME_ENCODING_ERROR, or PROTOCOL_VIOLATION for a
/// type that is not in its shortest encoding. RFC 9000 §12.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameError {
    /// The cause of the error and its offset in the payload.
    pub error: DecodeError,
    /// The type of the frame, for use in CONNECTION_CLOSE; 0 if it cannot be read.
    pub frame_type: u64,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", FrameType(self.frame_type), self.error)
    }
}

impl std::error::Error for FrameError {}

#[cfg(test)]
mod tests;
