//! Key exchange with elliptic curves. RFC 8446 §4.2.8.2.

use aws_lc_rs::agreement::{self, EphemeralPrivateKey, PublicKey, UnparsedPublicKey};
use aws_lc_rs::rand::SystemRandom;
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};

use super::fips::is_fips;

/// X25519 (RFC 7748).
pub(crate) static X25519: &dyn SupportedKxGroup = &Curve::X25519;
/// P-256, with uncompressed points.
pub(crate) static P256: &dyn SupportedKxGroup = &Curve::P256;
/// P-384, with uncompressed points.
pub(crate) static P384: &dyn SupportedKxGroup = &Curve::P384;

/// A group of an elliptic curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Curve {
    X25519,
    P256,
    P384,
}

impl Curve {
    fn algorithm(self) -> &'static agreement::Algorithm {
        match self {
            Self::X25519 => &agreement::X25519,
            Self::P256 => &agreement::ECDH_P256,
            Self::P384 => &agreement::ECDH_P384,
        }
    }

    /// Returns the length of a public key in bytes.
    pub(super) const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::P256 => 1 + 2 * 32,
            Self::P384 => 1 + 2 * 48,
        }
    }

    /// Returns true if bytes have the form of a public key. AWS-LC checks that a point is on the curve, but
    /// accepts compressed points too, which TLS does not permit.
    fn has_form(self, key: &[u8]) -> bool {
        key.len() == self.public_len()
            && (self == Self::X25519 || key.first() == Some(&UNCOMPRESSED_POINT))
    }
}

impl SupportedKxGroup for Curve {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let private = EphemeralPrivateKey::generate(self.algorithm(), &SystemRandom::new())
            .map_err(|_| GetRandomFailed)?;
        let public = private.compute_public_key().map_err(|_| GetRandomFailed)?;
        Ok(Box::new(Exchange {
            curve: *self,
            private,
            public,
        }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        match self {
            Self::X25519 => NamedGroup::X25519,
            Self::P256 => NamedGroup::secp256r1,
            Self::P384 => NamedGroup::secp384r1,
        }
    }

    fn fips(&self) -> bool {
        *self != Self::X25519 && is_fips()
    }
}

/// A key exchange whose other half has not arrived.
struct Exchange {
    curve: Curve,
    private: EphemeralPrivateKey,
    public: PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        if !self.curve.has_form(peer) {
            return Err(INVALID_KEY_SHARE);
        }
        let peer = UnparsedPublicKey::new(self.curve.algorithm(), peer);
        agreement::agree_ephemeral(self.private, peer, INVALID_KEY_SHARE, |secret| {
            Ok(SharedSecret::from(secret))
        })
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.curve.name()
    }
}

/// The error for a key that the peer must not send.
pub(super) const INVALID_KEY_SHARE: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// The first byte of a point with both coordinates. SEC 1 §2.3.3.
const UNCOMPRESSED_POINT: u8 = 4;
