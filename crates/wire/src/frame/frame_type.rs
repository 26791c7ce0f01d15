//! Frame types, and the errors of frames of these types. RFC 9000 §12.4, Table 3.

use std::fmt;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// The type of a frame, which precedes its fields. RFC 9000 §12.4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameType(pub u64);

impl FrameType {
    /// Type of PADDING frames.
    pub const PADDING: Self = Self(0x00);
    /// Type of PING frames.
    pub const PING: Self = Self(0x01);
    /// Type of ACK frames without ECN counts.
    pub const ACK: Self = Self(0x02);
    /// Type of ACK frames with ECN counts.
    pub const ACK_ECN: Self = Self(0x03);
    /// Type of RESET_STREAM frames.
    pub const RESET_STREAM: Self = Self(0x04);
    /// Type of STOP_SENDING frames.
    pub const STOP_SENDING: Self = Self(0x05);
    /// Type of CRYPTO frames.
    pub const CRYPTO: Self = Self(0x06);
    /// Type of NEW_TOKEN frames.
    pub const NEW_TOKEN: Self = Self(0x07);
    /// Type of STREAM frames without any of the bits FIN (1), LEN (2) and OFF (4).
    pub const STREAM: Self = Self(0x08);
    /// Type of STREAM frames with all three bits.
    pub const STREAM_LAST: Self = Self(0x0f);
    /// Type of MAX_DATA frames.
    pub const MAX_DATA: Self = Self(0x10);
    /// Type of MAX_STREAM_DATA frames.
    pub const MAX_STREAM_DATA: Self = Self(0x11);
    /// Type of MAX_STREAMS frames for bidirectional streams.
    pub const MAX_STREAMS_BIDI: Self = Self(0x12);
    /// Type of MAX_STREAMS frames for unidirectional streams.
    pub const MAX_STREAMS_UNI: Self = Self(0x13);
    /// Type of DATA_BLOCKED frames.
    pub const DATA_BLOCKED: Self = Self(0x14);
    /// Type of STREAM_DATA_BLOCKED frames.
    pub const STREAM_DATA_BLOCKED: Self = Self(0x15);
    /// Type of STREAMS_BLOCKED frames for bidirectional streams.
    pub const STREAMS_BLOCKED_BIDI: Self = Self(0x16);
    /// Type of STREAMS_BLOCKED frames for unidirectional streams.
    pub const STREAMS_BLOCKED_UNI: Self = Self(0x17);
    /// Type of NEW_CONNECTION_ID frames.
    pub const NEW_CONNECTION_ID: Self = Self(0x18);
    /// Type of RETIRE_CONNECTION_ID frames.
    pub const RETIRE_CONNECTION_ID: Self = Self(0x19);
    /// Type of PATH_CHALLENGE frames.
    pub const PATH_CHALLENGE: Self = Self(0x1a);
    /// Type of PATH_RESPONSE frames.
    pub const PATH_RESPONSE: Self = Self(0x1b);
    /// Type of CONNECTION_CLOSE frames of the transport.
    pub const CONNECTION_CLOSE: Self = Self(0x1c);
    /// Type of CONNECTION_CLOSE frames of the application.
    pub const CONNECTION_CLOSE_APPLICATION: Self = Self(0x1d);
    /// Type of HANDSHAKE_DONE frames.
    pub const HANDSHAKE_DONE: Self = Self(0x1e);
    /// Type of IMMEDIATE_ACK frames. draft-ietf-quic-ack-frequency-12 §5.
    pub const IMMEDIATE_ACK: Self = Self(0x1f);
    /// Type of RESET_STREAM_AT frames. draft-ietf-quic-reliable-stream-reset-10 §4.
    pub const RESET_STREAM_AT: Self = Self(0x24);
    /// Type of DATAGRAM frames that extend to the end of their packet. RFC 9221 §4.
    pub const DATAGRAM: Self = Self(0x30);
    /// Type of DATAGRAM frames with a Length field. RFC 9221 §4.
    pub const DATAGRAM_WITH_LENGTH: Self = Self(0x31);
    /// Type of ACK_FREQUENCY frames. draft-ietf-quic-ack-frequency-12 §4.
    pub const ACK_FREQUENCY: Self = Self(0xaf);

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

    const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::PADDING => "PADDING",
            Self::PING => "PING",
            Self::ACK | Self::ACK_ECN => "ACK",
            Self::RESET_STREAM => "RESET_STREAM",
            Self::RESET_STREAM_AT => "RESET_STREAM_AT",
            Self::STOP_SENDING => "STOP_SENDING",
            Self::CRYPTO => "CRYPTO",
            Self::NEW_TOKEN => "NEW_TOKEN",
            Self::MAX_DATA => "MAX_DATA",
            Self::MAX_STREAM_DATA => "MAX_STREAM_DATA",
            Self::MAX_STREAMS_BIDI | Self::MAX_STREAMS_UNI => "MAX_STREAMS",
            Self::DATA_BLOCKED => "DATA_BLOCKED",
            Self::STREAM_DATA_BLOCKED => "STREAM_DATA_BLOCKED",
            Self::STREAMS_BLOCKED_BIDI | Self::STREAMS_BLOCKED_UNI => "STREAMS_BLOCKED",
            Self::NEW_CONNECTION_ID => "NEW_CONNECTION_ID",
            Self::RETIRE_CONNECTION_ID => "RETIRE_CONNECTION_ID",
            Self::PATH_CHALLENGE => "PATH_CHALLENGE",
            Self::PATH_RESPONSE => "PATH_RESPONSE",
            Self::CONNECTION_CLOSE | Self::CONNECTION_CLOSE_APPLICATION => "CONNECTION_CLOSE",
            Self::HANDSHAKE_DONE => "HANDSHAKE_DONE",
            Self::IMMEDIATE_ACK => "IMMEDIATE_ACK",
            Self::ACK_FREQUENCY => "ACK_FREQUENCY",
            Self::DATAGRAM | Self::DATAGRAM_WITH_LENGTH => "DATAGRAM",
            stream if stream.is_stream() => "STREAM",
            _ => return None,
        })
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
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
