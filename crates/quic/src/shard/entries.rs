//! The table of connections that the application has handles of.

use courser_transport::ConnectionHandle;

use crate::shard::entry::ConnectionEntry;

/// The entry of each connection, until the application has dropped the last handle of it.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// By the index of the handle.
    list: Vec<Option<ConnectionEntry>>,
}

/// Entries from which on the table gives memory back, like the tables of the transport (limit K258).
const LEAST_ROOM: usize = 4096;

impl Entries {
    /// Adds the entry of a connection that the transport has just begun.
    pub(crate) fn insert(&mut self, handle: ConnectionHandle) -> &mut ConnectionEntry {
        let index = handle.index();
        if self.list.len() <= index {
            self.list.resize_with(index + 1, || None);
        }
        self.list[index].insert(ConnectionEntry::new(handle))
    }

    /// Returns the entry of a connection, or `None` if the application has no handle of it.
    #[inline]
    pub(crate) fn get(&self, handle: ConnectionHandle) -> Option<&ConnectionEntry> {
        let entry = self.list.get(handle.index())?.as_ref();
        // A later connection may have the index.
        entry.filter(|entry| entry.handle == handle)
    }

    /// Returns the entry of a connection, or `None` if the application has no handle of it.
    #[inline]
    pub(crate) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut ConnectionEntry> {
        let entry = self.list.get_mut(handle.index())?.as_mut();
        entry.filter(|entry| entry.handle == handle)
    }

    /// Removes the entry of a connection whose last handle was dropped.
    pub(crate) fn remove(&mut self, handle: ConnectionHandle) -> Option<ConnectionEntry> {
        let entry = self.list.get_mut(handle.index())?;
        let removed = entry.take_if(|entry| entry.handle == handle);
        // Low indexes are used first, so the list is short again after a burst.
        while let Some(None) = self.list.last() {
            self.list.pop();
        }
        if self.list.capacity() >= LEAST_ROOM && self.list.len() <= self.list.capacity() / 8 {
            self.list.shrink_to(2 * self.list.len());
        }
        removed
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ConnectionEntry> {
        self.list.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the handle with this index and generation.
    fn handle(index: u32, generation: u32) -> ConnectionHandle {
        let bits = (u64::from(generation) << 32) | u64::from(index);
        ConnectionHandle::from_bits(bits + 1).expect("the bits are not 0")
    }

    #[test]
    fn handle_of_an_earlier_connection_matches_nothing() {
        let (earlier, later) = (handle(3, 1), handle(3, 2));
        let mut entries = Entries::default();
        entries.insert(earlier);
        assert!(entries.get(earlier).is_some());
        assert!(entries.remove(earlier).is_some());
        entries.insert(later).is_connected = true;
        assert!(entries.get(earlier).is_none() && entries.get_mut(earlier).is_none());
        assert!(entries.remove(earlier).is_none());
        assert!(entries.get(later).is_some_and(|entry| entry.is_connected));
    }

    #[test]
    fn table_shrinks_after_a_burst() {
        let handles: Vec<_> = (0..10_000).map(|index| handle(index, 1)).collect();
        let mut entries = Entries::default();
        for handle in &handles {
            entries.insert(*handle);
        }
        for handle in handles.iter().rev() {
            assert!(entries.remove(*handle).is_some());
        }
        assert_eq!(entries.iter_mut().count(), 0);
        assert!(entries.list.is_empty() && entries.list.capacity() < LEAST_ROOM);
    }
}
