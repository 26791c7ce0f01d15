//! Path IDs. RFC 10069 §2.

use std::fmt;

/// The ID of a path of a connection with several paths. RFC 10069 §2.
///
/// Each ID has its own packet numbers and connection IDs. A connection with one path has the ID 0 only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PathId(u32);

impl PathId {
    /// The path of the handshake.
    pub const ZERO: Self = Self(0);
    /// The largest ID: nonces have 32 bits for it (RFC 10069 §2.4).
    pub const MAX: Self = Self(u32::MAX);

    /// Creates an ID.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// Returns the number.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Returns the ID that a frame or a parameter carries, or `None` if it is above 2^32 - 1.
    pub fn from_wire(value: u64) -> Option<Self> {
        u32::try_from(value).ok().map(Self)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_32_bits() {
        assert_eq!(PathId::from_wire((1 << 32) - 1), Some(PathId::MAX));
        assert_eq!(PathId::from_wire(1 << 32), None);
    }
}
