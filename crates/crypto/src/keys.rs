//! The keys of one direction and of both.

use crate::{HeaderKey, PacketKey};

/// The packet key and header key of one direction.
#[derive(Debug)]
pub struct Keys {
    /// Seals or opens payloads (RFC 9001 §5.3).
    pub packet: PacketKey,
    /// Applies or removes header protection (RFC 9001 §5.4).
    pub header: HeaderKey,
}

/// The keys of both directions.
#[derive(Debug)]
pub struct KeyPair {
    /// The keys that protect outgoing packets.
    pub local: Keys,
    /// The keys that open the peer's packets.
    pub peer: Keys,
}
