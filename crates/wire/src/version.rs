//! Versions of QUIC. RFC 9000 §15.

/// QUIC version 1. RFC 9000.
pub const VERSION_1: u32 = 0x0000_0001;

/// The version field of Version Negotiation packets; never the version of a connection.
pub const NEGOTIATION: u32 = 0;

/// Returns true if this crate supports the version.
pub const fn is_supported(version: u32) -> bool {
    version == VERSION_1
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
