//! Capsules on the CONNECT stream of a session (draft-ietf-webtrans-http3-16 §4.7, §5.6, §6).

use bytes::{Bytes, BytesMut};
use courser_http3::{Capsule, Code, Error, Scope};
use courser_wire::{Direction, MAX_STREAMS, Reader, Writer, varint_len};

use crate::code::{self, ApplicationCode};

/// A capsule of a session, with its content checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionCapsule {
    /// `WT_CLOSE_SESSION`: the session ends.
    Close(CloseReason),
    /// `WT_DRAIN_SESSION`: the application is asked to end the session soon.
    Drain,
    /// `WT_MAX_DATA`: the bytes that the receiver may send in the session.
    MaxData(u64),
    /// `WT_MAX_STREAMS`: the streams in a direction that the receiver may open in the session.
    MaxStreams(Direction, u64),
    /// `WT_DATA_BLOCKED`: the limit at which the sender cannot send.
    DataBlocked(u64),
    /// `WT_STREAMS_BLOCKED`: the limit at which the sender cannot open a stream.
    StreamsBlocked(Direction, u64),
}

/// The code and the message with which an application ends a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CloseReason {
    /// The code, 0 by default.
    pub code: ApplicationCode,
    /// The message, at most 1024 bytes (limit K308).
    pub message: String,
}

impl CloseReason {
    /// Creates a reason. A message of more than 1024 bytes is cut before the character that exceeds them.
    pub fn new(code: impl Into<ApplicationCode>, message: &str) -> Self {
        let mut end = message.len().min(LONGEST_MESSAGE);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            code: code.into(),
            message: message[..end].to_owned(),
        }
    }
}

impl SessionCapsule {
    /// Returns the longest value of a capsule that a session reads, or `None` for types that it skips.
    ///
    /// Without flow control, its capsules are skipped (draft-ietf-webtrans-http3-16 §5.1).
    pub(crate) const fn longest(kind: u64, flow_control: bool) -> Option<usize> {
        match kind {
            CLOSE_SESSION => Some(4 + LONGEST_MESSAGE),
            DRAIN_SESSION => Some(0),
            MAX_STREAM_DATA | STREAM_DATA_BLOCKED => Some(16),
            MAX_DATA | MAX_STREAMS_BIDI | MAX_STREAMS_UNI | DATA_BLOCKED | STREAMS_BLOCKED_BIDI
            | STREAMS_BLOCKED_UNI
                if flow_control =>
            {
                Some(8)
            }
            _ => None,
        }
    }

    /// Decodes a capsule of a type that [`longest`](Self::longest) returns.
    ///
    /// # Errors
    ///
    /// Returns an error of the session's CONNECT stream: `H3_MESSAGE_ERROR` for content that does not fit the type,
    /// and `WT_FLOW_CONTROL_ERROR` for more than 2^60 streams and for the capsules of single streams.
    pub(crate) fn decode(capsule: &Capsule) -> Result<Self, Error> {
        let value = &capsule.value[..];
        let streams = |direction, to: fn(Direction, u64) -> Self| {
            let count = integer(value)?;
            if count > MAX_STREAMS {
                return Err(flow_control("more than 2^60 streams"));
            }
            Ok(to(direction, count))
        };
        match capsule.kind {
            CLOSE_SESSION => Self::decode_close(value),
            DRAIN_SESSION if value.is_empty() => Ok(Self::Drain),
            DRAIN_SESSION => Err(malformed("WT_DRAIN_SESSION with content")),
            MAX_DATA => integer(value).map(Self::MaxData),
            DATA_BLOCKED => integer(value).map(Self::DataBlocked),
            MAX_STREAMS_BIDI => streams(Direction::Bidirectional, Self::MaxStreams),
            MAX_STREAMS_UNI => streams(Direction::Unidirectional, Self::MaxStreams),
            STREAMS_BLOCKED_BIDI => streams(Direction::Bidirectional, Self::StreamsBlocked),
            STREAMS_BLOCKED_UNI => streams(Direction::Unidirectional, Self::StreamsBlocked),
            _ => Err(flow_control("a capsule for the flow control of one stream")),
        }
    }

