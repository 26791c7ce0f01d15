//! Private keys of certificates, and what they sign.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, PqdsaKeyPair,
    PqdsaSigningAlgorithm, RsaEncoding, RsaKeyPair,
};
use rustls::pki_types::{AlgorithmIdentifier, PrivateKeyDer, SubjectPublicKeyInfoDer, alg_id};
use rustls::sign::{Signer, SigningKey, public_key_to_spki};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

/// Loads a private key: RSA (PKCS#8 or PKCS#1), ECDSA with P-256, P-384 or P-521 (PKCS#8 or SEC 1), Ed25519 or
/// ML-DSA (PKCS#8).
pub(super) fn load(der: &PrivateKeyDer<'_>) -> Result<Arc<dyn SigningKey>, Error> {
    let key = match der {
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der())
            .ok()
            .map(Key::Rsa),
        PrivateKeyDer::Sec1(der) => ecdsa(|algorithm| {
            EcdsaKeyPair::from_private_key_der(algorithm, der.secret_sec1_der()).ok()
        }),
        PrivateKeyDer::Pkcs8(der) => pkcs8(der.secret_pkcs8_der()),
        _ => None,
    };
    let key = key.ok_or_else(|| {
        Error::General(
            "cannot use the private key: RSA of 2048 to 8192 bits, ECDSA with P-256, P-384 or P-521, Ed25519 \
             and ML-DSA are supported"
                .to_owned(),
        )
    })?;
    Ok(Arc::new(PrivateKey(Arc::new(key))))
}

fn pkcs8(der: &[u8]) -> Option<Key> {
    if let Ok(key) = RsaKeyPair::from_pkcs8(der) {
        return Some(Key::Rsa(key));
    }
    if let Some(key) = ecdsa(|algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der).ok()) {
        return Some(key);
    }
    // Keys without their public part are valid (RFC 8410 §7).
    if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
        return Some(Key::Ed25519(key));
    }
    ML_DSA.iter().find_map(|kind| {
        let key = PqdsaKeyPair::from_pkcs8(kind.algorithm, der).ok()?;
        Some(Key::MlDsa(key, kind))
    })
}

