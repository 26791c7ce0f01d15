//! Lookup of field lines and names in the dynamic table.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::dynamic_table::{DynamicTable, Entry};
use crate::field_line::FieldLine;

/// Maps hashes of field lines and names to the newest entry with them.
///
/// When two hashes collide, the older entry is no longer found. That costs only bytes, because a
/// lookup compares the strings as well.
#[derive(Debug)]
pub(super) struct Index {
    state: FixedState,
    lines: HashMap<u64, u64, FixedState>,
    names: HashMap<u64, u64, FixedState>,
}

impl Index {
    pub(super) fn new(seed: u64) -> Self {
        let state = FixedState::with_seed(seed);
        Self {
            lines: HashMap::with_hasher(state.clone()),
            names: HashMap::with_hasher(state.clone()),
            state,
        }
    }

    pub(super) fn hash(&self, name: &[u8], value: &[u8]) -> u64 {
        self.state.hash_one((name, value))
    }

    /// Returns the index of the newest entry with this name and value.
    pub(super) fn line(
        &self,
        table: &DynamicTable,
        hash: u64,
        line: &FieldLine<'_>,
    ) -> Option<u64> {
        let index = *self.lines.get(&hash)?;
        let entry = table.get(index)?;
        (entry.name == line.name && entry.value == line.value).then_some(index)
    }

    /// Returns the index of the newest entry with this name.
    pub(super) fn name(&self, table: &DynamicTable, name: &[u8]) -> Option<u64> {
        let index = *self.names.get(&self.state.hash_one(name))?;
        (table.get(index)?.name == name).then_some(index)
    }

    pub(super) fn add(&mut self, name: &[u8], hash: u64, index: u64) {
        self.lines.insert(hash, index);
        self.names.insert(self.state.hash_one(name), index);
    }

    /// Removes an evicted entry, unless a newer one replaced it.
    pub(super) fn remove(&mut self, entry: &Entry, index: u64) {
        let hash = self.hash(&entry.name, &entry.value);
        if self.lines.get(&hash) == Some(&index) {
            self.lines.remove(&hash);
        }
        let hash = self.state.hash_one(&entry.name[..]);
        if self.names.get(&hash) == Some(&index) {
            self.names.remove(&hash);
        }
    }
}
