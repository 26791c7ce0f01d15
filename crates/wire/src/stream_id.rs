//! Stream IDs: the index, the initiator and the direction of a stream. RFC 9000 §2.1.

use std::fmt;

use courser_base::Side;

use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::MAX_VARINT;

/// The largest number of streams of one type, because the IDs of more would not fit a varint.
/// RFC 9000 §4.6.
pub const MAX_STREAMS: u64 = 1 << 60;

/// The direction of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Both ends send data.
    Bidirectional,
    /// Only the initiator sends data.
    Unidirectional,
}

/// A stream ID. RFC 9000 §2.1.
///
/// IDs are ordered by value. Within one type of stream this is the order of opening.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(u64);

impl StreamId {
    /// Returns the ID of the stream of this type with the given index, counted from zero.
    ///
    /// # Panics
    /// Panics in debug builds if `index` is 2^60 or more.
    #[inline]
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        debug_assert!(index < MAX_STREAMS);
        let initiator = match initiator {
            Side::Client => 0,
            Side::Server => SERVER,
        };
        let direction = match direction {
            Direction::Bidirectional => 0,
            Direction::Unidirectional => UNIDIRECTIONAL,
        };
        Self(index << 2 | direction | initiator)
    }

    /// Returns the stream ID with this number on the wire.
    ///
    /// # Panics
    /// Panics in debug builds if `value` is above 2^62 - 1.
    #[inline]
    pub const fn from_value(value: u64) -> Self {
        debug_assert!(value <= MAX_VARINT);
        Self(value)
    }

    /// Returns the number on the wire.
    #[inline]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the end that opened the stream.
    #[inline]
    pub const fn initiator(self) -> Side {
        if self.0 & SERVER == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Returns the direction of the stream.
    #[inline]
    pub const fn direction(self) -> Direction {
        if self.0 & UNIDIRECTIONAL == 0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        }
    }

    /// Returns the index among the streams of this type, counted from zero.
    #[inline]
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }

    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint().map(Self)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const SERVER: u64 = 0b01;
const UNIDIRECTIONAL: u64 = 0b10;

#[cfg(test)]
mod tests;
