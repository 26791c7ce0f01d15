//! Identifiers of connections.

/// Identifies a connection of one endpoint. The handle of a removed connection is never valid again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionHandle {
    pub(in crate::endpoint) index: u32,
    pub(in crate::endpoint) generation: u32,
}

impl ConnectionHandle {
    /// Returns a small number that is unique among the present connections, as an index for side tables.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the handle as a number other than 0, by which [`courser_base::foreign`] identifies the
    /// owner of values.
    pub fn to_bits(self) -> u64 {
        (u64::from(self.generation) << 32 | u64::from(self.index)) + 1
    }

    /// Converts a number from [`ConnectionHandle::to_bits`] back to the handle. Returns `None` for 0.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let bits = bits.checked_sub(1)?;
        Some(Self {
            index: u32::try_from(bits & u64::from(u32::MAX)).ok()?,
            generation: u32::try_from(bits >> 32).ok()?,
        })
    }
}
