//! Keys of ring, which programs pass.

use ring::{aead, hkdf, hmac};

use super::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};

impl HmacKey for hmac::Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(hmac::sign(self, data).as_ref());
    }

    fn signature_len(&self) -> usize {
        self.algorithm().digest_algorithm().output_len()
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        hmac::verify(self, data, signature).map_err(|_| CryptoError)
    }
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
