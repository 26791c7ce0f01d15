//! Traffic secrets and the keys derived from them. RFC 9001 §5.1, RFC 9369 §3.3.2.

use std::fmt;

use courser_wire::VERSION_2;
use zeroize::{Zeroize, Zeroizing};

use crate::hkdf_label::expand_label;
use crate::suite::MAX_KEY_LEN;
use crate::{CipherSuite, HeaderKey, KeyPair, Keys, PacketKey};

/// A traffic secret of one direction, erased when dropped.
pub struct Secret {
    suite: CipherSuite,
    labels: Labels,
    /// The secret, followed by unused bytes if the hash output is shorter.
    bytes: [u8; MAX_SECRET_LEN],
}

impl Secret {
    /// Wraps a secret that TLS derived for `suite`. Its keys are those of version 1.
    ///
    /// # Panics
    /// Panics if the length of `bytes` differs from the output length of the suite's hash.
    pub fn new(suite: CipherSuite, bytes: &[u8]) -> Self {
        let len = suite.hash().output_len();
        assert_eq!(bytes.len(), len, "a traffic secret is as long as the hash");
        let mut secret = Self {
            suite,
            labels: Labels::V1,
            bytes: [0; MAX_SECRET_LEN],
        };
        secret.bytes[..len].copy_from_slice(bytes);
        secret
    }

    /// Returns the secret with the labels of a version, under which keys are derived. Versions other
    /// than 2 have those of version 1. RFC 9369 §3.3.2.
    #[must_use]
    pub fn of_version(mut self, version: u32) -> Self {
        self.labels = match version {
            VERSION_2 => Labels::V2,
            _ => Labels::V1,
        };
        self
    }

    /// Returns the cipher suite of the secret.
    pub fn suite(&self) -> CipherSuite {
        self.suite
    }

    /// Derives the key and IV that protect packets.
    pub fn packet_key(&self) -> PacketKey {
        let mut key = Zeroizing::new([0; MAX_KEY_LEN]);
        let key = &mut key[..self.suite.key_len()];
        self.expand(self.labels.key(), key);
        let mut iv = Zeroizing::new([0; 12]);
        self.expand(self.labels.iv(), iv.as_mut());
        PacketKey::new(self.suite, key, &iv)
    }

    /// Derives the header protection key. Key updates do not change it, so derive it from the first
    /// secret only (RFC 9001 §6.1).
    pub fn header_key(&self) -> HeaderKey {
        self.header_key_by(HeaderKey::new)
    }

    fn header_key_by(&self, create: impl FnOnce(CipherSuite, &[u8]) -> HeaderKey) -> HeaderKey {
        let mut key = Zeroizing::new([0; MAX_KEY_LEN]);
        let key = &mut key[..self.suite.key_len()];
        self.expand(self.labels.header(), key);
        create(self.suite, key)
    }

    /// Derives keys for the few packets of a handshake, which take little memory.
    fn handshake_keys(&self) -> Keys {
        Keys {
            packet: self.packet_key(),
            header: self.header_key_by(HeaderKey::compact),
        }
    }

    /// Derives the packet key and the header key.
    pub fn keys(&self) -> Keys {
        Keys {
            packet: self.packet_key(),
            header: self.header_key(),
        }
    }

    /// Derives the secret that replaces this one in a key update. RFC 9001 §6.1.
    #[must_use]
    pub fn next(&self) -> Self {
        self.derive(self.labels.update())
    }

    /// Derives a secret of the same length under `label`.
    pub(crate) fn derive(&self, label: &[u8]) -> Self {
        let mut next = Self {
            suite: self.suite,
            labels: self.labels,
            bytes: [0; MAX_SECRET_LEN],
        };
        let len = self.suite.hash().output_len();
        self.expand(label, &mut next.bytes[..len]);
        next
    }

    fn expand(&self, label: &[u8], out: &mut [u8]) {
        expand_label(self.suite.hash(), self.as_bytes(), label, &[], out)
            .expect("labels and outputs of packet protection are short");
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.suite.hash().output_len()]
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
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
    /// Returns the secrets with the labels of a version; see [`Secret::of_version`].
    #[must_use]
    pub fn of_version(self, version: u32) -> Self {
        Self {
            local: self.local.of_version(version),
            peer: self.peer.of_version(version),
        }
    }

    /// Derives the keys of both directions for Initial or Handshake packets. Those of other packets are
    /// [`OneRttKeys`](crate::OneRttKeys) and [`Secret::keys`].
    pub fn key_pair(&self) -> KeyPair {
        KeyPair {
            local: self.local.handshake_keys(),
            peer: self.peer.handshake_keys(),
        }
    }
}

impl From<&SecretPair> for KeyPair {
    fn from(secrets: &SecretPair) -> Self {
        secrets.key_pair()
    }
}

/// The labels under which keys are derived. RFC 9001 §5.1, RFC 9369 §3.3.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Labels {
    V1,
    V2,
}

impl Labels {
    fn key(self) -> &'static [u8] {
        match self {
            Self::V1 => b"quic key",
            Self::V2 => b"quicv2 key",
        }
    }

    fn iv(self) -> &'static [u8] {
        match self {
            Self::V1 => b"quic iv",
            Self::V2 => b"quicv2 iv",
        }
    }

    fn header(self) -> &'static [u8] {
        match self {
            Self::V1 => b"quic hp",
            Self::V2 => b"quicv2 hp",
        }
    }

    fn update(self) -> &'static [u8] {
        match self {
            Self::V1 => b"quic ku",
            Self::V2 => b"quicv2 ku",
        }
    }
}

const MAX_SECRET_LEN: usize = 48;

#[cfg(test)]
mod tests;
