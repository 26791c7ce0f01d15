//! The protection of records of TLS 1.2. RFC 5288 for AES-GCM, RFC 7905 for ChaCha20-Poly1305.

use aws_lc_rs::aead::{self, TlsProtocolId};
use courser_crypto::TAG_LEN;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
    MessageEncrypter, Nonce, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload,
    Tls12AeadAlgorithm, UnsupportedOperationError, make_tls12_aad,
};
use rustls::{ConnectionTrafficSecrets, Error};

use super::super::fips::is_fips;
use super::{Aead, OpeningKey, SealingKey};

impl Tls12AeadAlgorithm for Aead {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(Tls12Sealer {
            key: SealingKey::new(*self, &key),
            iv: tls12_iv(iv, extra),
            explicit: extra.len(),
        })
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        let explicit = self.key_block_shape().explicit_nonce_len;
        Box::new(Tls12Opener {
            key: OpeningKey::new(*self, &key, TlsProtocolId::TLS12),
            iv: tls12_iv(iv, &[0; MAX_EXPLICIT][..explicit]),
            explicit,
        })
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        let (fixed_iv_len, explicit_nonce_len) = match self {
            // The whole nonce is implicit (RFC 7905 §2).
            Self::ChaCha20Poly1305 => (aead::NONCE_LEN, 0),
            // A salt of 4 bytes, and 8 bytes in each record (RFC 5288 §3).
            _ => (aead::NONCE_LEN - MAX_EXPLICIT, MAX_EXPLICIT),
        };
        KeyBlockShape {
            enc_key_len: self.suite().key_len(),
            fixed_iv_len,
            explicit_nonce_len,
        }
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Ok(self.secrets(key, tls12_iv(iv, explicit)))
    }

    fn fips(&self) -> bool {
        self.is_approved() && is_fips()
    }
}

struct Tls12Sealer {
    key: SealingKey,
    iv: Iv,
    /// Bytes of the nonce that each record carries. Sender and receiver need not agree on them: they begin with a
    /// value of the key block and are XORed with the number of the record.
    explicit: usize,
}

impl MessageEncrypter for Tls12Sealer {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let OutboundPlainMessage {
            typ,
            version,
            payload: plaintext,
        } = message;
        let len = plaintext.len();
        let nonce = Nonce::new(&self.iv, sequence).0;
        let mut payload = PrefixedPayload::with_capacity(self.encrypted_payload_len(len));
        payload.extend_from_slice(&nonce[nonce.len() - self.explicit..]);
        payload.extend_from_chunks(&plaintext);
        let aad = make_tls12_aad(sequence, typ, version, len);
        self.key.seal(nonce, aad, &mut payload, self.explicit)?;
        Ok(OutboundOpaqueMessage::new(typ, version, payload))
    }

    fn encrypted_payload_len(&self, len: usize) -> usize {
        self.explicit + len + TAG_LEN
    }
}

struct Tls12Opener {
    key: OpeningKey,
    /// The nonce of the first record, but for the bytes that each record carries, which are 0.
    iv: Iv,
    explicit: usize,
}

impl MessageDecrypter for Tls12Opener {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let explicit = self.explicit;
        let payload = &mut message.payload;
        let len = payload.len().checked_sub(explicit + TAG_LEN);
        let len = len.ok_or(Error::DecryptError)?;
        let aad = make_tls12_aad(sequence, message.typ, message.version, len);
        let nonce = match explicit {
            0 => Nonce::new(&self.iv, sequence).0,
            _ => {
                let mut nonce = Nonce::new(&self.iv, 0).0;
                let start = nonce.len() - explicit;
                nonce[start..].copy_from_slice(&payload[..explicit]);
                nonce
            }
        };
        let len = self.key.open(nonce, aad, &mut payload[explicit..])?;
        if len > MAX_PLAINTEXT {
            return Err(Error::PeerSentOversizedRecord);
        }
        Ok(message.into_plain_message_range(explicit..explicit + len))
    }
}

/// Returns the nonce of the first record of TLS 1.2: the implicit bytes, then the explicit ones.
fn tls12_iv(fixed: &[u8], explicit: &[u8]) -> Iv {
    let mut iv = [0; aead::NONCE_LEN];
    let (start, end) = iv.split_at_mut(fixed.len());
    start.copy_from_slice(fixed);
    end.copy_from_slice(explicit);
    iv.into()
}

/// Bytes of the nonce that a record of TLS 1.2 with AES-GCM carries.
const MAX_EXPLICIT: usize = 8;
/// The longest plaintext of a record of TLS 1.2. RFC 5246 §6.2.1.
const MAX_PLAINTEXT: usize = 1 << 14;
