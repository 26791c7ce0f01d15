//! Sealing and opening payloads. RFC 9001 §5.3.

use std::fmt;

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroize;

use crate::{CipherSuite, PacketNonce};

/// Number of bytes that sealing appends to the payload, the same for every suite.
pub const TAG_LEN: usize = 16;

/// The AEAD key and IV of one direction and one key phase.
///
/// Every operation is a single call into AWS-LC, which selects the cipher internally. No trait
/// object is involved, nothing is allocated and no byte is copied. With the feature `fused`, AES-GCM is
/// a single call into courser-fused instead, where it has a kernel for the processor.
pub struct PacketKey {
    cipher: Cipher,
    suite: CipherSuite,
}

/// A key of one implementation. Both compute the same bytes.
enum Cipher {
    Library {
        key: LessSafeKey,
        iv: Iv,
    },
    #[cfg(feature = "fused")]
    Fused(courser_fused::PacketKey),
}

impl PacketKey {
    pub(crate) fn new(suite: CipherSuite, key: &[u8], iv: &[u8; 12]) -> Self {
        #[cfg(feature = "fused")]
        if let Some(kernel) = suite.kernel()
            && let Some(key) = courser_fused::PacketKey::with_kernel(kernel, key, iv)
        {
            let cipher = Cipher::Fused(key);
            return Self { cipher, suite };
        }
        Self::of_library(suite, key, iv)
    }

    /// Creates a key of AWS-LC.
    fn of_library(suite: CipherSuite, key: &[u8], iv: &[u8; 12]) -> Self {
        let key = UnboundKey::new(suite.aead(), key).expect("the key length matches the suite");
        let cipher = Cipher::Library {
            key: LessSafeKey::new(key),
            iv: Iv::new(iv),
        };
        Self { cipher, suite }
    }

    /// Encrypts `payload` in place and writes the authentication tag. `header` is the unprotected
    /// header including the packet number.
    ///
    /// Each nonce, a packet number on a path, must be used at most once per key.
    #[inline]
    pub fn seal(
        &self,
        nonce: impl Into<PacketNonce>,
        header: &[u8],
        payload: &mut [u8],
        tag: &mut [u8; TAG_LEN],
    ) {
        let nonce = nonce.into();
        match &self.cipher {
            Cipher::Library { key, iv } => key
                .seal_in_place_scatter(iv.nonce(nonce), Aad::from(header), payload, &[], tag)
                .expect("a packet is shorter than any limit of the AEAD"),
            #[cfg(feature = "fused")]
            Cipher::Fused(key) => key.seal(nonce.value(), header, payload, tag),
        }
    }

    /// Encrypts a whole packet in place. `packet` holds the header, the plaintext and [`TAG_LEN`]
    /// bytes for the tag. `header_len` includes the packet number.
    ///
    /// # Panics
    /// Panics if `packet` is shorter than `header_len` plus [`TAG_LEN`].
    #[inline]
    pub fn seal_packet(&self, nonce: impl Into<PacketNonce>, packet: &mut [u8], header_len: usize) {
        let (header, body) = packet.split_at_mut(header_len);
        let (payload, tag) = body
            .split_last_chunk_mut::<TAG_LEN>()
            .expect("the packet has room for the tag");
        self.seal(nonce, header, payload, tag);
    }

    /// Encrypts `plaintext` into `ciphertext`, which has the same length, and writes the
    /// authentication tag.
    ///
    /// Use it for payloads stored elsewhere: it costs as much as sealing in place and saves a copy.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    #[inline]
    pub fn seal_from(
        &self,
        nonce: impl Into<PacketNonce>,
        header: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
        tag: &mut [u8; TAG_LEN],
    ) {
        let nonce = nonce.into();
        match &self.cipher {
            Cipher::Library { key, iv } => key
                .seal_out_of_place_scatter(
                    iv.nonce(nonce),
                    Aad::from(header),
                    plaintext,
                    ciphertext,
                    &[],
                    tag,
                )
                .expect("input and output have the same length"),
            #[cfg(feature = "fused")]
            Cipher::Fused(key) => key.seal_from(nonce.value(), header, plaintext, ciphertext, tag),
        }
    }

    /// Decrypts `payload`, which is ciphertext and tag, in place and returns the length of the
    /// plaintext.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the payload is not authentic. Its bytes are then unspecified, but they contain
    /// no plaintext.
    #[inline]
    pub fn open(
        &self,
        nonce: impl Into<PacketNonce>,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        let nonce = nonce.into();
        let (ciphertext, tag) = payload.split_last_chunk_mut::<TAG_LEN>().ok_or(OpenError)?;
        let is_authentic = match &self.cipher {
            Cipher::Library { key, iv } => key
                .open_in_place_separate_tag(iv.nonce(nonce), Aad::from(header), tag, ciphertext)
                .is_ok(),
            #[cfg(feature = "fused")]
            Cipher::Fused(key) => key.open(nonce.value(), header, ciphertext, tag).is_ok(),
        };
        is_authentic.then_some(ciphertext.len()).ok_or(OpenError)
    }

    /// Returns the cipher suite of the key.
    #[inline]
    pub fn suite(&self) -> CipherSuite {
        self.suite
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKey")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

/// The error of a packet that is not authentic: it was damaged, forged or sealed with another key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenError;

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("packet failed authentication")
    }
}

impl std::error::Error for OpenError {}

/// The static IV, split so that a nonce takes two XORs: path IDs affect only the first four bytes, and
/// packet numbers the last eight. RFC 9001 §5.3, RFC 10069 §2.4.
struct Iv {
    head: u32,
    tail: u64,
}

impl Iv {
    fn new(iv: &[u8; 12]) -> Self {
        let [a, b, c, d, tail @ ..] = *iv;
        Self {
            head: u32::from_be_bytes([a, b, c, d]),
            tail: u64::from_be_bytes(tail),
        }
    }

    #[inline]
    fn nonce(&self, packet: PacketNonce) -> Nonce {
        let (path_id, packet_number) = ((packet.value() >> 64) as u32, packet.value() as u64);
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&(self.head ^ path_id).to_be_bytes());
        nonce[4..].copy_from_slice(&(self.tail ^ packet_number).to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Drop for Iv {
    fn drop(&mut self) {
        self.head.zeroize();
        self.tail.zeroize();
    }
}

#[cfg(test)]
mod tests;
