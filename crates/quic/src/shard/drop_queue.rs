//! Values of users that have ended under the lock of a shard, and where they are dropped.
//!
//! Dropping such a value runs code of the user: the owner of a buffer, a sink, a controller. That code may
//! use the endpoint, and may take long. So it runs after the lock is released, and delays its own
//! connection only: a call on the connection drops what has ended on it, in the task of the caller. If there
//! is no such call for [`PATIENCE`], because the tasks of the connection wait, a thread of the runtime that
//! may block drops it, one for each connection. The driver never does.
//!
//! [`foreign`](courser_base::foreign) collects the values, and knows the connection of each.

use std::time::Duration;

use courser_base::Time;
use courser_base::foreign::{self, Remains};
use courser_transport::ConnectionHandle;

use crate::shard::clock::Clock;
use crate::shard::ended_values::EndedValues;
use crate::shard::entries::Entries;

/// Interval at which the driver checks for values. The tasks of a connection have one to two intervals to drop what
/// has ended there. Most tasks are about to run, because the acknowledgement that ended a buffer made room for the
/// next one, and handing a buffer to another thread costs more than a request.
const PATIENCE: Duration = Duration::from_millis(1);

/// The values of a shard that wait to be dropped. Those of a connection are in its entry.
#[derive(Debug, Default)]
pub(crate) struct DropQueue {
    /// Values of connections that have no handle any more, and values of no connection.
    others: Vec<Remains>,
    /// Connections in whose entries values wait.
    connections: Vec<ConnectionHandle>,
    /// When the driver last checked them, or the first of them ended.
    since: Option<Time>,
    /// The driver is gone, and tasks drop the values of all connections.
    has_no_driver: bool,
}

/// Values of one connection, for a thread that may block.
#[derive(Debug)]
pub(crate) struct DropTask {
    pub(crate) connection: Option<ConnectionHandle>,
    pub(crate) values: Vec<Remains>,
}

impl DropQueue {
    /// Sorts the values that have ended under this lock. Those of `caller` stay with the thread, which
    /// drops them when it has released its locks. Others wait for their own tasks or the driver. Returns true
    /// if the driver has to be called for them.
    pub(crate) fn sort(
        &mut self,
        caller: Option<ConnectionHandle>,
        entries: &mut Entries,
        clock: &Clock,
    ) -> bool {
        let mut needs_driver = false;
        if foreign::has_waiting() && !self.has_no_driver {
            let was_empty = self.since.is_none();
            foreign::route(caller.map(ConnectionHandle::to_bits), |value| {
                self.keep(value, entries, clock);
            });
            needs_driver = was_empty && self.since.is_some();
        }
        if self.connections.is_empty() {
            return needs_driver;
        }
        let entry = caller.and_then(|handle| entries.get_mut(handle));
        if let Some(ended) = entry.and_then(|entry| entry.ended.as_mut()) {
            foreign::take_over(ended.take());
        }
        needs_driver
    }

    #[cold]
    fn keep(&mut self, value: Remains, entries: &mut Entries, clock: &Clock) {
        self.since.get_or_insert_with(|| clock.now());
        let handle = ConnectionHandle::from_bits(value.owner());
        let Some(entry) = handle.and_then(|handle| entries.get_mut(handle)) else {
            return self.others.push(value);
        };
        if entry.ended.get_or_insert_default().add(value) {
            self.connections.push(entry.handle);
        }
    }

    /// Keeps the values of a connection whose last handle was dropped. Returns true if the driver has to be
    /// called for them.
    pub(crate) fn keep_all(&mut self, ended: EndedValues, clock: &Clock) -> bool {
        let values = ended.into_values();
        if values.is_empty() {
            return false;
        }
        self.since.get_or_insert_with(|| clock.now());
        self.others.extend(values);
        true
    }

    /// Returns when the driver has to check the values.
    pub(crate) fn due(&self) -> Option<Time> {
        self.since.map(|since| since + PATIENCE)
    }

    /// Takes the values that have waited long enough for their own tasks.
    pub(crate) fn take_due(&mut self, now: Time, entries: &mut Entries) -> Vec<DropTask> {
        match self.due() {
            Some(due) if due <= now => {
                let tasks = self.collect(entries, EndedValues::check);
                let is_waiting = !self.connections.is_empty();
                self.since = is_waiting.then_some(now);
                tasks
            }
            _ => Vec::new(),
        }
    }

    /// Leaves all values to the thread, because the driver does not run any more.
    pub(crate) fn end(&mut self, entries: &mut Entries) {
        self.has_no_driver = true;
        self.since = None;
        for task in self.collect(entries, |ended| Some(ended.hand_out())) {
            foreign::take_over(task.values);
        }
    }

    /// Collects the values that `take` returns of each connection, and those of no connection.
    #[cold]
    fn collect(
        &mut self,
        entries: &mut Entries,
        take: impl Fn(&mut EndedValues) -> Option<Vec<Remains>>,
    ) -> Vec<DropTask> {
        let mut tasks: Vec<DropTask> = Vec::new();
        for handle in std::mem::take(&mut self.connections) {
            let entry = entries.get_mut(handle);
            let Some(ended) = entry.and_then(|entry| entry.ended.as_mut()) else {
                continue;
            };
            tasks.extend(take(ended).map(|values| DropTask {
                connection: Some(handle),
                values,
            }));
            if ended.is_listed() {
                self.connections.push(handle);
            }
        }
        let mut others = std::mem::take(&mut self.others);
        while let Some(owner) = others.first().map(Remains::owner) {
            let values = others.extract_if(.., |value| value.owner() == owner);
            tasks.push(DropTask {
                connection: None,
                values: values.collect(),
            });
        }
        tasks
    }
}
