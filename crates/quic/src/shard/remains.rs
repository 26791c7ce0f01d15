//! Values of users that have ended under the lock of a shard, and where they are dropped.
//!
//! Dropping such a value runs code of the user: the owner of a buffer, a sink, a controller. That code may
//! use the endpoint, and may take its time. So it runs after the lock is released, and delays its own
//! connection only: a call on the connection drops what has ended on it, in the task of the caller. If there
//! is no such call for [`PATIENCE`], because the tasks of the connection wait, a thread of the runtime that
//! may block drops it, one for each connection. The driver never does.
//!
//! [`foreign`](courser_base::foreign) collects the values, and knows the connection of each.

use std::sync::Arc;
use std::time::Duration;

use courser_base::Time;
use courser_base::foreign::{self, Remains};
use courser_transport::ConnectionHandle;

use crate::shard::ended::Batch;
use crate::shard::entry::ConnectionEntry;
use crate::shard::lock::Shard;
use crate::shard::state::State;

/// Time between two looks of the driver. The tasks of a connection have that time and up to once more to drop
/// what has ended there. Most are about to run, because
/// the acknowledgement that ended a buffer made room for the next one: handing a buffer to another
/// thread costs more than a request.
const PATIENCE: Duration = Duration::from_millis(1);

impl State {
    /// Sorts the values that have ended under this lock. Those of `caller` stay with the thread, which
    /// drops them when it has released its locks. Others wait for their own tasks or the driver.
    pub(crate) fn sort_remains(&mut self, caller: Option<ConnectionHandle>) {
        if foreign::has_waiting() && !self.ended.has_no_driver {
            let is_first = self.ended.since.is_none();
            foreign::route(caller.map(ConnectionHandle::to_bits), |value| {
                self.keep_remains(value);
            });
            if is_first && self.ended.since.is_some() {
                self.driver.call();
            }
        }
        if self.ended.connections.is_empty() {
            return;
        }
        let entry = caller.and_then(|handle| self.find_entry(handle));
        if let Some(ended) = entry.and_then(|entry| entry.ended.as_mut()) {
            foreign::take_over(ended.take());
        }
    }

    #[cold]
    fn keep_remains(&mut self, value: Remains) {
        self.ended.since.get_or_insert_with(|| self.clock.now());
        let handle = ConnectionHandle::from_bits(value.owner());
        let Some((handle, entry)) = handle.and_then(|it| Some((it, self.find_entry(it)?))) else {
            return self.ended.others.push(value);
        };
        let ended = entry.ended.get_or_insert_default();
        ended.values.push(value);
        if !std::mem::replace(&mut ended.is_listed, true) {
            self.ended.connections.push(handle);
        }
    }

    /// Returns when the driver has to take care of values that have ended.
    pub(crate) fn remains_due(&self) -> Option<Time> {
        self.ended.since.map(|since| since + PATIENCE)
    }

    /// Takes the values that have waited long enough for their own tasks.
    pub(crate) fn take_remains(&mut self, now: Time) -> Vec<Batch> {
        match self.remains_due() {
            Some(due) if due <= now => {
                let batches = self.look_at_remains(false);
                let is_waiting = !self.ended.connections.is_empty();
                self.ended.since = is_waiting.then_some(now);
                batches
            }
            _ => Vec::new(),
        }
    }

    /// Takes the values of connections where none were taken since the last look. With `all`, takes those of
    /// all connections.
    #[cold]
    fn look_at_remains(&mut self, all: bool) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        for handle in std::mem::take(&mut self.ended.connections) {
            let entry = self.find_entry(handle);
            let Some(ended) = entry.and_then(|entry| entry.ended.as_mut()) else {
                continue;
            };
            let values = match all {
                true => Some(ended.hand_out()),
                false => ended.look(),
            };
            let is_listed = ended.is_listed;
            batches.extend(values.map(|values| Batch {
                connection: Some(handle),
                values,
            }));
            if is_listed {
                self.ended.connections.push(handle);
            }
        }
        let mut others = std::mem::take(&mut self.ended.others);
        while let Some(owner) = others.first().map(Remains::owner) {
            let values = others.extract_if(.., |value| value.owner() == owner);
            batches.push(Batch {
                connection: None,
                values: values.collect(),
            });
        }
        batches
    }

    /// Returns more values of a connection for the thread that has dropped its batch.
    fn next_batch(&mut self, handle: Option<ConnectionHandle>) -> Vec<Remains> {
        let entry = handle.and_then(|handle| self.find_entry(handle));
        let Some(ended) = entry.and_then(|entry| entry.ended.as_mut()) else {
            return Vec::new();
        };
        let values = std::mem::take(&mut ended.values);
        ended.is_handed_out = !values.is_empty();
        values
    }

    /// Keeps the values of a connection whose entry is gone.
    pub(crate) fn keep_remains_of(&mut self, entry: ConnectionEntry) {
        if let Some(ended) = entry.ended.filter(|ended| !ended.values.is_empty()) {
            self.ended.since.get_or_insert_with(|| self.clock.now());
            self.ended.others.extend(ended.values);
            self.driver.call();
        }
    }

    /// Leaves all values to the thread, because the driver does not run any more.
    pub(crate) fn end_remains(&mut self) {
        self.ended.has_no_driver = true;
        self.ended.since = None;
        for batch in self.look_at_remains(true) {
            foreign::take_over(batch.values);
        }
    }
}

impl Shard {
    /// Has values dropped on threads that may block. The lock must not be held.
    pub(crate) fn drop_aside(self: &Arc<Self>, batches: Vec<Batch>) {
        for Batch { connection, values } in batches {
            let shard = self.clone();
            let mut values = values;
            self.runtime.spawn_blocking(Box::new(move || {
                while !values.is_empty() {
                    values.drain(..).for_each(Remains::end);
                    values = shard.lock().next_batch(connection);
                }
            }));
        }
    }
}
