//! The records of connections, by the index of their handles.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use courser_base::Time;

use crate::connection::{Connection, ConnectionError};
use crate::endpoint::admission::claim::Claim;
use crate::endpoint::handle::ConnectionHandle;
use crate::endpoint::memory::Held;
use crate::endpoint::router::connection_routes::ConnectionRoutes;
use crate::endpoint::shrink::is_sparse;

/// The record of one connection, from its start until its owner releases it.
#[derive(Default)]
pub struct Entry {
    pub generation: u32,
    /// `None` in a free record and after a fault.
    pub connection: Option<Box<Connection>>,
    /// The error of a connection that was dropped because of a panic.
    pub fault: Option<Box<ConnectionError>>,
    pub state: EntryState,
    /// True if the owner has released the connection.
    pub is_released: bool,
    /// True if it is in the queue of connections whose events may be unread.
    pub is_ready: bool,
    /// True if it is in the queue of connections that may send.
    pub is_sender: bool,
    pub held: Held,
    /// The earliest entry in the timer heap.
    pub scheduled: Option<Time>,
    /// The claim of a server's connection on the limits of handshakes while its own is in progress. Idle
    /// connections have none, hence the box.
    pub claim: Option<Box<Claim>>,
    /// The routes to the connection, except for the IDs that it has issued.
    pub routes: ConnectionRoutes,
    /// Tokens that a server sends to the client for later connections.
    pub new_tokens: u32,
}

/// The state of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum EntryState {
    /// No connection uses the record.
    #[default]
    Free,
    /// The connection is open, or its peer has not been notified of its end yet.
    Busy,
    /// The peer has been notified of the end. Late packets are still dropped.
    Ended,
    /// The routes are removed. The connection waits for its owner to release it.
    Drained,
}

/// The records of connections. Low indexes are used first, so that the list becomes short again after a
/// burst of connections.
#[derive(Default)]
pub struct Entries {
    /// The records up to the last one in use.
    list: Vec<Entry>,
    in_use: usize,
    /// The indexes of free records. Those beyond the list were removed from it.
    free: BinaryHeap<Reverse<u32>>,
    /// At least the generation of each record that was removed from the list.
    generation: u32,
}

impl Entries {
    /// Returns the number of records in use.
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Allocates a free record and returns its handle.
    pub fn take(&mut self) -> ConnectionHandle {
        let lowest = self.free.pop().map(|Reverse(index)| index);
        let index = match lowest.filter(|index| (*index as usize) < self.list.len()) {
            Some(index) => index,
            None => {
                // The list has no free record, and the indexes beyond it are obsolete.
                self.free.clear();
                self.list.push(Entry {
                    generation: self.generation,
                    ..Entry::default()
                });
                u32::try_from(self.list.len() - 1)
                    .expect("fewer than 2^32 connections fit into memory")
            }
        };
        self.in_use += 1;
        let entry = &mut self.list[index as usize];
        entry.state = EntryState::Busy;
        ConnectionHandle {
            index,
            generation: entry.generation,
        }
    }

    /// Frees a record and invalidates its handle.
    pub fn free(&mut self, index: u32) {
        let entry = &mut self.list[index as usize];
        *entry = Entry {
            generation: entry.generation.wrapping_add(1),
            ..Entry::default()
        };
        self.in_use -= 1;
        self.free.push(Reverse(index));
        while let Some(last) = self.list.pop_if(|last| last.state == EntryState::Free) {
            self.generation = self.generation.max(last.generation);
        }
        if is_sparse(self.list.len(), self.list.capacity()) {
            let len = self.list.len();
            self.list.shrink_to(2 * len);
            self.free.retain(|Reverse(index)| (*index as usize) < len);
            self.free.shrink_to(2 * len);
        }
    }
}

/// Omits the connections, which would fill pages.
impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entries({} in use)", self.in_use)
    }
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.list
    }
}

impl DerefMut for Entries {
    fn deref_mut(&mut self) -> &mut [Entry] {
        &mut self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::shrink::MIN_CAPACITY;

    #[test]
    fn list_is_short_again_after_a_burst() {
        let mut entries = Entries::default();
        let burst: Vec<_> = (0..4 * MIN_CAPACITY).map(|_| entries.take()).collect();
        let (stay, go) = burst.split_at(10);
        go.iter().for_each(|handle| entries.free(handle.index));
        assert!(entries.len() < MIN_CAPACITY, "{}", entries.len());
        assert_eq!(entries.in_use(), 10);
        // Handles of the burst are not valid for records that reuse its indexes.
        let next: Vec<_> = (0..2 * MIN_CAPACITY).map(|_| entries.take()).collect();
        let is_old = |handle: &ConnectionHandle| burst.contains(handle);
        assert!(!next.iter().any(is_old));
        assert!(
            stay.iter()
                .all(|it| entries[it.index()].state == EntryState::Busy)
        );
    }

    #[test]
    fn connection_at_the_end_keeps_the_list_long_until_it_is_removed() {
        let mut entries = Entries::default();
        let burst: Vec<_> = (0..2 * MIN_CAPACITY).map(|_| entries.take()).collect();
        let (last, go) = burst.split_last().expect("some");
        go.iter().for_each(|handle| entries.free(handle.index));
        assert_eq!((entries.len(), entries.in_use()), (2 * MIN_CAPACITY, 1));
        entries.free(last.index);
        assert_eq!((entries.len(), entries.in_use()), (0, 0));
    }
}
