//! Keys of payloads and of headers.

use std::fmt;

use crate::kernel::Kernel;
use crate::processor;
use crate::schedule::{IV_LEN, MASK_LEN, Rounds, SAMPLE_LEN, Schedule, TAG_LEN};

/// The AES-GCM key and the IV of one direction and one key phase.
///
/// A key takes 832 bytes on the heap, whatever its length: the round keys and the powers of the hash
/// key. They do not move, and are erased when the key is dropped.
pub struct PacketKey {
    schedule: Box<Schedule>,
    kernel: Kernel,
}

impl PacketKey {
    /// Creates a key of AES-128-GCM from 16 bytes, or of AES-256-GCM from 32, for the fastest kernel.
    ///
    /// Returns `None` if the processor can run none.
    ///
    /// # Panics
    /// Panics if the key has another length.
    pub fn new(key: &[u8], iv: &[u8; IV_LEN]) -> Option<Self> {
        Self::with_kernel(Kernel::best()?, key, iv)
    }

    /// Creates a key for a certain kernel, or returns `None` if the processor cannot run it.
    ///
    /// # Panics
    /// Panics if the key has neither 16 nor 32 bytes.
    pub fn with_kernel(kernel: Kernel, key: &[u8], iv: &[u8; IV_LEN]) -> Option<Self> {
        if !kernel.is_available() {
            return None;
        }
        let mut schedule = Box::new(Schedule::new(key));
        schedule.iv[..IV_LEN].copy_from_slice(iv);
        processor::expand(kernel, key, &mut schedule.rounds);
        processor::raise(kernel, &mut schedule);
        Some(Self { schedule, kernel })
    }

    /// Encrypts `payload` in place and writes the authentication tag. `header` is the unprotected header
    /// including the packet number.
    ///
    /// `number` has 96 bits: a path ID of 32 bits, which is 0 on connections with one path, and the
    /// packet number in 64 (RFC 10069 §2.4). Each must be used at most once per key.
    ///
    /// # Panics
    /// Panics if the payload has 2^36 - 32 bytes or more (NIST SP 800-38D §5.2.1.1).
    #[inline]
    pub fn seal(&self, number: u128, header: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        check_len(payload.len());
        *tag = processor::seal(self.kernel, &self.schedule, number, header, payload);
    }

    /// Encrypts `plaintext` into `ciphertext` and writes the authentication tag.
    ///
    /// # Panics
    /// Panics if the lengths differ, and where [`PacketKey::seal`] does.
    #[inline]
    pub fn seal_from(
        &self,
        number: u128,
        header: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
        tag: &mut [u8; TAG_LEN],
    ) {
        check_len(plaintext.len());
        assert_eq!(
            plaintext.len(),
            ciphertext.len(),
            "input and output have the same length"
        );
        let texts = (plaintext, ciphertext);
        *tag = processor::seal_from(self.kernel, &self.schedule, number, header, texts);
    }

    /// Decrypts `ciphertext` in place if `tag` matches.
    ///
    /// # Errors
    /// Returns [`Forged`] if it does not. `ciphertext` is then filled with zeros, so that no unauthenticated
    /// plaintext remains.
    ///
    /// # Panics
    /// Panics where [`PacketKey::seal`] does.
    #[inline]
    pub fn open(
        &self,
        number: u128,
        header: &[u8],
        ciphertext: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Forged> {
        check_len(ciphertext.len());
        if processor::open(
            self.kernel,
            &self.schedule,
            number,
            (header, tag),
            ciphertext,
        ) {
            return Ok(());
        }
        ciphertext.fill(0);
        Err(Forged)
    }

    /// Returns the kernel that the key was made for.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKey")
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

/// The error of a packet whose authentication tag does not match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forged;

impl fmt::Display for Forged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("packet failed authentication")
    }
}

impl std::error::Error for Forged {}

/// The AES key of header protection, erased when dropped.
pub struct HeaderKey {
    rounds: Box<Rounds>,
    kernel: Kernel,
}

impl HeaderKey {
    /// Creates a key of AES-128 from 16 bytes, or of AES-256 from 32.
    ///
    /// Returns `None` if the processor has no AES instructions.
    ///
    /// # Panics
    /// Panics if the key has another length.
    pub fn new(key: &[u8]) -> Option<Self> {
        Self::with_kernel(Kernel::best()?, key)
    }

    /// Creates a key for a certain kernel, or returns `None` if the processor cannot run it.
    ///
    /// # Panics
    /// Panics if the key has neither 16 nor 32 bytes.
    pub fn with_kernel(kernel: Kernel, key: &[u8]) -> Option<Self> {
        if !kernel.is_available() {
            return None;
        }
        let mut rounds = Box::new(Rounds::new(key));
        processor::expand(kernel, key, &mut rounds);
        Some(Self { rounds, kernel })
    }

    /// Returns the mask for a sample of ciphertext: one byte for the first byte of the packet, four for
    /// the packet number. RFC 9001 §5.4.3.
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> [u8; MASK_LEN] {
        processor::mask(self.kernel, &self.rounds, sample)
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey").finish_non_exhaustive()
    }
}

/// Checks that a payload is one that AES-GCM can protect.
#[inline]
fn check_len(len: usize) {
    assert!((len as u64) < MAX_TEXT, "AES-GCM protects fewer bytes");
}

const MAX_TEXT: u64 = (1 << 36) - 32;

#[cfg(test)]
mod tests;
