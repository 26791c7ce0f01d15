//! The connections of an endpoint: their records, memory, timers and queues of pending work.

pub mod entries;
pub mod settle;
mod timers;

use std::collections::VecDeque;
use std::mem;

use courser_base::{Time, foreign};

use self::entries::{Entries, Entry, EntryState};
use self::timers::Timers;
use super::admission::claim::Claim;
use super::handle::ConnectionHandle;
use super::memory::{Held, Memory};
use super::stats::EndpointStats;
use crate::build::transmit::SocketId;
use crate::connection::{Connection, ConnectionError, TlsTask};

/// The connections of an endpoint, from their start until their owners release them.
#[derive(Debug)]
pub struct Table {
    entries: Entries,
    memory: Memory,
    timers: Timers,
    /// Connections that were used or received datagrams, so that they may have events.
    ready: VecDeque<ConnectionHandle>,
    /// Connections whose events were read and that may send. A driver that waits for the data of woken tasks
    /// before it sends queues them here.
    senders: VecDeque<ConnectionHandle>,
    /// Connections with a pending TLS task. Some may be over.
    tls_tasks: VecDeque<ConnectionHandle>,
    /// Number of connections that are open, or whose peers have not been notified of their end.
    busy: usize,
    /// Number of drained connections that are not released.
    drained: usize,
    /// The connection that was used last, to which a panic is attributed.
    in_use: Option<ConnectionHandle>,
    /// Number of connections that were closed for lack of memory.
    closed_for_memory: u64,
}

impl Table {
    /// Creates a table without connections.
    pub fn new(memory: Memory) -> Self {
        Self {
            entries: Entries::default(),
            memory,
            timers: Timers::default(),
            ready: VecDeque::new(),
            senders: VecDeque::new(),
            tls_tasks: VecDeque::new(),
            busy: 0,
            drained: 0,
            in_use: None,
            closed_for_memory: 0,
        }
    }

    /// Adds a connection. `claim` counts the handshake of a server's connection until it is complete.
    pub fn add(&mut self, connection: Connection, claim: Option<Claim>) -> ConnectionHandle {
        let handle = self.entries.take();
        let entry = &mut self.entries[handle.index()];
        entry.connection = Some(Box::new(connection));
        entry.claim = claim.map(Box::new);
        self.busy += 1;
        handle
    }

    /// Returns the record of a connection.
    #[inline]
    pub fn entry(&self, handle: ConnectionHandle) -> Option<&Entry> {
        self.entries
            .get(handle.index())
            .filter(|entry| entry.generation == handle.generation)
    }

    /// Returns the record of a connection.
    #[inline]
    pub fn entry_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Entry> {
        self.entries
            .get_mut(handle.index())
            .filter(|entry| entry.generation == handle.generation)
    }

    /// Returns a connection; `None` after a fault and for an old handle.
    pub fn get(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.entry(handle)?.connection.as_deref()
    }

    /// Returns a connection, to which later panics are attributed.
    pub fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let entry = self
            .entries
            .get_mut(handle.index())
            .filter(|entry| entry.generation == handle.generation)?;
        set_in_use(&mut self.in_use, handle);
        entry.connection.as_deref_mut()
    }

    /// Returns the connection in use, and resets it to none.
    pub fn take_in_use(&mut self) -> Option<ConnectionHandle> {
        self.in_use.take()
    }

    /// Returns the handles of all connections that are not released.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        (0u32..)
            .zip(self.entries.iter())
            .filter(|(_, entry)| entry.connection.is_some())
            .map(|(index, entry)| ConnectionHandle {
                index,
                generation: entry.generation,
            })
    }

    /// Returns the number of connections that are not drained.
    pub fn connections(&self) -> usize {
        self.entries.in_use() - self.drained
    }

    /// Returns true when all connections are over and their peers notified.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// Returns true if a connection needs this socket. Examines all of them.
    pub fn uses_socket(&mut self, socket: SocketId) -> bool {
        self.entries.iter_mut().any(|entry| {
            let connection = entry.connection.as_deref_mut();
            connection.is_some_and(|it| !it.is_drained() && it.migrations().uses_socket(socket))
        })
    }

    /// Returns the memory that connections hold.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the memory that connections hold.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Writes the counters into those of the endpoint.
    pub fn count(&self, stats: &mut EndpointStats) {
        stats.connections = self.connections();
        stats.memory_used = self.memory.used();
        stats.memory_budget = self.memory.budget();
        stats.closed_for_memory = self.closed_for_memory;
    }
}

/// The queues of connections with pending work. Each connection is in each queue at most once.
impl Table {
    /// Queues a connection that may have events.
    #[inline]
    pub fn mark_ready(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.entry_mut(handle) else {
            return;
        };
        if !mem::replace(&mut entry.is_ready, true) {
            self.ready.push_back(handle);
        }
    }

    /// Removes and returns the next connection that may have events.
    pub fn next_ready(&mut self) -> Option<ConnectionHandle> {
        while let Some(handle) = self.ready.pop_front() {
            if let Some(entry) = self.entry_mut(handle) {
                entry.is_ready = false;
                return Some(handle);
            }
        }
        None
    }

    /// Queues a connection that may send.
    pub fn queue_sender(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.entry_mut(handle) else {
            return;
        };
        if !mem::replace(&mut entry.is_sender, true) {
            self.senders.push_back(handle);
        }
    }

    /// Removes and returns the next connection that may send.
    pub fn next_sender(&mut self) -> Option<ConnectionHandle> {
        while let Some(handle) = self.senders.pop_front() {
            if let Some(entry) = self.entry_mut(handle) {
                entry.is_sender = false;
                return Some(handle);
            }
        }
        None
    }

