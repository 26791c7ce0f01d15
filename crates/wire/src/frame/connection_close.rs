//! CONNECTION_CLOSE frames: the connection is over, and why. RFC 9000 §19.19.

use super::FrameType;
use crate::error::DecodeError;
use crate::error_code::{ApplicationErrorCode, TransportErrorCode};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Ends the connection. RFC 9000 §19.19.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionClose<'a> {
    /// Who closed it, with which code.
    pub kind: CloseKind,
    /// For humans; from the peer it is any bytes at all, UTF-8 or not.
    pub reason: &'a [u8],
}

/// Who closed the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseKind {
    /// The transport: type 0x1c.
    Transport {
        /// The error.
        error_code: TransportErrorCode,
        /// The type of the frame that caused it; 0 when that is unknown.
        frame_type: u64,
    },
    /// The application: type 0x1d.
    Application {
        /// The application's reason.
        error_code: ApplicationErrorCode,
    },
}

impl<'a> ConnectionClose<'a> {
    /// 0x1c or 0x1d.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        match self.kind {
            CloseKind::Transport { .. } => FrameType::CONNECTION_CLOSE,
            CloseKind::Application { .. } => FrameType::CONNECTION_CLOSE_APPLICATION,
        }
    }

    /// Bytes that [`ConnectionClose::encode`] writes.
    pub const fn encoded_len(&self) -> usize {
        let codes = match self.kind {
            CloseKind::Transport {
                error_code,
                frame_type,
            } => varint_len(error_code.value()) + varint_len(frame_type),
            CloseKind::Application { error_code } => varint_len(error_code.value()),
        };
        1 + codes + varint_len(self.reason.len() as u64) + self.reason.len()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        self.frame_type().encode(writer);
        match self.kind {
            CloseKind::Transport {
                error_code,
                frame_type,
            } => {
                writer.varint(error_code.value());
                writer.varint(frame_type);
            }
            CloseKind::Application { error_code } => writer.varint(error_code.value()),
        }
        writer.varint_bytes(self.reason);
    }

    /// Reads the fields behind the type.
    ///
    /// # Errors
    /// Truncated input.
    pub fn decode(reader: &mut Reader<'a>, frame_type: u64) -> Result<Self, DecodeError> {
        let error_code = reader.varint()?;
        let kind = if frame_type == FrameType::CONNECTION_CLOSE.0 {
            let error_code = TransportErrorCode::from_value(error_code);
            CloseKind::Transport {
                error_code,
                frame_type: reader.varint()?,
            }
        } else {
            CloseKind::Application {
                error_code: ApplicationErrorCode(error_code),
            }
        };
        Ok(Self {
            kind,
            reason: reader.varint_bytes()?,
        })
    }
}

#[cfg(test)]
mod tests;
