//! A cache of recently sent sections, for messages that repeat the same field lines.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::section::Section;
use crate::field_line::FieldLine;

/// The last few sections whose encoding stays the same until the next insert. They consist of references and of
/// literals that never become references.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    entries: Vec<CacheEntry>,
    /// Hashes of the keys of `entries`. Most lookups need nothing else.
    hashes: Vec<u64>,
    /// The entry that is replaced next.
    oldest: usize,
    /// The key of the current field lines. Empty if they must not be cached.
    key: Vec<u8>,
    /// The hash of `key`.
    hash: u64,
}

#[derive(Debug, Default)]
struct CacheEntry {
    /// The field lines, each as two lengths, name and value.
    key: Vec<u8>,
    sent: Sent,
}

/// A section that was sent, and its references to the dynamic table.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    /// The insert count of the table before and after the section.
    pub(super) insert_count: u64,
    /// Its Required Insert Count.
    pub(super) required: u64,
    /// The smallest index it refers to.
    pub(super) smallest: u64,
}

impl Repeats {
    /// Returns the section that was sent for these field lines at the same insert count.
    pub(super) fn find<'a>(
        &mut self,
        mut lines: impl Iterator<Item = FieldLine<'a>>,
        insert_count: u64,
    ) -> Option<&Sent> {
        let key = &mut self.key;
        key.clear();
        // `all` instead of a loop, in which chained iterators are slow.
        let is_cacheable = lines.all(|line| {
            let lengths = [line.name.len(), line.value.len()];
            let len = LENGTHS + lengths[0] + lengths[1];
            if line.is_sensitive || key.len() + len > MAX_KEY_LEN {
                return false;
            }
            key.reserve(len);
            for len in lengths {
                key.extend_from_slice(&(len as u16).to_le_bytes()); // At most 508.
            }
            key.extend_from_slice(line.name);
            key.extend_from_slice(line.value);
            true
        });
        if !is_cacheable {
            key.clear();
        }
        if key.is_empty() {
            return None;
        }
        // A fixed seed suffices. Collisions cost only time, because keys are compared as well.
        self.hash = FixedState::with_seed(0).hash_one(&*key);
        let sent = &self.entries[self.position()?].sent;
        (sent.insert_count == insert_count).then_some(sent)
    }

    /// Returns the position of the entry for the current key.
    fn position(&self) -> Option<usize> {
        let mut hashes = self.hashes.iter().zip(&self.entries);
        hashes.position(|(hash, entry)| *hash == self.hash && entry.key == self.key)
    }

    /// Caches the section of the field lines passed to the last [`find`](Self::find). `lines` are
    /// the bytes after the prefix.
    pub(super) fn keep(&mut self, section: &Section, prefix: &[u8], lines: &[u8]) {
        if self.key.is_empty() || prefix.len() + lines.len() > MAX_SECTION_LEN {
            return;
        }
        let index = self.position().unwrap_or_else(|| self.allocate());
        self.hashes[index] = self.hash;
        let entry = &mut self.entries[index];
        std::mem::swap(&mut entry.key, &mut self.key);
        let sent = &mut entry.sent;
        sent.bytes.clear();
        sent.bytes.extend_from_slice(prefix);
        sent.bytes.extend_from_slice(lines);
        sent.insert_count = section.base;
        sent.required = section.required;
        sent.smallest = section.smallest;
    }

    /// Returns the position for a new entry: an unused one, or that of the oldest entry.
    fn allocate(&mut self) -> usize {
        if self.entries.len() < MAX_ENTRIES {
            self.entries.push(CacheEntry::default());
            self.hashes.push(0);
            return self.entries.len() - 1;
        }
        let index = self.oldest;
        self.oldest = (index + 1) % MAX_ENTRIES;
        index
    }

    /// Returns the length of each cached section.
    #[cfg(test)]
    pub(super) fn sections(&self) -> impl Iterator<Item = usize> {
        let lens = self.entries.iter().map(|entry| entry.sent.bytes.len());
        lens.filter(|len| *len > 0)
    }
}

/// Enough for the files of a page or the calls of a client. Keys and sections take at most 18 KiB.
pub(super) const MAX_ENTRIES: usize = 32;
/// The longest key in bytes: names, values and their lengths.
const MAX_KEY_LEN: usize = 512;
/// The longest cached section in bytes: three for each of many field lines.
const MAX_SECTION_LEN: usize = 64;
/// The bytes of both lengths in front of each field line of a key.
const LENGTHS: usize = 4;
