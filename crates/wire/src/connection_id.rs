//! Connection IDs. RFC 9000 §5.1.

use std::fmt;
use std::ops::Deref;

use crate::writer::Writer;

/// A connection ID of QUIC version 1: 0 to 20 bytes, kept inline.
///
/// Connection IDs of other versions may be longer (RFC 8999 §5.3); where they matter they stay
/// slices of the datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId {
    /// Zero beyond `len`, so that the derived comparisons hold.
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl ConnectionId {
    /// The longest connection ID of version 1. RFC 9000 §17.2.
    pub const MAX_LEN: usize = 20;

    /// The connection ID without bytes.
    pub const EMPTY: Self = Self {
        bytes: [0; Self::MAX_LEN],
        len: 0,
    };

    /// Copies `id`; `None` when it is longer than 20 bytes.
    #[inline]
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = u8::try_from(id.len()).ok()?;
        let mut bytes = [0; Self::MAX_LEN];
        // Eight bytes is what we give out by default, and every 1-RTT packet comes by here:
        // a copy of known size is two instructions, any other a call.
        if let Some(eight) = id.as_array::<8>() {
            bytes[..8].copy_from_slice(eight);
        } else {
            bytes.get_mut(..id.len())?.copy_from_slice(id);
        }
        Some(Self { bytes, len })
    }

    /// Writes the length in one byte, then the bytes.
    #[inline]
    pub(crate) fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(self.len);
        writer.bytes(self);
    }

    /// Number of bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True when there are no bytes.
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
