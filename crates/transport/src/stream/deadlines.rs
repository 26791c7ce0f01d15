//! The times at which streams are reset if the peer has not received everything.

use std::collections::{BTreeMap, BTreeSet};

use courser_base::Time;
use courser_wire::StreamId;

/// The deadlines of the streams of one connection: at most one for each stream.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_time: BTreeSet<(Time, StreamId)>,
    by_stream: BTreeMap<StreamId, (Time, Expiry)>,
}

/// The reset of a stream whose deadline passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    pub(super) code: u64,
    /// Bytes that are still delivered if the peer accepts RESET_STREAM_AT.
    pub(super) reliable_size: u64,
}

impl Deadlines {
    /// Sets the deadline of a stream and its reset, in place of an earlier one.
    pub(super) fn set(&mut self, id: StreamId, at: Time, expiry: Expiry) {
        self.remove(id);
        self.by_time.insert((at, id));
        self.by_stream.insert(id, (at, expiry));
    }

    /// Removes the deadline of a stream, if there is one.
    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some((at, _)) = self.by_stream.remove(&id) {
            self.by_time.remove(&(at, id));
        }
    }

    /// Returns the earliest deadline.
    pub(super) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns a stream whose deadline has passed, with its reset.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(StreamId, Expiry)> {
        let (_, id) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        let (_, expiry) = self.by_stream.get(&id).copied()?;
        self.remove(id);
        Some((id, expiry))
    }
}
