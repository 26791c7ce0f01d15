//! Connection IDs. RFC 9000 §5.1.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::writer::Writer;

/// A connection ID of QUIC version 1: 0 to 20 bytes, stored inline.
///
/// Connection IDs of other versions may be longer (RFC 8999 §5.3). Where they matter, they stay
/// slices of the datagram.
#[derive(Clone, Copy, Eq, PartialOrd, Ord, Default)]
pub struct ConnectionId {
    /// Zero beyond `len`, so that the derived order is correct.
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl ConnectionId {
    /// The length of the longest connection ID in version 1. RFC 9000 §17.2.
    pub const MAX_LEN: usize = 20;

    /// The zero-length connection ID.
    pub const EMPTY: Self = Self {
        bytes: [0; Self::MAX_LEN],
        len: 0,
    };

    /// Copies `id`. Returns `None` if it is longer than 20 bytes.
    #[inline]
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = u8::try_from(id.len()).ok()?;
        let mut bytes = [0; Self::MAX_LEN];
        // Our connection IDs have eight bytes by default, and every 1-RTT packet is read here. A
        // copy of constant size takes two instructions, any other takes a call.
        if let Ok(eight) = <&[u8; 8]>::try_from(id) {
            bytes[..8].copy_from_slice(eight);
        } else {
            bytes.get_mut(..id.len())?.copy_from_slice(id);
        }
        Some(Self { bytes, len })
    }

    /// Writes the length as one byte, then the bytes.
    #[inline]
    pub(crate) fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(self.len);
        writer.bytes(self);
    }

    /// Returns the number of bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns true if there are no bytes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The ID of each received packet is compared right after it was copied. A comparison of all 20
/// bytes at once would wait until the copy is in the cache, so the usual eight bytes are compared
/// first.
impl PartialEq for ConnectionId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let first = |id: &Self| u64::from_ne_bytes(std::array::from_fn(|at| id.bytes[at]));
        self.len == other.len
            && first(self) == first(other)
            && (self.len <= 8 || self.bytes[8..] == other.bytes[8..])
    }
}

impl Hash for ConnectionId {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
        self.len.hash(state);
    }
}

impl Deref for ConnectionId {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }
}

impl AsRef<[u8]> for ConnectionId {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

#[cfg(test)]
mod tests;
