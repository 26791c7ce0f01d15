//! Versions of QUIC. RFC 9000 §15.

/// QUIC version 1. RFC 9000.
pub const VERSION_1: u32 = 0x0000_0001;

/// The version field of Version Negotiation packets; never the version of a connection.
pub const NEGOTIATION: u32 = 0;

/// True for a version that this crate can read.
pub const fn is_supported(version: u32) -> bool {
    version == VERSION_1
}

/// True for `0x?a?a?a?a`: versions that are reserved to exercise negotiation and that nobody
/// ever speaks. RFC 9000 §15.
pub const fn is_reserved(version: u32) -> bool {
    version & RESERVED_MASK == RESERVED_PATTERN
}

/// A reserved version; `random` chooses which one.
pub const fn reserved(random: u32) -> u32 {
    (random & !RESERVED_MASK) | RESERVED_PATTERN
}

const RESERVED_MASK: u32 = 0x0f0f_0f0f;
const RESERVED_PATTERN: u32 = 0x0a0a_0a0a;

#[cfg(test)]
mod tests;
