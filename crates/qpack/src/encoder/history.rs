//! A record of recent field lines that are not in a table.

/// A direct-mapped cache of field line hashes. A new hash replaces an older one with the same
/// position.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Upper halves of hashes, zero where unused. Empty until the first field line.
    tags: Box<[u32]>,
}

impl History {
    /// Returns true if the hash is still recorded from an earlier call, and records it otherwise.
    pub(super) fn check_and_record(&mut self, hash: u64) -> bool {
        if self.tags.is_empty() {
            self.tags = vec![0; TAGS].into_boxed_slice();
        }
        let recorded = &mut self.tags[hash as usize % TAGS];
        let tag = (hash >> 32) as u32 | 1; // The upper half, and never zero.
        *recorded == tag || {
            *recorded = tag;
            false
        }
    }
}

/// Number of recorded hashes: about as many field lines as a dynamic table of 4 KiB holds.
const TAGS: usize = 64;
