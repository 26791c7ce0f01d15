//! Frees the capacity of tables after a burst, when few entries are left.

use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, Hash};

/// Shrinks a table that is nearly empty. Call it after each removal. It moves at most one entry for each seven
/// that were removed.
#[inline]
pub(super) fn shrink<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if is_sparse(table.len(), table.capacity()) {
        table.shrink_to(2 * table.len());
    }
}

/// Shrinks a heap that is nearly empty, like [`shrink`].
#[inline]
pub(super) fn shrink_heap<T: Ord>(heap: &mut BinaryHeap<T>) {
    if is_sparse(heap.len(), heap.capacity()) {
        heap.shrink_to(2 * heap.len());
    }
}

/// Returns true if at most an eighth of the capacity is used, and the capacity is at least [`MIN_CAPACITY`].
#[inline]
pub(super) const fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity >= MIN_CAPACITY && len <= capacity / 8
}

/// The capacity in entries below which a table is not shrunk (limit K258).
pub(super) const MIN_CAPACITY: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_of_a_table_stays_a_small_multiple_of_its_entries() {
        let mut table: HashMap<u32, u32> = (0..100_000).map(|key| (key, key)).collect();
        let full = table.capacity();
        let mut shrunk = 0;
        for key in 0..100_000 {
            table.remove(&key);
            shrunk += u32::from(is_sparse(table.len(), table.capacity()));
            shrink(&mut table);
        }
        assert!(
            table.capacity() < MIN_CAPACITY,
            "{full} became {}",
            table.capacity()
        );
        assert!(shrunk <= 4, "{shrunk} times");
    }
}
