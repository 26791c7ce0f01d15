//! Keys and secrets in pairs.

use crate::{HeaderKey, PacketKey, Secret};

/// What protects the packets of one direction.
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
    /// Seals what we send.
    pub local: Keys,
    /// Opens what the peer sends.
    pub peer: Keys,
}

/// The secrets of both directions.
#[derive(Debug)]
pub struct SecretPair {
    /// The secret of what we send.
    pub local: Secret,
    /// The secret of what the peer sends.
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
