//! A keyed hasher for tables whose keys a peer may choose.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// Makes SipHash states that have absorbed a secret first, so that a peer cannot aim at one
/// bucket (attack A14). The standard library's own random state would make runs unrepeatable.
#[derive(Clone, Debug)]
pub struct KeyedState(DefaultHasher);

impl KeyedState {
    /// A state keyed with 16 secret bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_key_same_hash_other_key_other_hash() {
        let hash = |key: u8| KeyedState::new([key; 16]).hash_one(42u64);
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }
}
