//! Header protection. RFC 9001 §5.4.

use std::fmt;

use aws_lc_rs::aead::quic::HeaderProtectionKey;
use zeroize::Zeroizing;

use crate::CipherSuite;
use crate::suite::MAX_KEY_LEN;

/// The key that masks packet numbers and the low bits of first bytes.
pub struct HeaderKey(Cipher);

/// A key of one implementation. All compute the same masks.
enum Cipher {
    /// A key of AWS-LC, which takes 504 bytes.
    Library(Box<HeaderProtectionKey>),
    /// The bytes of a key, from which a key of AWS-LC is created for each packet.
    Compact(CipherSuite, Zeroizing<[u8; MAX_KEY_LEN]>),
    #[cfg(feature = "fused")]
    Fused(courser_fused::HeaderKey),
}

impl HeaderKey {
    pub(crate) fn new(suite: CipherSuite, key: &[u8]) -> Self {
        #[cfg(feature = "fused")]
        if let Some(kernel) = suite.kernel()
            && let Some(key) = courser_fused::HeaderKey::with_kernel(kernel, key)
        {
            return Self(Cipher::Fused(key));
        }
        Self::of_library(suite, key)
    }

    /// Creates a key of AWS-LC.
    fn of_library(suite: CipherSuite, key: &[u8]) -> Self {
        Self(Cipher::Library(Box::new(library_key(suite, key))))
    }

    /// Creates a key that takes little memory, and more time for each packet: that of a handshake protects a few
    /// packets, and may be kept for seconds for a client that never completes its handshake (attack A05).
    pub(crate) fn compact(suite: CipherSuite, key: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; MAX_KEY_LEN]);
        bytes[..key.len()].copy_from_slice(key);
        Self(Cipher::Compact(suite, bytes))
    }

    /// Returns the mask for a sample of ciphertext: one byte for the first byte of the packet, four
    /// for the packet number.
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
        let of_library = |key: &HeaderProtectionKey| {
            let mask = key.new_mask(sample);
            mask.expect("the sample has the required length")
        };
        match &self.0 {
            Cipher::Library(key) => of_library(key),
            Cipher::Compact(suite, key) => {
                of_library(&library_key(*suite, &key[..suite.key_len()]))
            }
            #[cfg(feature = "fused")]
            Cipher::Fused(key) => key.mask(sample),
        }
    }
}

fn library_key(suite: CipherSuite, key: &[u8]) -> HeaderProtectionKey {
    let key = HeaderProtectionKey::new(suite.header_protection(), key);
    key.expect("the key length matches the suite")
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey").finish_non_exhaustive()
    }
}

/// Protects the header of a sealed packet. `packet` starts at the first byte of the packet.
///
/// # Panics
/// Panics if the packet ends before the end of the sample, which lies [`SAMPLE_OFFSET`] plus
/// [`SAMPLE_LEN`] bytes behind the start of the packet number. The sender pads packets to prevent
/// this (RFC 9001 §5.4.2). Also panics if the packet number is not 1 to 4 bytes long.
#[inline]
pub fn protect(
    key: &HeaderKey,
    packet: &mut [u8],
    packet_number_offset: usize,
    packet_number_len: usize,
) {
    assert!(
        (1..=4).contains(&packet_number_len),
        "a packet number has 1 to 4 bytes"
    );
    let sample = sample(packet, packet_number_offset).expect("the packet holds a sample");
    let [first_mask, number_mask @ ..] = key.mask(sample);
    packet[0] ^= first_mask & protected_bits(packet[0]);
    let number = packet[packet_number_offset..].first_chunk_mut();
    mask_number(
        number.expect("the sample lies behind it"),
        number_mask,
        packet_number_len,
    );
}

/// Applies the mask to a packet number of `len` bytes, 1 to 4, at the beginning of `field`, and returns its
/// value.
///
/// All four bytes are one word: the processor would wait for a mask whose bytes were just written and are
/// read one by one.
#[inline]
fn mask_number(field: &mut [u8; 4], mask: [u8; 4], len: usize) -> u32 {
    let rest = 32 - 8 * len;
    let mask = u32::from_be_bytes(mask) & (u32::MAX << rest);
    let number = u32::from_be_bytes(*field) ^ mask;
    *field = number.to_be_bytes();
    number >> rest
}

/// Removes header protection and returns the length of the packet number and its truncated value.
/// `packet` starts at the first byte of the packet and ends where the packet ends.
///
/// Returns `None` and changes nothing if the packet is too short for a sample and must be dropped
/// (RFC 9001 §5.4.2). The result is not authentic until the payload has been opened: do not act on
/// the reserved bits or the packet number before that.
#[inline]
pub fn unprotect(
    key: &HeaderKey,
    packet: &mut [u8],
    packet_number_offset: usize,
) -> Option<(usize, u64)> {
    let [first_mask, number_mask @ ..] = key.mask(sample(packet, packet_number_offset)?);
    let first = packet.first_mut()?;
    *first ^= first_mask & protected_bits(*first);
    let len = usize::from(*first & PACKET_NUMBER_LEN_BITS) + 1;
    // The sample lies behind four bytes for the packet number.
    let field = packet.get_mut(packet_number_offset..)?.first_chunk_mut()?;
    Some((len, mask_number(field, number_mask, len).into()))
}

/// Offset of the sample from the start of the packet number. It assumes a packet number of four
/// bytes, whatever its actual length.
pub const SAMPLE_OFFSET: usize = 4;

/// Length of the sample in bytes.
pub const SAMPLE_LEN: usize = 16;

#[inline]
fn sample(packet: &[u8], packet_number_offset: usize) -> Option<&[u8; SAMPLE_LEN]> {
    packet
        .get(packet_number_offset.checked_add(SAMPLE_OFFSET)?..)?
        .first_chunk()
}

/// Returns the mask of the protected bits of a first byte: four in a long header, five in a short
/// one. RFC 9001 §5.4.1.
#[inline]
fn protected_bits(first: u8) -> u8 {
    if first & LONG_HEADER_BIT == 0 {
        0x1f
    } else {
        0x0f
    }
}

const LONG_HEADER_BIT: u8 = 0x80;
const PACKET_NUMBER_LEN_BITS: u8 = 0x03;

#[cfg(test)]
mod tests;