    /// Returns the queue of connections that may send. Some may be over.
    #[inline]
    pub fn senders(&self) -> &VecDeque<ConnectionHandle> {
        &self.senders
    }

    /// Queues a connection with a TLS task.
    #[cold]
    pub fn queue_tls_task(&mut self, handle: ConnectionHandle) {
        self.tls_tasks.push_back(handle);
        if self.tls_tasks.len() > 2 * self.entries.len() + SPARE_TASKS {
            let entries = &self.entries;
            self.tls_tasks.retain(|handle| {
                let entry = entries.get(handle.index());
                entry.is_some_and(|entry| entry.generation == handle.generation)
            });
        }
    }

    /// Removes and returns the next TLS task, with the handle of its connection.
    pub fn poll_tls_task(&mut self) -> Option<(ConnectionHandle, TlsTask)> {
        while let Some(handle) = self.tls_tasks.pop_front() {
            if let Some(entry) = self.entry_mut(handle)
                && let Some(connection) = entry.connection.as_deref_mut()
                && let Some(task) = connection.handshake_mut().take_tls_task()
            {
                return Some((handle, task));
            }
        }
        None
    }

    /// Returns true if [`Table::poll_tls_task`] may return a task.
    #[inline]
    pub fn has_tls_tasks(&self) -> bool {
        !self.tls_tasks.is_empty()
    }
}

/// The end of a connection, which is drained and then released by its owner.
impl Table {
    /// Records that the owner of a connection has released it.
    pub fn release(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.entry_mut(handle) else {
            return;
        };
        entry.is_released = true;
        if entry.state == EntryState::Drained {
            set_in_use(&mut self.in_use, handle);
            self.forget(handle);
        } else if let Some(connection) = self.get_mut(handle)
            && connection.is_closed()
        {
            connection.forget_unread();
        }
    }

    /// Records that a connection is over and its peer notified.
    pub fn on_ended(&mut self, handle: ConnectionHandle) {
        if let Some(entry) = self.entry_mut(handle)
            && entry.state == EntryState::Busy
        {
            entry.state = EntryState::Ended;
            self.busy -= 1;
        }
    }

    /// Frees the memory that a drained connection held for its peer, and returns its record. Remove all
    /// routes before [`Table::end_drain`]. Returns `None` if it was drained before.
    pub fn begin_drain(&mut self, handle: ConnectionHandle) -> Option<&mut Entry> {
        set_in_use(&mut self.in_use, handle);
        self.on_ended(handle);
        let entry = self
            .entries
            .get_mut(handle.index())
            .filter(|entry| entry.connection.is_some() && entry.state != EntryState::Drained)?;
        entry.state = EntryState::Drained;
        self.drained += 1;
        entry.scheduled = None;
        self.memory.set(&mut entry.held, 0);
        entry.held = Held::default();
        entry.claim = None;
        Some(entry)
    }

    /// Removes a drained connection whose owner has released it. Others keep unread data and statistics.
    pub fn end_drain(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.entry_mut(handle) else {
            return;
        };
        if entry.is_released {
            return self.forget(handle);
        }
        if let Some(connection) = entry.connection.as_deref_mut() {
            // Called last, because hooks of the user are dropped and may panic.
            connection.free_unneeded(Time::ZERO);
        }
    }

    /// Records the error of a connection that has panicked. It was removed from its record together with its
    /// routes.
    pub fn on_faulty(&mut self, handle: ConnectionHandle, fault: ConnectionError) {
        self.on_ended(handle);
        let Some(entry) = self
            .entries
            .get_mut(handle.index())
            .filter(|entry| entry.generation == handle.generation)
        else {
            return;
        };
        entry.scheduled = None;
        entry.claim = None;
        self.memory.set(&mut entry.held, 0);
        entry.held = Held::default();
        entry.fault = Some(Box::new(fault));
        let was_drained =
            mem::replace(&mut entry.state, EntryState::Drained) == EntryState::Drained;
        let is_released = entry.is_released;
        self.drained += usize::from(!was_drained);
        match is_released {
            true => self.forget(handle),
            false => self.mark_ready(handle),
        }
    }

    /// Frees the record of a drained connection and drops the connection.
    fn forget(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.entries.get_mut(handle.index()) else {
            return;
        };
        let connection = entry.connection.take();
        self.drained -= 1;
        self.entries.free(handle.index);
        if let Some(connection) = connection {
            drop_connection(connection);
        }
    }
}

#[cfg(test)]
impl Table {
    /// Returns the records, free ones included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Replaces the memory by one in which connections hold no bytes.
    pub fn set_memory(&mut self, memory: Memory) {
        self.memory = memory;
        self.entries
            .iter_mut()
            .for_each(|entry| entry.held = Held::default());
    }

    /// Returns the number of timers, obsolete ones included.
    pub fn timers(&self) -> usize {
        self.timers.len()
    }
}

/// Sets the connection in use, to which panics and dropped values of users are attributed.
#[inline]
fn set_in_use(in_use: &mut Option<ConnectionHandle>, handle: ConnectionHandle) {
    *in_use = Some(handle);
    foreign::set_owner(handle.to_bits());
}

/// Drops a connection that is over. Its sinks are detached first, so that they can finish their work.
pub fn drop_connection(mut connection: Box<Connection>) {
    connection.tap().set(None);
    connection.tap().set_guest(None);
    foreign::defer(connection);
}

/// Number of obsolete entries in the queue of TLS tasks below which it is not cleaned up.
const SPARE_TASKS: usize = 64;

#[cfg(test)]
mod tests;
