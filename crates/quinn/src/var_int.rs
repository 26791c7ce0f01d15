//! Integers in the range of a variable-length integer.

use std::fmt;

/// An integer below 2^62. RFC 9000 §16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VarInt(u64);

impl VarInt {
    /// The largest value, 2^62 - 1.
    pub const MAX: Self = Self((1 << 62) - 1);
    /// The number of bytes of the longest encoding.
    pub const MAX_SIZE: usize = 8;

    /// Creates one from a value that always fits.
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// Creates one if the value fits.
    ///
    /// # Errors
    /// Returns [`VarIntBoundsExceeded`] from 2^62 on.
    pub const fn from_u64(value: u64) -> Result<Self, VarIntBoundsExceeded> {
        match value > Self::MAX.0 {
            true => Err(VarIntBoundsExceeded),
            false => Ok(Self(value)),
        }
    }

    /// Creates one without an error: the two upper bits are ignored. quinn declares this function `unsafe`;
    /// here every value is allowed, and an `unsafe` block around the call is superfluous.
    pub const fn from_u64_unchecked(value: u64) -> Self {
        Self(value & Self::MAX.0)
    }

    /// Returns the value of the integer.
    pub const fn into_inner(self) -> u64 {
        self.0
    }
}

/// An error for a number that does not fit into a variable-length integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("value exceeds 2^62 - 1")]
pub struct VarIntBoundsExceeded;

impl From<u8> for VarInt {
    fn from(value: u8) -> Self {
        Self(value.into())
    }
}

impl From<u16> for VarInt {
    fn from(value: u16) -> Self {
        Self(value.into())
    }
}

impl From<u32> for VarInt {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl TryFrom<u64> for VarInt {
    type Error = VarIntBoundsExceeded;
    fn try_from(value: u64) -> Result<Self, VarIntBoundsExceeded> {
        Self::from_u64(value)
    }
}

impl TryFrom<u128> for VarInt {
    type Error = VarIntBoundsExceeded;
    fn try_from(value: u128) -> Result<Self, VarIntBoundsExceeded> {
        u64::try_from(value)
            .map_err(|_| VarIntBoundsExceeded)
            .and_then(Self::from_u64)
    }
}

impl TryFrom<usize> for VarInt {
    type Error = VarIntBoundsExceeded;
    fn try_from(value: usize) -> Result<Self, VarIntBoundsExceeded> {
        Self::from_u64(value as u64)
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

impl From<VarInt> for courser_quic::VarInt {
    fn from(value: VarInt) -> Self {
        Self::from_u64(value.0).unwrap_or(Self::MAX)
    }
}

impl From<courser_quic::VarInt> for VarInt {
    fn from(value: courser_quic::VarInt) -> Self {
        Self(value.into_inner())
    }
}

impl fmt::Debug for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
