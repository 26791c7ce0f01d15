//! The protection of QUIC packets, as rustls asks for it. RFC 9001 §5.
//!
//! courser protects packets itself and drops these keys. They work, for other users of the provider, but are
//! prepared when they are used first: a handshake of courser does not pay for ten of them.

use std::sync::OnceLock;

use aws_lc_rs::aead::quic::HeaderProtectionKey;
use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::Error;
use rustls::crypto::cipher::{self, AeadKey, Iv};
use rustls::quic;

use super::fips::is_fips;
use super::records::Aead;

impl quic::Algorithm for Aead {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn quic::PacketKey> {
        Box::new(PacketKey {
            aead: *self,
            iv,
            bytes: key,
            key: OnceLock::new(),
        })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        Box::new(HeaderKey {
            aead: *self,
            bytes: key,
            key: OnceLock::new(),
        })
    }

    fn aead_key_len(&self) -> usize {
        self.suite().key_len()
    }

    fn fips(&self) -> bool {
        self.is_approved() && is_fips()
    }
}

/// The key for the contents of packets.
struct PacketKey {
    aead: Aead,
    iv: Iv,
    bytes: AeadKey,
    key: OnceLock<LessSafeKey>,
}

impl PacketKey {
    fn key(&self) -> &LessSafeKey {
        self.key.get_or_init(|| self.aead.key(&self.bytes))
    }

    fn seal(
        &self,
        nonce: cipher::Nonce,
        aad: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        let nonce = Nonce::assume_unique_for_key(nonce.0);
        let tag = self
            .key()
            .seal_in_place_separate_tag(nonce, Aad::from(aad), payload)
            .map_err(|_| Error::EncryptError)?;
        Ok(quic::Tag::from(tag.as_ref()))
    }

    fn open<'a>(
        &self,
        nonce: cipher::Nonce,
        aad: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let nonce = Nonce::assume_unique_for_key(nonce.0);
        let opened = self.key().open_in_place(nonce, Aad::from(aad), payload);
        opened
            .map(|plaintext| &*plaintext)
            .map_err(|_| Error::DecryptError)
    }
}

impl quic::PacketKey for PacketKey {
    fn encrypt_in_place(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        self.seal(cipher::Nonce::new(&self.iv, number), header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        let nonce = cipher::Nonce::for_path(path, &self.iv, number);
        self.seal(nonce, header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open(cipher::Nonce::new(&self.iv, number), header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let nonce = cipher::Nonce::for_path(path, &self.iv, number);
        self.open(nonce, header, payload)
    }

    fn tag_len(&self) -> usize {
        courser_crypto::TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        self.aead.suite().confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.aead.suite().integrity_limit()
    }
}

/// The key for the headers of packets. RFC 9001 §5.4.
struct HeaderKey {
    aead: Aead,
    bytes: AeadKey,
    key: OnceLock<HeaderProtectionKey>,
}

impl HeaderKey {
    fn mask(&self, sample: &[u8]) -> Result<[u8; 5], Error> {
        let key = self.key.get_or_init(|| {
            HeaderProtectionKey::new(self.aead.header_algorithm(), self.bytes.as_ref())
                .expect("the key has the length of the algorithm")
        });
        key.new_mask(sample)
            .map_err(|_| Error::General("a sample of header protection has 16 bytes".to_owned()))
    }

    /// Applies the mask. `first` is the byte whose low bits have the length of the packet number, unprotected.
    fn apply(
        mask: [u8; 5],
        first: &mut u8,
        number: &mut [u8],
        unprotected: impl Fn(u8) -> u8,
    ) -> Result<(), Error> {
        let [first_mask, number_mask @ ..] = mask;
        if number.len() > number_mask.len() {
            return Err(Error::General(
                "a packet number has at most 4 bytes".to_owned(),
            ));
        }
        let bits = match *first & LONG_HEADER {
            0 => 0x1f,
            _ => 0x0f,
        };
        let first_mask = first_mask & bits;
        let len = usize::from(unprotected(first_mask) & 0x03) + 1;
        *first ^= first_mask;
        for (byte, mask) in number.iter_mut().zip(number_mask).take(len) {
            *byte ^= mask;
        }
        Ok(())
    }
}

impl quic::HeaderProtectionKey for HeaderKey {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        number: &mut [u8],
    ) -> Result<(), Error> {
        let plain = *first;
        Self::apply(self.mask(sample)?, first, number, |_| plain)
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        number: &mut [u8],
    ) -> Result<(), Error> {
        let protected = *first;
        Self::apply(self.mask(sample)?, first, number, |mask| protected ^ mask)
    }

    fn sample_len(&self) -> usize {
        self.aead.header_algorithm().sample_len()
    }
}

impl Aead {
    /// Prepares a key whose length the caller has chosen by `key_len`.
    pub(super) fn key(self, bytes: &AeadKey) -> LessSafeKey {
        let key = UnboundKey::new(self.algorithm(), bytes.as_ref());
        LessSafeKey::new(key.expect("the key has the length of the algorithm"))
    }
}

/// The bit of the first byte that long headers have set.
const LONG_HEADER: u8 = 0x80;
