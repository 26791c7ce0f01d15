//! Keys and secrets in pairs.

use crate::{HeaderKey, PacketKey, Secret};

/// The packet key and header key of one direction.
#[derive(Debug)]
pub struct Keys {
    /// Protects payloads.
    pub packet: PacketKey,
    /// Protects headers.
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

/// The secrets of both directions.
#[derive(Debug)]
pub struct SecretPair {
    /// The secret of outgoing packets.
    pub local: Secret,
    /// The secret of the peer's packets.
    pub peer: Secret,
}

impl SecretPair {
    /// Derives the keys of both directions.
    pub fn key_pair(&self) -> KeyPair {
        KeyPair {
            local: self.local.keys(),
            peer: self.peer.keys(),
        }
    }
}

impl From<&SecretPair> for KeyPair {
    fn from(secrets: &SecretPair) -> Self {
        secrets.key_pair()
    }
}
