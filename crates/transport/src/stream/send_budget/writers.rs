//! The writers that wait for memory of the connection.

use std::collections::VecDeque;

use courser_wire::StreamId;

use crate::stream::schedule::Level;

/// A writer that waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::stream) struct Writer {
    pub(in crate::stream) id: StreamId,
    /// The session of the stream; 0 is for those without one.
    pub(in crate::stream) session: u32,
    /// Its class is that of the session.
    pub(in crate::stream) level: Level,
}

/// Writers in the order in which they are woken: those of higher levels first, then the sessions in turn, then those of a
/// session in the order in which they came. Otherwise a session with many writers would get all memory.
#[derive(Debug, Default)]
pub(super) struct Writers {
    queue: VecDeque<(u64, Writer)>,
    /// The round of the writer that was woken last. In each round a session has one writer.
    round: u64,
}

impl Writers {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Adds a writer that is not among them. One that waits again is before its equals.
    pub(super) fn add(&mut self, writer: Writer, again: bool) {
        let mut last = self.round;
        for (round, other) in &self.queue {
            if other.id == writer.id {
                return;
            }
            if other.session == writer.session && other.level == writer.level {
                last = last.max(*round);
            }
        }
        let (round, before) = match again {
            true => (self.round, self.round),
            false => (last + 1, last + 2),
        };
        let at = self.queue.partition_point(|(round, other)| {
            other.level > writer.level || (other.level == writer.level && *round < before)
        });
        self.queue.insert(at, (round, writer));
    }

    /// Removes the first one.
    pub(super) fn pop_first(&mut self) -> Option<StreamId> {
        let (round, writer) = self.queue.pop_front()?;
        self.round = round;
        Some(writer.id)
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.queue.shrink_to_fit();
    }
}
