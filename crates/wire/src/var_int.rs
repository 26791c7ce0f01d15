//! Integers in the range of a variable-length integer.

use std::fmt;

use crate::error_code::ApplicationErrorCode;
use crate::varint::MAX_VARINT;

/// An integer below 2^62, such as an application's error code. RFC 9000 §16.
///
/// Converted from small integer types with `into`, from larger ones with `try_into`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct VarInt(u64);

impl VarInt {
    /// The largest value, 2^62 - 1.
    pub const MAX: Self = Self(MAX_VARINT);

    /// Creates an integer from a value that always fits.
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// Creates an integer if the value fits.
    ///
    /// # Errors
    /// Returns [`TooLarge`] from 2^62 on.
    pub const fn from_u64(value: u64) -> Result<Self, TooLarge> {
        if value > MAX_VARINT {
            Err(TooLarge(value))
        } else {
            Ok(Self(value))
        }
    }

    /// Returns the number, which is below 2^62.
    pub const fn into_inner(self) -> u64 {
        self.0
    }

    /// Creates an integer from a decoded number, which always fits. The two upper bits are ignored.
    pub fn from_wire(value: u64) -> Self {
        Self(value & MAX_VARINT)
    }
}

/// An error for a number that does not fit into a variable-length integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLarge(u64);

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        write!(
            f,
            "{value} exceeds the largest variable-length integer, 2^62 - 1"
        )
    }
}

impl std::error::Error for TooLarge {}

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
    type Error = TooLarge;
    fn try_from(value: u64) -> Result<Self, TooLarge> {
        Self::from_u64(value)
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

impl From<VarInt> for ApplicationErrorCode {
    fn from(value: VarInt) -> Self {
        Self(value.0)
    }
}

impl From<ApplicationErrorCode> for VarInt {
    fn from(code: ApplicationErrorCode) -> Self {
        Self::from_wire(code.value())
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_to_the_62_does_not_fit() {
        assert_eq!(VarInt::try_from(1u64 << 62), Err(TooLarge(1 << 62)));
        assert_eq!(VarInt::try_from((1u64 << 62) - 1), Ok(VarInt::MAX));
    }
}
