//! Header protection. RFC 9001 §5.4.

use std::fmt;

use aws_lc_rs::aead::quic::HeaderProtectionKey;

use crate::CipherSuite;

/// The key that masks packet numbers and the low bits of first bytes.
pub struct HeaderKey(Cipher);

/// A key of one implementation. Both compute the same masks.
enum Cipher {
    Library(LibraryKey),
    #[cfg(feature = "fused")]
    Fused(courser_fused::HeaderKey),
}

/// A key of AWS-LC takes 504 bytes, and a fused one 16: the enum is no larger than it has to be.
#[cfg(feature = "fused")]
type LibraryKey = Box<HeaderProtectionKey>;
#[cfg(not(feature = "fused"))]
type LibraryKey = HeaderProtectionKey;

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
        let key = HeaderProtectionKey::new(suite.header_protection(), key);
        let key = key.expect("the key length matches the suite");
        #[cfg(feature = "fused")]
        let key = Box::new(key);
        Self(Cipher::Library(key))
    }

    /// Returns the mask for a sample of ciphertext: one byte for the first byte of the packet, four
    /// for the packet number.
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
        match &self.0 {
            Cipher::Library(key) => key
                .new_mask(sample)
                .expect("the sample has the required length"),
            #[cfg(feature = "fused")]
            Cipher::Fused(key) => key.mask(sample),
        }
    }
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
    let number = &mut packet[packet_number_offset..][..packet_number_len];
    number
        .iter_mut()
        .zip(number_mask)
        .for_each(|(byte, mask)| *byte ^= mask);
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
    let number = packet.get_mut(packet_number_offset..)?.get_mut(..len)?;
    let mut truncated = 0;
    for (byte, mask) in number.iter_mut().zip(number_mask) {
        *byte ^= mask;
        truncated = truncated << 8 | u64::from(*byte);
    }
    Some((len, truncated))
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
