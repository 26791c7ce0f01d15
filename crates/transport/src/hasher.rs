//! A keyed hasher for tables whose keys a peer may choose.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// Creates SipHash states that are keyed with a secret, so that a peer cannot fill one bucket on
/// purpose (attack A14). The random state of the standard library would make runs irreproducible.
#[derive(Clone, Debug)]
pub struct KeyedState(DefaultHasher);

impl KeyedState {
    /// Creates a state keyed with 16 secret bytes.
    pub fn new(key: [u8; 16]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(&key);
        Self(hasher)
    }
}

impl BuildHasher for KeyedState {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.clone()
    }
}

/// Creates hashers for stream IDs: two multiplications and a secret instead of SipHash, which took
/// 3 % of the instructions of a small request.
///
/// The hash is unsuitable for values that a peer chooses freely. Of stream IDs a peer can only choose
/// which of a limited number stay open. It observes neither the secret nor an order that depends on
/// it, and a chain is at most as long as the number of streams allowed (limit K14).
#[derive(Clone, Debug)]
pub struct StreamIdState {
    mask: u64,
    factor: u64,
}

impl StreamIdState {
    /// Creates a state keyed with 16 secret bytes.
    pub fn new(key: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(key);
        let (low, high) = halves(key);
        Self {
            mask: low,
            factor: high | 1,
        }
    }
}

impl BuildHasher for StreamIdState {
    type Hasher = StreamIdHasher;

    fn build_hasher(&self) -> StreamIdHasher {
        StreamIdHasher {
            state: self.mask,
            factor: self.factor,
        }
    }
}

/// The hasher of [`StreamIdState`].
#[derive(Debug)]
pub struct StreamIdHasher {
    state: u64,
    factor: u64,
}

impl Hasher for StreamIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // Tables take the bucket from the low bits and a tag from the high ones. Folding both
        // halves of the product makes all bits depend on all bits of the value.
        self.state = fold(self.state ^ value, GOLDEN);
    }

    /// Folds once more, because after one product neighbouring IDs are evenly spaced.
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, self.factor)
    }
}

/// 2^64 divided by the golden ratio: its multiples are spread as evenly as possible.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn fold(value: u64, factor: u64) -> u64 {
    let (low, high) = halves(u128::from(value) * u128::from(factor));
    low ^ high
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the function returns the two halves"
)]
const fn halves(value: u128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Uses neighbouring IDs of one kind, as connections do.
    #[test]
    fn stream_ids_spread_over_a_table() {
        for key in [*b"a secret, 16 byt", *b"and another one.", [0x5a; 16]] {
            let state = StreamIdState::new(key);
            let distinct = |of: fn(u64) -> u64| {
                let ids = (0..1024u64).map(|index| index << 2);
                ids.map(|id| of(state.hash_one(id)))
                    .collect::<HashSet<_>>()
                    .len()
            };
            assert_eq!(distinct(|hash| hash), 1024, "no two alike, key {key:?}");
            // At random, 1024 values occupy 647 of 1024 buckets.
            assert!(distinct(|hash| hash & 1023) > 500, "low bits, key {key:?}");
            assert!(distinct(|hash| hash >> 57) > 100, "high bits, key {key:?}");
        }
    }

    #[test]
    fn same_key_same_hash_other_key_other_hash() {
        let hash = |key: u8| KeyedState::new([key; 16]).hash_one(42u64);
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }
}
