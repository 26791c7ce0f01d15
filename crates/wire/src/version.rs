//! Versions of QUIC. RFC 9000 §15, RFC 9369.

use std::fmt;

/// QUIC version 1. RFC 9000.
pub const VERSION_1: u32 = 0x0000_0001;

/// QUIC version 2. RFC 9369 §3.1.
pub const VERSION_2: u32 = 0x6b33_43cf;

/// The version field of Version Negotiation packets; never the version of a connection.
pub const NEGOTIATION: u32 = 0;

/// A version of QUIC that this crate supports.
///
/// Each of them is compatible with the other: a first flight of one can be converted into a first
/// flight of the other (RFC 9369 §4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Version {
    /// QUIC version 1. RFC 9000.
    #[default]
    V1,
    /// QUIC version 2. RFC 9369.
    V2,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// Returns the number in the version field of long headers.
    pub const fn value(self) -> u32 {
        match self {
            Self::V1 => VERSION_1,
            Self::V2 => VERSION_2,
        }
    }

    /// Returns the version with this number, or `None` if this crate does not support it.
    pub const fn from_value(value: u32) -> Option<Self> {
        match value {
            VERSION_1 => Some(Self::V1),
            VERSION_2 => Some(Self::V2),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "1",
            Self::V2 => "2",
        })
    }
}

/// A list of supported versions without repetitions, most preferred first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Versions([Option<Version>; Version::ALL.len()]);

impl Versions {
    /// The list with version 1 only.
    pub const V1: Self = Self([Some(Version::V1), None]);

    /// The list with all versions, oldest first.
    pub const ALL: Self = Self([Some(Version::V1), Some(Version::V2)]);

    /// Returns the versions in order of preference.
    pub fn iter(self) -> impl Iterator<Item = Version> + Clone {
        self.0.into_iter().flatten()
    }

    /// Returns the most preferred version, or `None` if the list is empty.
    pub const fn first(self) -> Option<Version> {
        self.0[0]
    }

    /// Returns true if the list has the version.
    pub fn contains(self, version: Version) -> bool {
        self.0.contains(&Some(version))
    }

    /// Returns the most preferred version for which `is_offered` returns true.
    pub fn choose(self, is_offered: impl FnMut(&Version) -> bool) -> Option<Version> {
        self.iter().find(is_offered)
    }

    /// Adds a version to the end unless the list has it.
    pub fn push(&mut self, version: Version) {
        if !self.contains(version)
            && let Some(place) = self.0.iter_mut().find(|place| place.is_none())
        {
            *place = Some(version);
        }
    }
}

impl FromIterator<Version> for Versions {
    fn from_iter<T: IntoIterator<Item = Version>>(versions: T) -> Self {
        let mut list = Self::default();
        for version in versions {
            list.push(version);
        }
        list
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Returns true if this crate supports the version.
pub const fn is_supported(version: u32) -> bool {
    Version::from_value(version).is_some()
}

/// Returns true for versions of the form `0x?a?a?a?a`. They are reserved to exercise version
/// negotiation and are never used. RFC 9000 §15.
pub const fn is_reserved(version: u32) -> bool {
    version & RESERVED_MASK == RESERVED_PATTERN
}

/// Returns a reserved version, chosen by `random`.
pub const fn reserved(random: u32) -> u32 {
    (random & !RESERVED_MASK) | RESERVED_PATTERN
}

const RESERVED_MASK: u32 = 0x0f0f_0f0f;
const RESERVED_PATTERN: u32 = 0x0a0a_0a0a;

#[cfg(test)]
mod tests;
