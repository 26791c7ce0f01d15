//! The protection of TLS records. RFC 8446 §5.2.

#[cfg(feature = "tls12")]
mod tls12;

use aws_lc_rs::aead::{self, LessSafeKey, TlsProtocolId, TlsRecordOpeningKey, TlsRecordSealingKey};
use courser_crypto::{CipherSuite, TAG_LEN};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    Nonce, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm,
    UnsupportedOperationError, make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

use super::fips::is_fips;

/// The AEAD of cipher suites.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Aead {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Aead {
    /// Returns the suite of TLS 1.3 with this AEAD.
    pub(super) const fn suite(self) -> CipherSuite {
        match self {
            Self::Aes128Gcm => CipherSuite::Aes128Gcm,
            Self::Aes256Gcm => CipherSuite::Aes256Gcm,
            Self::ChaCha20Poly1305 => CipherSuite::ChaCha20Poly1305,
        }
    }

    pub(super) fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    pub(super) fn header_algorithm(self) -> &'static aead::quic::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::quic::AES_128,
            Self::Aes256Gcm => &aead::quic::AES_256,
            Self::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        }
    }

    /// Returns true if the algorithm is approved for FIPS 140.
    pub(super) const fn is_approved(self) -> bool {
        !matches!(self, Self::ChaCha20Poly1305)
    }

    fn secrets(self, key: AeadKey, iv: Iv) -> ConnectionTrafficSecrets {
        match self {
            Self::Aes128Gcm => ConnectionTrafficSecrets::Aes128Gcm { key, iv },
            Self::Aes256Gcm => ConnectionTrafficSecrets::Aes256Gcm { key, iv },
            Self::ChaCha20Poly1305 => ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv },
        }
    }
}

impl Tls13AeadAlgorithm for Aead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Tls13Sealer {
            key: SealingKey::new(*self, &key),
            iv,
        })
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Tls13Opener {
            key: OpeningKey::new(*self, &key, TlsProtocolId::TLS13),
            iv,
        })
    }

    fn key_len(&self) -> usize {
        self.suite().key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Ok(self.secrets(key, iv))
    }

    fn fips(&self) -> bool {
        self.is_approved() && is_fips()
    }
}

/// A key for records that are sent.
///
/// That of AES-GCM lets AWS-LC check that nonces grow, which FIPS 140 requires of the module.
enum SealingKey {
    Gcm(TlsRecordSealingKey),
    ChaCha20Poly1305(LessSafeKey),
}

impl SealingKey {
    fn new(aead: Aead, key: &AeadKey) -> Self {
        match aead {
            Aead::ChaCha20Poly1305 => Self::ChaCha20Poly1305(aead.key(key)),
            // That of TLS 1.3 for both versions: it expects nonces that are a constant XOR a number that
            // grows, which those here are in TLS 1.2 too.
            _ => Self::Gcm(
                TlsRecordSealingKey::new(aead.algorithm(), TlsProtocolId::TLS13, key.as_ref())
                    .expect("the key has the length of the algorithm"),
            ),
        }
    }

    /// Seals the payload from the position `start`, and appends the tag.
    fn seal<A: AsRef<[u8]>>(
        &mut self,
        nonce: [u8; aead::NONCE_LEN],
        aad: A,
        payload: &mut PrefixedPayload,
        start: usize,
    ) -> Result<(), Error> {
        let (nonce, aad) = (
            aead::Nonce::assume_unique_for_key(nonce),
            aead::Aad::from(aad),
        );
        let plaintext = &mut payload.as_mut()[start..];
        let tag = match self {
            Self::Gcm(key) => key.seal_in_place_separate_tag(nonce, aad, plaintext),
            Self::ChaCha20Poly1305(key) => key.seal_in_place_separate_tag(nonce, aad, plaintext),
        };
        payload.extend_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        Ok(())
    }
}

/// A key for records that are received.
enum OpeningKey {
    Gcm(TlsRecordOpeningKey),
    ChaCha20Poly1305(LessSafeKey),
}

impl OpeningKey {
    fn new(aead: Aead, key: &AeadKey, version: TlsProtocolId) -> Self {
        match aead {
            Aead::ChaCha20Poly1305 => Self::ChaCha20Poly1305(aead.key(key)),
            _ => Self::Gcm(
                TlsRecordOpeningKey::new(aead.algorithm(), version, key.as_ref())
                    .expect("the key has the length of the algorithm"),
            ),
        }
    }

    /// Opens a ciphertext with its tag in place, and returns the length of the plaintext.
    fn open<A: AsRef<[u8]>>(
        &self,
        nonce: [u8; aead::NONCE_LEN],
        aad: A,
        ciphertext: &mut [u8],
    ) -> Result<usize, Error> {
        let (nonce, aad) = (
            aead::Nonce::assume_unique_for_key(nonce),
            aead::Aad::from(aad),
        );
        let plaintext = match self {
            Self::Gcm(key) => key.open_in_place(nonce, aad, ciphertext),
            Self::ChaCha20Poly1305(key) => key.open_in_place(nonce, aad, ciphertext),
        };
        Ok(plaintext.map_err(|_| Error::DecryptError)?.len())
    }
}

struct Tls13Sealer {
    key: SealingKey,
    iv: Iv,
}

impl MessageEncrypter for Tls13Sealer {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let len = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(len);
        payload.extend_from_chunks(&message.payload);
        payload.extend_from_slice(&message.typ.to_array());
        let nonce = Nonce::new(&self.iv, sequence).0;
        self.key.seal(nonce, make_tls13_aad(len), &mut payload, 0)?;
        // The version of all records is that of TLS 1.2 (RFC 8446 §5.2).
        Ok(OutboundOpaqueMessage::new(
            ContentType::ApplicationData,
            ProtocolVersion::TLSv1_2,
            payload,
        ))
    }

    fn encrypted_payload_len(&self, len: usize) -> usize {
        len + 1 + TAG_LEN
    }
}

struct Tls13Opener {
    key: OpeningKey,
    iv: Iv,
}

impl MessageDecrypter for Tls13Opener {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let payload = &mut message.payload;
        let aad = make_tls13_aad(payload.len());
        let nonce = Nonce::new(&self.iv, sequence).0;
        let len = self.key.open(nonce, aad, payload)?;
        payload.truncate(len);
        message.into_tls13_unpadded_message()
    }
}
