//! Streams under a lock that the caller holds.

use courser_transport::{ConnectionHandle, Level};
use courser_wire::StreamId;

use crate::shard::lock::Locked;
use crate::shard::state::ShardState;

/// The streams of one connection, with the lock of their endpoint held.
#[derive(Debug)]
pub struct LockedStreams<'l, 's> {
    locked: &'l mut Locked<'s>,
    handle: ConnectionHandle,
}

impl<'l, 's> LockedStreams<'l, 's> {
    pub(crate) fn new(locked: &'l mut Locked<'s>, handle: ConnectionHandle) -> Self {
        Self { locked, handle }
    }

    /// Returns the state under the lock.
    pub(crate) fn state(&mut self) -> &mut ShardState {
        self.locked
    }

    /// Sets the level of a stream. Does nothing if the stream is over.
    pub fn set_level(&mut self, id: StreamId, level: Level) {
        if let Some(streams) = self.locked.streams(self.handle) {
            let _ = streams.set_level(id, level);
        }
    }
}
