//! The memory and the timer of a connection after it was used.

use std::time::Duration;

use courser_base::Time;

use super::{Table, set_in_use};
use crate::connection::Timer;
use crate::endpoint::handle::ConnectionHandle;
use crate::error::TransportError;

impl Table {
    /// Sets the timer of a connection that was used, and counts its memory.
    pub fn settle(&mut self, now: Time, handle: ConnectionHandle) {
        self.schedule(now, handle);
        // Called last, because it may close a connection, whose sinks may panic.
        self.settle_memory(now, handle);
    }

    /// Counts the memory that a connection holds, and passes it the memory left.
    pub fn settle_memory(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(entry) = self.entries.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = entry.connection.as_deref_mut() else {
            return;
        };
        self.memory.set(&mut entry.held, connection.memory());
        connection.set_memory_left(self.memory.left());
        self.memory.windows().freeze(self.memory.is_tight());
        if self.memory.is_over() && self.memory.may_shed(now) {
            self.shed(now);
            set_in_use(&mut self.in_use, handle);
        }
    }

    /// Closes the connection that holds the most bytes for the least progress. Examines all connections, so
    /// it must run rarely.
    #[cold]
    fn shed(&mut self, now: Time) {
        let open = self.entries.iter_mut().enumerate();
        let open = open.filter_map(|(index, entry)| {
            let connection = entry.connection.as_deref_mut()?;
            let burden = entry.held.burden(connection.streams().delivered());
            (!connection.is_closed()).then_some((burden, index))
        });
        let Some((_, index)) = open.max() else {
            return;
        };
        for entry in self.entries.iter_mut() {
            if let Some(connection) = entry.connection.as_deref_mut() {
                entry.held.restart(connection.streams().delivered());
            }
        }
        let entry = &mut self.entries[index];
        let handle = ConnectionHandle {
            index: u32::try_from(index).expect("entries have 32-bit indices"),
            generation: entry.generation,
        };
        set_in_use(&mut self.in_use, handle);
        let Some(connection) = entry.connection.as_deref_mut() else {
            return;
        };
        let reason = "memory is short, and this connection holds most of it";
        connection.end(now, TransportError::internal(reason));
        self.memory.set(&mut entry.held, connection.memory());
        self.closed_for_memory += 1;
        self.mark_ready(handle);
    }

    /// Sets the timer of a connection if it is earlier than the one that is set. Later deadlines are
    /// considered when that one expires. A connection that may be idle is checked after a while, to
    /// [free](crate::connection::Connection::free_unneeded) memory.
    fn schedule(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(entry) = self.entries.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = entry.connection.as_deref() else {
            return;
        };
        let next = connection.next_timeout();
        let is_idle = next.is_none_or(|(_, timer)| matches!(timer, Timer::Idle | Timer::KeepAlive));
        let check = connection.keys_until().filter(|_| is_idle);
        let check = check.map(|check| check.max(now + CHECK_INTERVAL));
        let Some(at) = next.map(|(due, _)| due).into_iter().chain(check).min() else {
            return;
        };
        if entry.scheduled.is_none_or(|scheduled| at < scheduled) {
            entry.scheduled = Some(at);
            self.timers.add(at, handle);
            self.timers.remove_obsolete(&self.entries);
        }
    }

    /// Returns the time at which a timer is due next.
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Removes and returns the next connection whose timer is due. Later panics are attributed to it.
    pub fn next_due(&mut self, now: Time) -> Option<ConnectionHandle> {
        while let Some(timer) = self.timers.next_due(now) {
            set_in_use(&mut self.in_use, timer.handle);
            let entry = self.entry_mut(timer.handle);
            if let Some(entry) = entry.filter(|entry| entry.scheduled == Some(timer.at)) {
                entry.scheduled = None;
                return Some(timer.handle);
            }
        }
        None
    }

    /// Lets an idle connection give back memory, or puts that off if `earlier` others have done so just
    /// before: very many connections may become idle at the same time.
    pub fn check_idle(&mut self, now: Time, handle: ConnectionHandle, earlier: u32) {
        let Some(entry) = self.entries.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = entry.connection.as_deref_mut() else {
            return;
        };
        let pauses = earlier / CHECKS_AT_ONCE;
        if pauses == 0 {
            connection.free_unneeded(now);
            return self.settle(now, handle);
        }
        let later = now + CHECKS_PAUSE * pauses;
        let due = connection.next_timeout().map(|(due, _)| due);
        let at = due.map_or(later, |due| due.min(later));
        entry.scheduled = Some(at);
        self.timers.add(at, handle);
    }
}

/// Idle connections that free memory before datagrams are received again (limit K256).
pub const CHECKS_AT_ONCE: u32 = 64;
/// Minimum time between two checks of a connection that may be idle.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The pause between two groups of [`CHECKS_AT_ONCE`] connections (limit K256).
pub const CHECKS_PAUSE: Duration = Duration::from_millis(2);
