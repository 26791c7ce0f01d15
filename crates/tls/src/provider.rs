//! The cryptography of TLS by aws-lc-rs, as a provider for rustls.
//!
//! rustls has such a provider behind its feature `aws_lc_rs`. Features hold for the whole program: with that one
//! and `ring`, which another dependency may enable, `rustls::ClientConfig::builder()` panics until the
//! program chooses one of them. This provider needs no feature of rustls and is always passed explicitly, so that the
//! choice remains that of the program (`docs/design/0067`).

mod agreement;
mod fips;
mod hash;
mod hpke;
mod kem;
mod key_schedule;
mod packets;
mod records;
mod signing;
mod suites;
mod ticketer;
mod verification;

use std::sync::Arc;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use rustls::Error;
use rustls::crypto::{
    CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, SupportedKxGroup,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;

pub(crate) use self::agreement::{P256, P384, X25519};
use self::fips::is_fips;
pub(crate) use self::hpke::{all as hpke_suites, grease as hpke_grease_suite};
pub(crate) use self::kem::{ML_KEM_768, ML_KEM_1024, P256_ML_KEM_768, X25519_ML_KEM_768};
pub(crate) use self::suites::tls13_suite;
pub use self::ticketer::ticketer;

/// Returns the provider of all TLS of courser: TLS 1.3 by AWS-LC, and TLS 1.2 where HTTP over TCP is enabled,
/// without the features `aws_lc_rs` and `ring` of rustls.
///
/// It has the cipher suites, key exchange groups, signature schemes and kinds of keys of rustls' own provider for
/// aws-lc-rs, and prefers AES-256-GCM and X25519MLKEM768 as that does. With the feature `fips` it has the
/// approved ones only. It may be installed as the default of the process.
///
/// ```
/// # extern crate courser_tls as courser;
/// use courser::rustls::ClientConfig;
///
/// let builder = ClientConfig::builder_with_provider(courser::crypto_provider());
/// # assert!(builder.with_safe_default_protocol_versions().is_ok());
/// ```
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// Returns the provider as a value that can be changed.
pub(crate) fn default_provider() -> CryptoProvider {
    let mut cipher_suites = suites::TLS13_SUITES.to_vec();
    #[cfg(feature = "tls12")]
    cipher_suites.extend(suites::tls12::SUITES);
    let mut kx_groups: Vec<&'static dyn SupportedKxGroup> = GROUPS.to_vec();
    if cfg!(feature = "fips") {
        cipher_suites.retain(|suite| suite.fips());
        kx_groups.retain(|group| group.fips());
    }
    CryptoProvider {
        cipher_suites,
        kx_groups,
        signature_verification_algorithms: verification::ALGORITHMS,
        secure_random: &AwsLc,
        key_provider: &AwsLc,
    }
}

/// The default groups, the preferred one first.
const GROUPS: [&dyn SupportedKxGroup; 4] = [X25519_ML_KEM_768, X25519, P256, P384];

/// The random numbers and the loader of keys.
#[derive(Debug)]
struct AwsLc;

impl SecureRandom for AwsLc {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        SystemRandom::new().fill(bytes).map_err(|_| GetRandomFailed)
    }

    fn fips(&self) -> bool {
        is_fips()
    }
}

impl KeyProvider for AwsLc {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        signing::load(&key)
    }

    fn fips(&self) -> bool {
        is_fips()
    }
}

#[cfg(test)]
mod tests;
