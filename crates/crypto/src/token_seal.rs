//! Sealing of address tokens, whose contents only the issuer can read. RFC 9000 §8.1.4.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::TAG_LEN;

/// The key that seals address tokens with AES-256-GCM and a random nonce per token.
///
/// The random 96-bit nonces of 2^32 tokens are distinct with overwhelming probability: the chance
/// of a collision is 2^-33. An endpoint that issues more tokens should renew the key.
pub struct TokenKey(LessSafeKey);

impl TokenKey {
    /// Creates the key from 32 random bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("the key has 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Seals `plaintext` and appends nonce, ciphertext and tag to `out`. `aad` is authenticated but
    /// not included. `nonce` must be fresh from a random source.
    pub fn seal(&self, nonce: [u8; NONCE_LEN], plaintext: &[u8], aad: &[u8], out: &mut Vec<u8>) {
        out.reserve(sealed_len(plaintext.len()));
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plaintext);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(aad), &mut out[start..])
            .expect("a token is shorter than any limit of the AEAD");
        out.extend_from_slice(tag.as_ref());
    }

    /// Opens a token that [`TokenKey::seal`] sealed. Returns `None` for anything else.
    pub fn open(&self, sealed: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let (ciphertext, tag) = rest.split_last_chunk::<TAG_LEN>()?;
        let mut plaintext = vec![0; ciphertext.len()];
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0
            .open_separate_gather(nonce, Aad::from(aad), ciphertext, tag, &mut plaintext)
            .ok()?;
        Some(plaintext)
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

/// Returns the length of a sealed token in bytes.
pub const fn sealed_len(plaintext_len: usize) -> usize {
    NONCE_LEN + plaintext_len + TAG_LEN
}

/// Length of the nonce in bytes.
pub const NONCE_LEN: usize = 12;

#[cfg(test)]
mod tests;
