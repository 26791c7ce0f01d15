//! The codes with which the peer has stopped streams.

use std::collections::{HashMap, VecDeque};

use courser_wire::{StreamId, VarInt};

/// Codes of STOP_SENDING frames, kept for their handles. The transport sends RESET_STREAM in response
/// (RFC 9000 §3.5), and discards the stream when that is acknowledged.
///
/// Holds nothing, and costs nothing, while the peer stops no stream.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// Streams that were not finished. Each has a handle, or will have one when it is accepted,
    /// since dropping a handle finishes its stream: there are as many as the stream limits allow.
    open: HashMap<StreamId, VarInt>,
    /// Streams that were finished before. Their handles may be gone, and do not report that they are dropped: the
    /// last [`FINISHED_MAX`] codes are kept.
    finished: VecDeque<(StreamId, VarInt)>,
}

/// Codes that are kept of streams that were finished before they were stopped. An older one is reported as the end
/// of a finished stream.
const FINISHED_MAX: usize = 64;

impl Stops {
    pub(super) fn keep(&mut self, id: StreamId, code: VarInt, was_finished: bool) {
        if !was_finished {
            self.open.insert(id, code);
            return;
        }
        if self.finished.len() == FINISHED_MAX {
            self.finished.pop_front();
        }
        self.finished.push_back((id, code));
    }

    pub(super) fn code(&self, id: StreamId) -> Option<VarInt> {
        if self.is_empty() {
            return None;
        }
        let finished = self.finished.iter().find(|(known, _)| *known == id);
        let finished = finished.map(|(_, code)| *code);
        self.open.get(&id).copied().or(finished)
    }

    pub(super) fn forget(&mut self, id: StreamId) {
        if self.is_empty() {
            return;
        }
        self.open.remove(&id);
        self.finished.retain(|(known, _)| *known != id);
    }

    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.finished.is_empty()
    }
}

#[cfg(test)]
mod tests;
