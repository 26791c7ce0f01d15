//! Key exchange with ML-KEM, alone (draft-ietf-tls-mlkem) and with a curve (draft-ietf-tls-ecdhe-mlkem).

use aws_lc_rs::kem::{self, AlgorithmId, DecapsulationKey, EncapsulationKey};
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, ProtocolVersion};

use super::agreement::{Curve, INVALID_KEY_SHARE};
use super::fips::is_fips;

/// ML-KEM-768 and X25519.
pub(crate) static X25519_ML_KEM_768: &dyn SupportedKxGroup = &Hybrid {
    group: NamedGroup::X25519MLKEM768,
    curve: Curve::X25519,
    order: Order::KemFirst,
};
/// P-256 and ML-KEM-768.
pub(crate) static P256_ML_KEM_768: &dyn SupportedKxGroup = &Hybrid {
    group: NamedGroup::secp256r1MLKEM768,
    curve: Curve::P256,
    order: Order::CurveFirst,
};
/// ML-KEM-768.
pub(crate) static ML_KEM_768: &dyn SupportedKxGroup = &MlKem::Kem768;
/// ML-KEM-1024.
pub(crate) static ML_KEM_1024: &dyn SupportedKxGroup = &MlKem::Kem1024;

/// A parameter set of ML-KEM (FIPS 203 §8). The client sends an encapsulation key, the server a ciphertext.
#[derive(Clone, Copy, Debug)]
enum MlKem {
    Kem768,
    Kem1024,
}

impl MlKem {
    fn algorithm(self) -> &'static kem::Algorithm<AlgorithmId> {
        match self {
            Self::Kem768 => &kem::ML_KEM_768,
            Self::Kem1024 => &kem::ML_KEM_1024,
        }
    }

    fn decapsulation(self) -> Result<Decapsulation, Error> {
        let failed = |_| Error::General("cannot generate a key of ML-KEM".to_owned());
        let key = DecapsulationKey::generate(self.algorithm()).map_err(failed)?;
        let public = key.encapsulation_key().map_err(failed)?;
        let public = public.key_bytes().map_err(failed)?;
        Ok(Decapsulation {
            kem: self,
            public: public.as_ref().to_vec(),
            key,
        })
    }

    /// Returns the secret of a client's key and the ciphertext that it needs.
    fn encapsulate(self, client: &[u8]) -> Result<(kem::Ciphertext<'static>, SharedSecret), Error> {
        let key = EncapsulationKey::new(self.algorithm(), client).map_err(|_| INVALID_KEY_SHARE)?;
        let (ciphertext, secret) = key.encapsulate().map_err(|_| INVALID_KEY_SHARE)?;
        Ok((ciphertext, SharedSecret::from(secret.as_ref())))
    }
}

impl SupportedKxGroup for MlKem {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(self.decapsulation()?))
    }

    fn start_and_complete(&self, client: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (ciphertext, secret) = self.encapsulate(client)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: ciphertext.as_ref().to_vec(),
            secret,
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        match self {
            Self::Kem768 => NamedGroup::MLKEM768,
            Self::Kem1024 => NamedGroup::MLKEM1024,
        }
    }

    fn fips(&self) -> bool {
        is_fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// The key of a client, which waits for the server's ciphertext.
struct Decapsulation {
    kem: MlKem,
    key: DecapsulationKey<AlgorithmId>,
    public: Vec<u8>,
}

impl ActiveKeyExchange for Decapsulation {
    fn complete(self: Box<Self>, ciphertext: &[u8]) -> Result<SharedSecret, Error> {
        let secret = self.key.decapsulate(ciphertext.into());
        let secret = secret.map_err(|_| INVALID_KEY_SHARE)?;
        Ok(SharedSecret::from(secret.as_ref()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.kem.name()
    }
}

/// ML-KEM-768 beside a curve: shares and secrets are those of both, one after the other.
#[derive(Clone, Copy, Debug)]
struct Hybrid {
    group: NamedGroup,
    curve: Curve,
    order: Order,
}

/// The part of a hybrid that comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    KemFirst,
    CurveFirst,
}

impl Hybrid {
    fn concat(&self, kem: &[u8], curve: &[u8]) -> Vec<u8> {
        match self.order {
            Order::KemFirst => [kem, curve].concat(),
            Order::CurveFirst => [curve, kem].concat(),
        }
    }

    /// Splits the peer's share into that of ML-KEM, which has `kem_len` bytes, and that of the curve.
    fn split<'a>(&self, share: &'a [u8], kem_len: usize) -> Result<(&'a [u8], &'a [u8]), Error> {
        let curve_len = self.curve.public_len();
        if share.len() != kem_len + curve_len {
            return Err(INVALID_KEY_SHARE);
        }
        Ok(match self.order {
            Order::KemFirst => share.split_at(kem_len),
            Order::CurveFirst => {
                let (curve, kem) = share.split_at(curve_len);
                (kem, curve)
            }
        })
    }
}

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let kem = MlKem::Kem768.start()?;
        let curve = self.curve.start()?;
        Ok(Box::new(HybridExchange {
            hybrid: *self,
            public: self.concat(kem.pub_key(), curve.pub_key()),
            kem,
            curve,
        }))
    }

    fn start_and_complete(&self, client: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (kem, curve) = self.split(client, ENCAPSULATION_KEY_LEN)?;
        let curve = self.curve.start_and_complete(curve)?;
        let (ciphertext, secret) = MlKem::Kem768.encapsulate(kem)?;
        let secret = self.concat(secret.secret_bytes(), curve.secret.secret_bytes());
        Ok(CompletedKeyExchange {
            group: self.group,
            pub_key: self.concat(ciphertext.as_ref(), &curve.pub_key),
            secret: SharedSecret::from(secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.group
    }

    /// A hybrid is approved if its first part is (SP 800-56C rev. 2 §2).
    fn fips(&self) -> bool {
        match self.order {
            Order::KemFirst => MlKem::Kem768.fips(),
            Order::CurveFirst => self.curve.fips(),
        }
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// The keys of a client for both parts.
struct HybridExchange {
    hybrid: Hybrid,
    kem: Box<dyn ActiveKeyExchange>,
    curve: Box<dyn ActiveKeyExchange>,
    public: Vec<u8>,
}

impl ActiveKeyExchange for HybridExchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let (kem, curve) = self.hybrid.split(peer, CIPHERTEXT_LEN)?;
        let curve = self.curve.complete(curve)?;
        let kem = self.kem.complete(kem)?;
        let secret = self.hybrid.concat(kem.secret_bytes(), curve.secret_bytes());
        Ok(SharedSecret::from(secret))
    }

    // A client may offer the curve alone with the same key, and saves the generation of a second one.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.curve.group(), self.curve.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.curve.complete(peer)
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.hybrid.group
    }
}

/// The length of an encapsulation key of ML-KEM-768 in bytes. FIPS 203 §8.
const ENCAPSULATION_KEY_LEN: usize = 1184;
/// The length of a ciphertext of ML-KEM-768 in bytes. FIPS 203 §8.
const CIPHERTEXT_LEN: usize = 1088;
