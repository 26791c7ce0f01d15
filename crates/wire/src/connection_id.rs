//! Connection IDs. RFC 9000 §5.1.

use std::fmt;
use std::ops::Deref;

use crate::writer::Writer;

/// A connection ID of QUIC version 1: 0 to 20 bytes, stored inline.
///
/// Connection IDs of other versions may be longer (RFC 8999 §5.3). Where they matter, they stay
/// slices of the datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId {
    /// Zero beyond `len`, so that the derived comparisons are correct.
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
