//! Random numbers derived from a seed.

use std::fmt;

use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use zeroize::Zeroize;

/// A deterministic random number generator of cryptographic quality. The same seed gives the same
/// numbers.
///
/// AES-256 in counter mode fills a pool. The first bytes of every pool replace the key, and bytes
/// are erased as they are handed out. Earlier output can therefore not be computed from the state.
/// RFC 9001 §9.7 requires such a source for keys, connection IDs, tokens and challenges.
pub struct Rng {
    key: [u8; KEY_LEN],
    pool: [u8; POOL_LEN],
    /// Number of bytes of the pool that were already used.
    used: usize,
}

impl Rng {
    /// Creates a generator from 32 unpredictable bytes.
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            key: seed,
            pool: [0; POOL_LEN],
            used: POOL_LEN,
        }
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut rest = out;
        while !rest.is_empty() {
            if self.used == POOL_LEN {
                self.refill();
            }
            let len = rest.len().min(POOL_LEN - self.used);
            let (now, later) = rest.split_at_mut(len);
            let fresh = &mut self.pool[self.used..][..len];
            now.copy_from_slice(fresh);
            fresh.fill(0);
            self.used += len;
            rest = later;
        }
    }

    /// Returns an array of random bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        self.fill(&mut array);
        array
    }

    /// Returns a uniformly distributed number.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Returns a uniformly distributed number below `bound`.
    ///
    /// # Panics
    /// Panics if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert_ne!(bound, 0, "there is no number below zero");
        // The high half of the product maps the draw to the range. Low halves below 2^64 mod bound
        // would favour some results, so those draws are repeated.
        let biased = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.u64()) * u128::from(bound);
            let (high, low) = ((product >> 64) as u64, product as u64);
            if low >= biased {
                return high;
            }
        }
    }

    /// Creates another generator whose output is independent of the output of this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.array())
    }

    fn refill(&mut self) {
        let key = UnboundCipherKey::new(&AES_256, &self.key).expect("the key has 32 bytes");
        let cipher = EncryptingKey::ctr(key).expect("AES has a counter mode");
        self.pool.fill(0);
        // The key is used for this pool only, so the counter always starts at zero.
        let counter = EncryptionContext::Iv128(FixedLength::from([0; 16]));
        cipher
            .less_safe_encrypt(&mut self.pool, counter)
            .expect("the counter has 16 bytes");
        let (key, _) = self.pool.split_at_mut(KEY_LEN);
        self.key.copy_from_slice(key);
        key.fill(0);
        self.used = KEY_LEN;
    }
}

impl Drop for Rng {
    fn drop(&mut self) {
        self.key.zeroize();
        self.pool.zeroize();
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

const KEY_LEN: usize = 32;

/// Size of the pool. A refill costs a fraction of a microsecond for the key schedule, whatever the
/// size. This size keeps the generator small enough for one per connection.
const POOL_LEN: usize = 256;

#[cfg(test)]
mod tests;
