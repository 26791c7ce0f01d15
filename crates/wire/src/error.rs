//! Why bytes could not be understood.

use std::fmt;

/// Bytes that do not decode: what was wrong and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// What was wrong.
    pub kind: DecodeErrorKind,
    /// Where the offending field starts, counted from the start of the input.
    pub offset: usize,
}

/// What was wrong with the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeErrorKind {
    /// The input ended inside a field.
    Truncated,
    /// A field holds a value that its definition forbids; the text names field and rule.
    Invalid(&'static str),
    /// A frame type that no negotiated extension defines. RFC 9000 §12.4.
    UnknownFrame(u64),
    /// A frame type in a longer varint than it needs. RFC 9000 §12.4.
    OverlongFrameType,
}

impl DecodeError {
    /// A field at `offset` holds a forbidden value.
    #[cold]
    pub(crate) const fn invalid(rule: &'static str, offset: usize) -> Self {
        Self {
            kind: DecodeErrorKind::Invalid(rule),
            offset,
        }
    }

    /// The input ended inside the field at `offset`.
    #[cold]
    pub(crate) const fn truncated(offset: usize) -> Self {
        Self {
            kind: DecodeErrorKind::Truncated,
            offset,
        }
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("truncated"),
            Self::Invalid(rule) => f.write_str(rule),
            Self::UnknownFrame(frame_type) => write!(f, "unknown frame type {frame_type:#x}"),
            Self::OverlongFrameType => f.write_str("frame type is not in its shortest encoding"),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl std::error::Error for DecodeError {}
