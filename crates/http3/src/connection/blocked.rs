//! Sections that are blocked on the dynamic table (RFC 9204 §2.2.1, §7.3).

use std::collections::HashMap;

/// Counts the bytes of sections that their streams hold until they are decoded.
///
/// The decoder counts only blocked streams. A section remains in memory after its stream is unblocked, until it
/// is decoded.
#[derive(Debug, Default)]
pub(super) struct BlockedSections {
    sizes: HashMap<u64, usize>,
    bytes: usize,
}

impl BlockedSections {
    /// Counts the section of a stream once. Returns false if all sections would exceed `most` bytes.
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
