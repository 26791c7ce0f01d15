//! Errors of decoding.

use std::fmt;

/// The error of bytes that cannot be decoded: its cause and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// The cause of the error.
    pub kind: DecodeErrorKind,
    /// Offset of the invalid field from the start of the input.
    pub offset: usize,
}

/// The cause of a decoding error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeErrorKind {
    /// The input ends inside a field.
    Truncated,
    /// A field contains a value that its definition forbids. The text names the field and the rule.
    Invalid(&'static str),
    /// The frame type is unknown: no negotiated extension defines it. RFC 9000 §12.4.
    UnknownFrame(u64),
    /// The frame type is encoded in a longer varint than necessary. RFC 9000 §12.4.
    OverlongFrameType,
}

impl DecodeError {
    /// Creates the error of a field at `offset` with a forbidden value.
    #[cold]
    pub(crate) const fn invalid(rule: &'static str, offset: usize) -> Self {
        Self {
            kind: DecodeErrorKind::Invalid(rule),
            offset,
        }
    }

    /// Creates the error of an input that ends inside the field at `offset`.
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