    fn decode_close(value: &[u8]) -> Result<Self, Error> {
        let Some((code, message)) = value.split_first_chunk() else {
            return Err(malformed("WT_CLOSE_SESSION without a code"));
        };
        if message.len() > LONGEST_MESSAGE {
            return Err(malformed("WT_CLOSE_SESSION with more than 1024 bytes"));
        }
        let message = std::str::from_utf8(message)
            .map_err(|_| malformed("WT_CLOSE_SESSION with a message that is not UTF-8"))?;
        Ok(Self::Close(CloseReason {
            code: ApplicationCode(u32::from_be_bytes(*code)),
            message: message.to_owned(),
        }))
    }

    /// Encodes the capsule.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Close(reason) => {
                let len = 4 + reason.message.len();
                let mut out = header(CLOSE_SESSION, len);
                out.extend_from_slice(&reason.code.0.to_be_bytes());
                out.extend_from_slice(reason.message.as_bytes());
                out.freeze()
            }
            Self::Drain => header(DRAIN_SESSION, 0).freeze(),
            Self::MaxData(value) => of_integer(MAX_DATA, *value),
            Self::DataBlocked(value) => of_integer(DATA_BLOCKED, *value),
            Self::MaxStreams(direction, value) => {
                of_integer(MAX_STREAMS_BIDI + offset(*direction), *value)
            }
            Self::StreamsBlocked(direction, value) => {
                of_integer(STREAMS_BLOCKED_BIDI + offset(*direction), *value)
            }
        }
    }
}

/// Returns the error of a malformed capsule, which resets the CONNECT stream.
pub(crate) const fn malformed(reason: &'static str) -> Error {
    stream_error(Code::MESSAGE_ERROR, reason)
}

/// Returns the error of a session whose peer violates flow control.
pub(crate) const fn flow_control(reason: &'static str) -> Error {
    stream_error(code::FLOW_CONTROL_ERROR, reason)
}

/// Returns an error that resets the CONNECT stream.
pub(crate) const fn stream_error(code: Code, reason: &'static str) -> Error {
    Error {
        code,
        scope: Scope::Stream,
        reason,
    }
}

/// Returns the only integer of a value.
fn integer(value: &[u8]) -> Result<u64, Error> {
    let mut reader = Reader::new(value);
    match (reader.varint(), reader.is_empty()) {
        (Ok(integer), true) => Ok(integer),
        _ => Err(malformed("a flow control capsule that is not one integer")),
    }
}

fn of_integer(kind: u64, value: u64) -> Bytes {
    let mut out = header(kind, varint_len(value));
    put_varint(&mut out, value);
    out.freeze()
}

fn header(kind: u64, len: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(varint_len(kind) + varint_len(len as u64) + len);
    put_varint(&mut out, kind);
    put_varint(&mut out, len as u64);
    out
}

fn put_varint(out: &mut BytesMut, value: u64) {
    let mut bytes = [0; 8];
    let mut writer = Writer::new(&mut bytes);
    writer.varint(value);
    let len = writer.position();
    out.extend_from_slice(&bytes[..len]);
}

/// Types for unidirectional streams follow those for bidirectional ones.
const fn offset(direction: Direction) -> u64 {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

const CLOSE_SESSION: u64 = 0x2843;
const DRAIN_SESSION: u64 = 0x78ae;
const MAX_DATA: u64 = 0x190b_4d3d;
const MAX_STREAM_DATA: u64 = 0x190b_4d3e;
const MAX_STREAMS_BIDI: u64 = 0x190b_4d3f;
const MAX_STREAMS_UNI: u64 = 0x190b_4d40;
const DATA_BLOCKED: u64 = 0x190b_4d41;
const STREAM_DATA_BLOCKED: u64 = 0x190b_4d42;
const STREAMS_BLOCKED_BIDI: u64 = 0x190b_4d43;
const STREAMS_BLOCKED_UNI: u64 = 0x190b_4d44;

/// Longest message of `WT_CLOSE_SESSION` in bytes (limit K308).
const LONGEST_MESSAGE: usize = 1024;

#[cfg(test)]
mod tests;
