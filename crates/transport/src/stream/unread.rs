//! What can still be read when the connection is over.

use super::control::ControlQueue;
use super::limits::PeerStreams;
use super::table::Slot;
use super::{ReadError, Streams};

impl Streams {
    /// The connection is over, and not because our application ended it or the peer broke a rule:
    /// nothing is sent any more, but what has arrived can be accepted and read.
    ///
    /// Memory of what was to be sent is freed at once, that of a stream when it is read to where
    /// its bytes end or [stopped](Streams::stop). There are no more events.
    pub fn on_lost(&mut self) {
        self.is_over = true;
        self.control = ControlQueue::default();
        self.free.clear();
        self.new.clear();
        self.local = Default::default();
        self.events.clear();
        self.writers.clear();
        self.wishes = 0;
        (self.totals.retained, self.totals.unsent) = (0, 0);
        for slot in self.table.slots().collect::<Vec<_>>() {
            let state = self.table.at(slot);
            state.send.recycle(&mut self.buffers);
            state.end_sending();
            if state.is_over() || state.receive.is_stopped() {
                self.table.remove(slot, &mut self.buffers);
            }
        }
    }

    /// Takes what can still be read out of a connection that is over, so that it outlives it.
    /// `None` when there is nothing.
    ///
    /// What is taken is as large as what had arrived, which the receive windows bound.
    pub fn take_unread(&mut self) -> Option<Self> {
        let has_more = self.table.len() > 0 || self.peer.iter().any(PeerStreams::has_opened);
        if !self.is_over || !has_more {
            return None;
        }
        // Nothing is ever put into the table that stays, so its hash needs no secret.
        let mut rest = Self::new(self.side, self.config.clone(), self.buffers.pool(), [0; 16]);
        rest.on_close();
        rest.is_over = true;
        rest.totals.counters = self.totals.counters;
        Some(std::mem::replace(self, rest))
    }

    /// What a read says once nothing more can arrive.
    #[inline]
    pub(super) fn answer<T>(&self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        match read {
            Err(ReadError::Blocked) if self.is_over => Err(ReadError::ClosedStream),
            read => read,
        }
    }
}

impl Slot {
    /// There is nobody to send to any more.
    fn end_sending(&mut self) {
        self.sends = false;
        (self.in_free, self.in_new) = (false, false);
        self.wanted = Default::default();
    }
}
