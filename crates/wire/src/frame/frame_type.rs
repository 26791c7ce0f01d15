//! Frame types. RFC 9000 §12.4, Table 3.

use std::fmt;

use super::FrameError;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// The number in front of a frame. RFC 9000 §12.4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameType(pub u64);

impl FrameType {
    /// PADDING.
    pub const PADDING: Self = Self(0x00);
    /// PING.
    pub const PING: Self = Self(0x01);
    /// ACK without ECN counts.
    pub const ACK: Self = Self(0x02);
    /// ACK with ECN counts.
    pub const ACK_ECN: Self = Self(0x03);
    /// RESET_STREAM.
    pub const RESET_STREAM: Self = Self(0x04);
    /// STOP_SENDING.
    pub const STOP_SENDING: Self = Self(0x05);
    /// CRYPTO.
    pub const CRYPTO: Self = Self(0x06);
    /// NEW_TOKEN.
    pub const NEW_TOKEN: Self = Self(0x07);
    /// STREAM without any of the bits FIN (1), LEN (2) and OFF (4).
    pub const STREAM: Self = Self(0x08);
    /// STREAM with all three bits.
    pub const STREAM_LAST: Self = Self(0x0f);
    /// MAX_DATA.
    pub const MAX_DATA: Self = Self(0x10);
    /// MAX_STREAM_DATA.
    pub const MAX_STREAM_DATA: Self = Self(0x11);
    /// MAX_STREAMS for bidirectional streams.
    pub const MAX_STREAMS_BIDI: Self = Self(0x12);
    /// MAX_STREAMS for unidirectional streams.
    pub const MAX_STREAMS_UNI: Self = Self(0x13);
    /// DATA_BLOCKED.
    pub const DATA_BLOCKED: Self = Self(0x14);
    /// STREAM_DATA_BLOCKED.
    pub const STREAM_DATA_BLOCKED: Self = Self(0x15);
    /// STREAMS_BLOCKED for bidirectional streams.
    pub const STREAMS_BLOCKED_BIDI: Self = Self(0x16);
    /// STREAMS_BLOCKED for unidirectional streams.
    pub const STREAMS_BLOCKED_UNI: Self = Self(0x17);
    /// NEW_CONNECTION_ID.
    pub const NEW_CONNECTION_ID: Self = Self(0x18);
    /// RETIRE_CONNECTION_ID.
    pub const RETIRE_CONNECTION_ID: Self = Self(0x19);
    /// PATH_CHALLENGE.
    pub const PATH_CHALLENGE: Self = Self(0x1a);
    /// PATH_RESPONSE.
    pub const PATH_RESPONSE: Self = Self(0x1b);
    /// CONNECTION_CLOSE by the transport.
    pub const CONNECTION_CLOSE: Self = Self(0x1c);
    /// CONNECTION_CLOSE by the application.
    pub const CONNECTION_CLOSE_APPLICATION: Self = Self(0x1d);
    /// HANDSHAKE_DONE.
    pub const HANDSHAKE_DONE: Self = Self(0x1e);
    /// IMMEDIATE_ACK. draft-ietf-quic-ack-frequency-12 §5.
    pub const IMMEDIATE_ACK: Self = Self(0x1f);
    /// DATAGRAM that ends with its packet. RFC 9221 §4.
    pub const DATAGRAM: Self = Self(0x30);
    /// DATAGRAM with a Length field. RFC 9221 §4.
    pub const DATAGRAM_WITH_LENGTH: Self = Self(0x31);
    /// ACK_FREQUENCY. draft-ietf-quic-ack-frequency-12 §4.
    pub const ACK_FREQUENCY: Self = Self(0xaf);

    /// The number on the wire.
    #[inline]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// True for the eight types of STREAM frames.
    #[inline]
    pub const fn is_stream(self) -> bool {
        self.0 & !0b111 == Self::STREAM.0
    }

    /// Writes the type in its shortest encoding, as RFC 9000 §12.4 wants it.
    #[inline]
    pub(super) fn encode(self, writer: &mut Writer<'_>) {
        writer.varint(self.0);
    }

    /// Reads a type; an encoding longer than needed is an error.
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        match reader.peek() {
            Some(first @ 0..=0x3f) => {
                // Cannot fail: the byte was just seen.
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

#[cfg(test)]
mod tests;
