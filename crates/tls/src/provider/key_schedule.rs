//! The derivation of keys by HKDF. RFC 8446 §7.1.

#[cfg(feature = "tls12")]
mod tls12;

use aws_lc_rs::{hkdf, hmac};
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};

use super::fips::is_fips;
use super::hash::Sha;

/// The key schedule of the cipher suites with one hash.
pub(super) struct KeySchedule(pub(super) Sha);

impl KeySchedule {
    fn hkdf(&self) -> hkdf::Algorithm {
        match self.0 {
            Sha::Sha256 => hkdf::HKDF_SHA256,
            Sha::Sha384 => hkdf::HKDF_SHA384,
        }
    }

    fn hmac(&self) -> hmac::Algorithm {
        match self.0 {
            Sha::Sha256 => hmac::HMAC_SHA256,
            Sha::Sha384 => hmac::HMAC_SHA384,
        }
    }

    fn extract(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        let algorithm = self.hkdf();
        // A missing salt is as many zeros as the hash has bytes (RFC 5869 §2.2).
        let salt = salt.unwrap_or(&ZEROS[..length(algorithm)]);
        Box::new(Expander {
            algorithm,
            key: hkdf::Salt::new(algorithm, salt).extract(secret),
        })
    }
}

impl Hkdf for KeySchedule {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.extract(salt, &ZEROS[..length(self.hkdf())])
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.extract(salt, secret)
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        let algorithm = self.hkdf();
        Box::new(Expander {
            algorithm,
            key: hkdf::Prk::new_less_safe(algorithm, okm.as_ref()),
        })
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        let key = hmac::Key::new(self.hmac(), key.as_ref());
        Tag::new(hmac::sign(&key, message).as_ref())
    }

    fn fips(&self) -> bool {
        is_fips()
    }
}

/// A secret from which others are derived.
struct Expander {
    algorithm: hkdf::Algorithm,
    key: hkdf::Prk,
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        self.key
            .expand(info, Length(output.len()))
            .and_then(|okm| okm.fill(output))
            .map_err(|_| OutputLengthError)
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let mut block = ZEROS;
        let output = &mut block[..self.hash_len()];
        self.expand_slice(info, output)
            .expect("one block is shorter than 255 blocks");
        OkmBlock::new(output)
    }

    fn hash_len(&self) -> usize {
        length(self.algorithm)
    }
}

/// The length of an output of HKDF.
pub(super) struct Length(pub(super) usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn length(algorithm: hkdf::Algorithm) -> usize {
    hkdf::KeyType::len(&algorithm)
}

/// As many zeros as the longest hash has bytes.
const ZEROS: [u8; OkmBlock::MAX_LEN] = [0; OkmBlock::MAX_LEN];
