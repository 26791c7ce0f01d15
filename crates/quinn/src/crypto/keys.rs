//! Keys of tokens.

use aws_lc_rs::{aead, hkdf};

use super::CryptoError;

/// A key from which those of tokens are derived.
pub trait HandshakeTokenKey: Send + Sync {
    /// Derives the key for the tokens with these random bytes.
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey>;
}

/// A key that encrypts and authenticates.
pub trait AeadKey {
    /// Seals `data` in place, and appends the tag.
    ///
    /// # Errors
    /// Returns [`CryptoError`] if the data is too long.
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError>;

    /// Opens `data` in place, and returns it without its tag.
    ///
    /// # Errors
    /// Returns [`CryptoError`] if it is not authentic.
    fn open<'a>(
        &self,
        data: &'a mut [u8],
        additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError>;
}

/// Derives the key of tokens: what a key of the program seals in the place of 32 zeros, each time the same. `None` if
/// it cannot.
pub(crate) fn derived_token_key(key: &dyn HandshakeTokenKey) -> Option<[u8; 32]> {
    let mut sealed = vec![0; 32];
    let aead = key.aead_from_hkdf(b"courser tokens");
    aead.seal(&mut sealed, b"courser tokens").ok()?;
    sealed.first_chunk().copied()
}

impl HandshakeTokenKey for hkdf::Prk {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        let info = [random_bytes];
        let derived = self.expand(&info, hkdf::HKDF_SHA256);
        let okm = derived.expect("32 bytes can be derived");
        let mut key = [0; 32];
        okm.fill(&mut key).expect("32 bytes were requested");
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, &key).expect("the key has 32 bytes");
        Box::new(aead::LessSafeKey::new(key))
    }
}

/// Each key is for one token, so that the nonce may be constant.
impl AeadKey for aead::LessSafeKey {
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key([0; 12]);
        let additional = aead::Aad::from(additional_data);
        self.seal_in_place_append_tag(nonce, additional, data)
            .map_err(|_| CryptoError)
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key([0; 12]);
        let additional = aead::Aad::from(additional_data);
        self.open_in_place(nonce, additional, data)
            .map_err(|_| CryptoError)
    }
}
