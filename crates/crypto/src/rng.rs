//! Random numbers derived from a seed.

use std::fmt;

use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use zeroize::Zeroize;

/// A deterministic random number generator of cryptographic quality. The same seed gives the same
/// numbers.
///
/// AES-256 in counter mode fills a pool. The first bytes of every pool replace the key, and bytes
/// are erased as soon as they are returned. Earlier output can therefore not be computed from the
/// state. The pool is allocated for the first numbers and after [`Rng::shrink`], which drops it.
/// RFC 9001 §9.7 requires such a source for keys, connection IDs, tokens and challenges.
pub struct Rng {
    key: [u8; KEY_LEN],
    pool: Option<Box<Pool>>,
}

struct Pool {
    bytes: [u8; POOL_LEN],
    /// Number of bytes that were already used.
    used: usize,
}

impl Rng {
    /// Creates a generator from 32 unpredictable bytes.
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            key: seed,
            pool: None,
        }
    }

    /// Drops the pool to save memory. The next call fills a new one.
    pub fn shrink(&mut self) {
        self.pool = None;
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut rest = out;
        while !rest.is_empty() {
            let pool = self.pool.get_or_insert_with(Pool::used_up);
            if pool.used == POOL_LEN {
                pool.refill(&mut self.key);
            }
            let len = rest.len().min(POOL_LEN - pool.used);
            let (now, later) = rest.split_at_mut(len);
            let fresh = &mut pool.bytes[pool.used..][..len];
            now.copy_from_slice(fresh);
            fresh.fill(0);
            pool.used += len;
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
}

impl Pool {
    fn used_up() -> Box<Self> {
        Box::new(Self {
            bytes: [0; POOL_LEN],
            used: POOL_LEN,
        })
    }

    /// Fills the pool and replaces the key.
    fn refill(&mut self, key: &mut [u8; KEY_LEN]) {
        let old = UnboundCipherKey::new(&AES_256, key).expect("the key has 32 bytes");
        let cipher = EncryptingKey::ctr(old).expect("AES has a counter mode");
        self.bytes.fill(0);
        // The key is used for this pool only, so the counter always starts at zero.
        let counter = EncryptionContext::Iv128(FixedLength::from([0; 16]));
        cipher
            .less_safe_encrypt(&mut self.bytes, counter)
            .expect("the counter has 16 bytes");
        let (next, _) = self.bytes.split_at_mut(KEY_LEN);
        key.copy_from_slice(next);
        next.fill(0);
        self.used = KEY_LEN;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl Drop for Rng {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

const KEY_LEN: usize = 32;

/// Size of the pool. A refill costs a fraction of a microsecond for the key schedule, whatever the
/// size. Idle connections keep none.
const POOL_LEN: usize = 256;

#[cfg(test)]
mod tests;
