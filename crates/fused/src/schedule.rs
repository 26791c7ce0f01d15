//! The memory of a key: round keys, and powers of the hash key.

use zeroize::Zeroize;

/// The round keys of one AES key.
#[repr(C, align(16))]
pub(crate) struct Rounds {
    pub(crate) keys: [Block; MAX_ROUNDS + 1],
    /// True for AES-256, which has 14 rounds, false for AES-128, which has 10.
    pub(crate) is_long: bool,
}

impl Rounds {
    pub(crate) fn new(key: &[u8]) -> Self {
        assert!(matches!(key.len(), 16 | 32), "a key has 16 or 32 bytes");
        Self {
            keys: [[0; BLOCK_LEN]; MAX_ROUNDS + 1],
            is_long: key.len() == 32,
        }
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// The values derived from one key that sealing and opening need.
#[repr(C, align(16))]
pub(crate) struct Schedule {
    /// The powers of the hash key H, from H^POWERS down to H, in the form that products need
    /// (`x86::block::twist`), followed by zeros. Unused lanes of a vector are multiplied by what follows
    /// the last power.
    pub(crate) powers: [Block; POWERS + PADDING],
    pub(crate) rounds: Rounds,
    /// The IV and four zeros.
    pub(crate) iv: Block,
}

impl Schedule {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self {
            powers: [[0; BLOCK_LEN]; POWERS + PADDING],
            rounds: Rounds::new(key),
            iv: [0; BLOCK_LEN],
        }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.powers.zeroize();
        self.iv.zeroize();
    }
}

/// A block of AES.
pub(crate) type Block = [u8; BLOCK_LEN];

pub(crate) const BLOCK_LEN: usize = 16;

/// Number of bytes that sealing adds to a payload.
pub const TAG_LEN: usize = 16;

/// Length of the IV of a packet key in bytes.
pub const IV_LEN: usize = 12;

/// Length of the sample of header protection in bytes.
pub const SAMPLE_LEN: usize = 16;

/// Length of a mask of header protection in bytes.
pub const MASK_LEN: usize = 5;

/// Number of rounds of AES-256, the longer key.
const MAX_ROUNDS: usize = 14;

/// Number of powers of the hash key that a key keeps. The hash is reduced once for so many blocks; more
/// of them take more memory and more time to prepare.
pub(crate) const POWERS: usize = 32;

/// Blocks of zeros behind the powers.
pub(crate) const PADDING: usize = 3;

#[cfg(test)]
mod tests;
