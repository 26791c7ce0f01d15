//! CONNECTION_CLOSE frames: the close of a connection and its reason. RFC 9000 §19.19.

use super::FrameType;
use crate::error::DecodeError;
use crate::error_code::{ApplicationErrorCode, TransportErrorCode};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A CONNECTION_CLOSE frame, which ends the connection. RFC 9000 §19.19.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionClose<'a> {
    /// The layer that closed the connection, with its error code.
    pub kind: CloseKind,
    /// A reason phrase for humans. The peer's phrase may be arbitrary bytes, UTF-8 or not.
    pub reason: &'a [u8],
}

/// The layer that closed a connection, with its error code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseKind {
    /// A close by the transport, type 0x1c.
    Transport {
        /// The transport error code.
        error_code: TransportErrorCode,
        /// The type of the frame that caused the error; 0 if unknown.
        frame_type: u64,
    },
    /// A close by the application, type 0x1d.
    Application {
        /// The application's error code.
        error_code: ApplicationErrorCode,
    },
}

impl<'a> ConnectionClose<'a> {
    /// Returns the frame type: 0x1c for the transport, 0x1d for the application.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        match self.kind {
            CloseKind::Transport { .. } => FrameType::CONNECTION_CLOSE,
            CloseKind::Application { .. } => FrameType::CONNECTION_CLOSE_APPLICATION,
        }
    }

    /// Returns the number of bytes that [`ConnectionClose::encode`] writes.
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

    /// Writes the frame, including its type.
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

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
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
