//! The dynamic table (RFC 9204 §3.2). Encoder and decoder keep identical copies.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::field_line::line_size;

/// Entries in insertion order. Each has an absolute index, which counts from zero and is never
/// reused (§3.2.4).
#[derive(Debug, Default)]
pub(crate) struct DynamicTable {
    entries: VecDeque<Entry>,
    /// Number of evicted entries, which is also the absolute index of the oldest remaining entry.
    evicted: u64,
    size: usize,
    capacity: usize,
}

/// A name and a value in the dynamic table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
}

impl Entry {
    pub(crate) fn size(&self) -> usize {
        line_size(&self.name, &self.value)
    }
}

impl DynamicTable {
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the largest entry size in bytes that fits without an eviction.
    pub(crate) const fn free_capacity(&self) -> usize {
        self.capacity - self.size
    }

    /// Returns the number of inserted entries, which is also the absolute index of the next entry.
    pub(crate) fn insert_count(&self) -> u64 {
        self.evicted + self.entries.len() as u64
    }

    /// Returns the absolute index of the oldest entry, or of the next one in an empty table.
    pub(crate) const fn oldest(&self) -> u64 {
        self.evicted
    }

    /// Returns the entry with an absolute index, or `None` if it was evicted or not yet inserted.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&Entry> {
        let index = index.checked_sub(self.evicted)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Sets the capacity in bytes and evicts the oldest entries that no longer fit (§3.2.2).
    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.size > capacity {
            self.evict();
        }
    }

    /// Inserts an entry after evicting the oldest ones as needed. Returns false if the entry is
    /// larger than the capacity.
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        let size = entry.size();
        if size > self.capacity {
            return false;
        }
        while self.free_capacity() < size {
            self.evict();
        }
        self.size += size;
        self.entries.push_back(entry);
        true
    }

    /// Removes and returns the oldest entry.
    pub(crate) fn evict(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.evicted += 1;
        self.size -= entry.size();
        Some(entry)
    }

    /// Returns an entry by its relative index on the encoder stream. Zero is the newest entry
    /// (§3.2.5).
    pub(crate) fn get_relative(&self, distance: u64) -> Option<&Entry> {
        let index = self.insert_count().checked_sub(distance)?.checked_sub(1)?;
        self.get(index)
    }

    /// Returns the absolute index below which entries must be evicted to insert `size` bytes, or
    /// `None` if `size` exceeds the capacity.
    pub(crate) fn end_of_eviction(&self, size: usize) -> Option<u64> {
        let mut free = self.free_capacity();
        let mut end = self.evicted;
        for entry in &self.entries {
            if free >= size {
                break;
            }
            free += entry.size();
            end += 1;
        }
        (free >= size).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, value: &'static str) -> Entry {
        Entry {
            name: Bytes::from_static(name.as_bytes()),
            value: Bytes::from_static(value.as_bytes()),
        }
    }

    /// RFC 9204 §3.2.1, §3.2.2: size and eviction.
    #[test]
    fn evicts_the_oldest_entry() {
        let mut table = DynamicTable::default();
        table.set_capacity(100);
        assert!(table.insert(entry("a", "1")));
        assert!(table.insert(entry("b", "2")));
        assert_eq!(table.free_capacity(), 32);
        assert_eq!(table.end_of_eviction(33), Some(1));
        assert_eq!(table.end_of_eviction(101), None);
        assert!(table.insert(entry("c", "3")));
        assert!(table.get(0).is_none());
        assert_eq!(table.get(2).map(|entry| &entry.name[..]), Some(&b"c"[..]));
        assert_eq!(
            table.get_relative(1).map(|entry| &entry.name[..]),
            Some(&b"b"[..])
        );
        assert!(table.get_relative(2).is_none());
        assert_eq!((table.oldest(), table.insert_count()), (1, 3));
    }

    #[test]
    fn refuses_an_entry_larger_than_the_capacity() {
        let mut table = DynamicTable::default();
        table.set_capacity(34);
        assert!(table.insert(entry("a", "1")));
        assert!(!table.insert(entry("a", "12")));
        assert!(table.get(0).is_some());
    }

    #[test]
    fn smaller_capacity_evicts_entries() {
        let mut table = DynamicTable::default();
        table.set_capacity(100);
        assert!(table.insert(entry("a", "1")));
        assert!(table.insert(entry("b", "2")));
        table.set_capacity(60);
        assert_eq!(table.oldest(), 1);
        table.set_capacity(0);
        assert_eq!((table.oldest(), table.insert_count()), (2, 2));
        assert!(table.evict().is_none());
    }
}
