//! A map from stream IDs, which are small numbers and not chosen to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The state of each stream.
pub type StreamMap<T> = HashMap<u64, T, BuildHasherDefault<StreamHasher>>;

/// One multiplication; the default hash costs more than all else that is done with an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamHasher(u64);

impl Hasher for StreamHasher {
    fn write_u64(&mut self, id: u64) {
        // 2^64 divided by the golden ratio, odd: spreads neighbours over all bits.
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_and_taken() {
        let mut map = StreamMap::default();
        for stream in (0..4000).step_by(4) {
            map.insert(stream, stream + 1);
        }
        assert_eq!(map.len(), 1000);
        for stream in (0..4000).step_by(4) {
            assert_eq!(map.remove(&stream), Some(stream + 1));
        }
        assert!(map.is_empty());
    }
}
