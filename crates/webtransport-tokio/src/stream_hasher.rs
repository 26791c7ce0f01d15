//! The hash of stream IDs in tables of sessions.

use std::hash::{BuildHasherDefault, Hasher};

/// A hash of stream IDs that costs a multiplication. A peer that chooses IDs so that they collide makes the tables of its
/// own connection slower, which have at most as many entries as it may open streams.
pub(crate) type StreamHasher = BuildHasherDefault<Multiplying>;

/// Multiplies with the golden ratio (Fibonacci hashing).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Multiplying(u64);

impl Hasher for Multiplying {
    fn finish(&self) -> u64 {
        // Tables use the lowest and the highest bits, and the lowest are the weakest of a product.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
