//! What waits for the dynamic table, RFC 9204 §2.2.1, §7.3.

use std::collections::HashMap;

/// The bytes of sections that whoever reads their stream keeps until they can be decoded.
///
/// The decoder counts streams, and a stream is soon unblocked; its section stays until somebody
/// decodes it.
#[derive(Debug, Default)]
pub(super) struct BlockedSections {
    sizes: HashMap<u64, usize>,
    bytes: usize,
}

impl BlockedSections {
    /// Counts the section of a stream, once; false if all together would be more than `most`.
    pub(super) fn add(&mut self, stream: u64, len: usize, most: usize) -> bool {
        if self.sizes.contains_key(&stream) {
            return true;
        }
        if self.bytes + len > most {
            return false;
        }
        self.sizes.insert(stream, len);
        self.bytes += len;
        true
    }

    pub(super) fn remove(&mut self, stream: u64) {
        if !self.sizes.is_empty() {
            self.bytes -= self.sizes.remove(&stream).unwrap_or(0);
        }
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}