/// Returns the key of the first curve with which `load` succeeds.
fn ecdsa(load: impl Fn(&'static EcdsaSigningAlgorithm) -> Option<EcdsaKeyPair>) -> Option<Key> {
    let mut kinds = ECDSA.iter();
    kinds.find_map(|kind| Some(Key::Ecdsa(load(kind.algorithm)?, kind)))
}

enum Key {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair, &'static Ecdsa),
    Ed25519(Ed25519KeyPair),
    MlDsa(PqdsaKeyPair, &'static MlDsa),
}

impl Key {
    /// Returns the schemes of the key, the preferred one first.
    fn schemes(&self) -> &[SignatureScheme] {
        match self {
            Self::Rsa(_) => &RSA_SCHEMES,
            Self::Ecdsa(_, kind) => std::slice::from_ref(&kind.scheme),
            Self::Ed25519(_) => &[SignatureScheme::ED25519],
            Self::MlDsa(_, kind) => std::slice::from_ref(&kind.scheme),
        }
    }

    /// Signs with one of the schemes of the key.
    fn sign(&self, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, Error> {
        let failed = |_| Error::General("the private key could not sign".to_owned());
        match self {
            Self::Rsa(key) => {
                let encoding = rsa_encoding(scheme).ok_or(PADDING_EXPECTED)?;
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(encoding, &SystemRandom::new(), message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Self::Ecdsa(key, _) => {
                let signature = key.sign(&SystemRandom::new(), message).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Self::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
            Self::MlDsa(key, kind) => {
                let mut signature = vec![0; kind.algorithm.signature_len()];
                let len = key.sign(message, &mut signature).map_err(failed)?;
                signature.truncate(len);
                Ok(signature)
            }
        }
    }
}

/// A private key.
#[derive(Clone)]
struct PrivateKey(Arc<Key>);

impl SigningKey for PrivateKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let mut schemes = self.0.schemes().iter();
        let scheme = *schemes.find(|scheme| offered.contains(scheme))?;
        Some(Box::new(ChosenScheme {
            key: self.clone(),
            scheme,
        }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        let (id, key) = match &*self.0 {
            Key::Rsa(key) => (alg_id::RSA_ENCRYPTION, key.public_key().as_ref()),
            Key::Ecdsa(key, kind) => (kind.id, key.public_key().as_ref()),
            Key::Ed25519(key) => (alg_id::ED25519, key.public_key().as_ref()),
            Key::MlDsa(key, kind) => (kind.id, key.public_key().as_ref()),
        };
        Some(public_key_to_spki(&id, key))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match &*self.0 {
            Key::Rsa(_) => SignatureAlgorithm::RSA,
            Key::Ecdsa(..) => SignatureAlgorithm::ECDSA,
            Key::Ed25519(_) => SignatureAlgorithm::ED25519,
            // It has none in TLS 1.2, to which the type belongs.
            Key::MlDsa(..) => SignatureAlgorithm::Unknown(0),
        }
    }
}

/// A private key with the scheme that both ends support.
struct ChosenScheme {
    key: PrivateKey,
    scheme: SignatureScheme,
}

impl Signer for ChosenScheme {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.key.0.sign(self.scheme, message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey")
            .field("schemes", &self.0.schemes())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ChosenScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChosenScheme")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

fn rsa_encoding(scheme: SignatureScheme) -> Option<&'static dyn RsaEncoding> {
    Some(match scheme {
        SignatureScheme::RSA_PSS_SHA512 => &signature::RSA_PSS_SHA512,
        SignatureScheme::RSA_PSS_SHA384 => &signature::RSA_PSS_SHA384,
        SignatureScheme::RSA_PSS_SHA256 => &signature::RSA_PSS_SHA256,
        SignatureScheme::RSA_PKCS1_SHA512 => &signature::RSA_PKCS1_SHA512,
        SignatureScheme::RSA_PKCS1_SHA384 => &signature::RSA_PKCS1_SHA384,
        SignatureScheme::RSA_PKCS1_SHA256 => &signature::RSA_PKCS1_SHA256,
        _ => return None,
    })
}

/// A curve of ECDSA with the only hash that TLS 1.3 combines it with.
struct Ecdsa {
    scheme: SignatureScheme,
    algorithm: &'static EcdsaSigningAlgorithm,
    id: AlgorithmIdentifier,
}

static ECDSA: [Ecdsa; 3] = [
    Ecdsa {
        scheme: SignatureScheme::ECDSA_NISTP256_SHA256,
        algorithm: &signature::ECDSA_P256_SHA256_ASN1_SIGNING,
        id: alg_id::ECDSA_P256,
    },
    Ecdsa {
        scheme: SignatureScheme::ECDSA_NISTP384_SHA384,
        algorithm: &signature::ECDSA_P384_SHA384_ASN1_SIGNING,
        id: alg_id::ECDSA_P384,
    },
    Ecdsa {
        scheme: SignatureScheme::ECDSA_NISTP521_SHA512,
        algorithm: &signature::ECDSA_P521_SHA512_ASN1_SIGNING,
        id: alg_id::ECDSA_P521,
    },
];

/// A parameter set of ML-DSA (FIPS 204).
struct MlDsa {
    scheme: SignatureScheme,
    algorithm: &'static PqdsaSigningAlgorithm,
    id: AlgorithmIdentifier,
}

static ML_DSA: [MlDsa; 3] = [
    MlDsa {
        scheme: SignatureScheme::ML_DSA_44,
        algorithm: &signature::ML_DSA_44_SIGNING,
        id: alg_id::ML_DSA_44,
    },
    MlDsa {
        scheme: SignatureScheme::ML_DSA_65,
        algorithm: &signature::ML_DSA_65_SIGNING,
        id: alg_id::ML_DSA_65,
    },
    MlDsa {
        scheme: SignatureScheme::ML_DSA_87,
        algorithm: &signature::ML_DSA_87_SIGNING,
        id: alg_id::ML_DSA_87,
    },
];

/// The schemes of an RSA key. TLS 1.3 has only those with PSS.
const RSA_SCHEMES: [SignatureScheme; 6] = [
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];

const PADDING_EXPECTED: Error =
    Error::PeerIncompatible(rustls::PeerIncompatible::NoSignatureSchemesInCommon);
