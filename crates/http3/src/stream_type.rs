//! Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).

/// A stream type that this crate distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamType {
    Control,
    Push,
    QpackEncoder,
    QpackDecoder,
    /// A reserved type or that of an unknown extension.
    Unknown,
}

impl StreamType {
    pub(crate) const fn from_value(value: u64) -> Self {
        match value {
            CONTROL => Self::Control,
            PUSH => Self::Push,
            QPACK_ENCODER => Self::QpackEncoder,
            QPACK_DECODER => Self::QpackDecoder,
            _ => Self::Unknown,
        }
    }
}

pub(crate) const CONTROL: u64 = 0x00;
const PUSH: u64 = 0x01;
pub(crate) const QPACK_ENCODER: u64 = 0x02;
pub(crate) const QPACK_DECODER: u64 = 0x03;
