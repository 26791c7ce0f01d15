//! Tables that give back the room of a burst when few entries are left.

use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, Hash};

/// Gives back the room of a table that is nearly empty. Call it after each removal: it moves at most one entry
/// for each seven that were removed.
#[inline]
pub(super) fn shrink<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if is_sparse(table.len(), table.capacity()) {
        table.shrink_to(2 * table.len());
    }
}

/// Gives back the room of a heap that is nearly empty, as [`shrink`] does.
#[inline]
pub(super) fn shrink_heap<T: Ord>(heap: &mut BinaryHeap<T>) {
    if is_sparse(heap.len(), heap.capacity()) {
        heap.shrink_to(2 * heap.len());
    }
}

/// Returns true if at most an eighth of the room is used, and it is worth being given back.
#[inline]
pub(super) const fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity >= LEAST_ROOM && len <= capacity / 8
}

/// The room in entries that a table keeps in any case (limit K258).
pub(super) const LEAST_ROOM: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_room_for_a_few_times_its_entries() {
        let mut table: HashMap<u32, u32> = (0..100_000).map(|key| (key, key)).collect();
        let full = table.capacity();
        let mut shrunk = 0;
        for key in 0..100_000 {
            table.remove(&key);
            shrunk += u32::from(is_sparse(table.len(), table.capacity()));
            shrink(&mut table);
        }
        assert!(
            table.capacity() < LEAST_ROOM,
            "{full} became {}",
            table.capacity()
        );
        assert!(shrunk <= 4, "{shrunk} times");
    }
}
