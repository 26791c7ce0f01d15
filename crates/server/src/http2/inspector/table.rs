//! The dynamic table of a client's encoder, as far as it must be known (RFC 7541 §2.3.2, §4).

use std::collections::VecDeque;

use super::kinds::Kind;

/// The entries that both the client and h2 have, by index and size. h2 has other text for some of them, see
/// [`Substitute`].
///
/// The changes of a block take effect when it ends, so that they can be undone.
#[derive(Debug)]
pub(super) struct Table {
    /// The newest first. Those behind `live` have been evicted within the current block.
    entries: VecDeque<Entry>,
    live: usize,
    size: usize,
    max: usize,
    /// Number of entries that the current block has inserted.
    inserted: usize,
    /// `live`, `size` and `max` before the current block.
    before: (usize, usize, usize),
}

/// An entry of the dynamic table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    name_len: u32,
    size: u32,
    pub(super) substitute: Option<Box<Substitute>>,
}

/// The reason why h2 has another field of the same size in its table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Substitute {
    /// The name of the entry is not permitted.
    Name,
    /// The value of the entry is not permitted. h2 has its name.
    Value,
    /// The entry is a pseudo-header field with this value.
    Pseudo(Vec<u8>),
}

impl Entry {
    pub(super) fn new(kind: Kind, name_len: usize, value_len: usize) -> Self {
        // Blocks are shorter than 4 GiB.
        let narrow = |len| u32::try_from(len).unwrap_or(u32::MAX);
        Self {
            kind,
            name_len: narrow(name_len),
            size: narrow(name_len.saturating_add(value_len).saturating_add(OVERHEAD)),
            substitute: None,
        }
    }

    pub(super) fn with(self, substitute: Substitute) -> Self {
        Self {
            substitute: Some(Box::new(substitute)),
            ..self
        }
    }

    pub(super) const fn name_len(&self) -> usize {
        self.name_len as usize
    }
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            live: 0,
            size: 0,
            max: MAX_SIZE,
            inserted: 0,
            before: (0, 0, MAX_SIZE),
        }
    }

    /// Begins a block.
    #[inline]
    pub(super) const fn begin(&mut self) {
        self.before = (self.live, self.size, self.max);
        self.inserted = 0;
    }

    /// Ends a block whose changes take effect.
    #[inline]
    pub(super) fn commit(&mut self) {
        if self.entries.len() > self.live {
            self.entries.truncate(self.live);
            self.entries.shrink_to(MAX_ENTRIES);
        }
    }

    /// Undoes the changes since [`begin`](Self::begin).
    pub(super) fn roll_back(&mut self) {
        self.entries.drain(..self.inserted);
        (self.live, self.size, self.max) = self.before;
        self.inserted = 0;
    }

    /// Returns the entry with this index, which counts from 1 at the beginning of the static table.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        let index = index.checked_sub(STATIC + 1)?;
        (index < self.live).then(|| self.entries.get(index))?
    }

    /// Changes the maximum size. Returns false if it is larger than the server permits.
    pub(super) fn set_max(&mut self, max: usize) -> bool {
        self.max = max;
        self.evict(max);
        max <= MAX_SIZE
    }

    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        let size = entry.size as usize;
        self.evict(self.max.saturating_sub(size));
        if size <= self.max {
            self.entries.push_front(entry);
            self.inserted += 1;
            self.live += 1;
            self.size += size;
        }
    }

    /// Evicts the oldest entries until the others have this size.
    fn evict(&mut self, most: usize) {
        while self.size > most {
            self.live -= 1;
            self.size -= self.entries[self.live].size as usize;
        }
    }

    /// Returns the sizes of the entries, the newest first.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> Vec<usize> {
        let live = self.entries.iter().take(self.live);
        live.map(|entry| entry.size as usize).collect()
    }
}

/// Number of entries of the static table.
pub(super) const STATIC: usize = 61;

/// Size of a field in addition to its name and value (RFC 7541 §4.1, RFC 9113 §6.5.2).
pub(super) const OVERHEAD: usize = 32;

/// Number of entries that a table has at most, between two blocks.
const MAX_ENTRIES: usize = MAX_SIZE / OVERHEAD;

/// The SETTINGS_HEADER_TABLE_SIZE of the server, which is the default (RFC 9113 §6.5.2).
const MAX_SIZE: usize = 4096;
