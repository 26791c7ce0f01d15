//! Data that can still be read when the connection is over.

use super::table::Entry;
use super::{ReadError, Streams};

impl Streams {
    /// Ends the connection's streams when neither our application closed it nor the peer broke a
    /// rule: nothing is sent any more, but received data can be accepted and read.
    ///
    /// Memory of unsent and unacknowledged data is freed at once, that of a stream when its
    /// received bytes are all read or it is [stopped](Streams::stop). No more events follow.
    pub fn on_lost(&mut self) {
        self.is_over = true;
        self.queues.clear();
        self.limits.on_lost();
        self.flow.end();
        self.events.clear();
        self.deadlines = None;
        for key in self.table.keys().collect::<Vec<_>>() {
            let state = self.table.at(key);
            if let Some(send) = state.send.allocated() {
                send.recycle(&mut self.buffers);
            }
            state.end_sending();
            if state.is_over() || (state.receives && state.receive.is_stopped()) {
                self.table.remove(key, &mut self.buffers);
            }
        }
        self.buffers.sending.clear();
    }

    /// Replaces [`ReadError::Blocked`] if the connection is over and nothing more can arrive.
    #[inline]
    pub(super) fn or_closed<T>(&self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        match read {
            Err(ReadError::Blocked) if self.is_over => Err(ReadError::ClosedStream),
            read => read,
        }
    }
}

impl Entry {
    /// Ends all sending, because the connection is over.
    fn end_sending(&mut self) {
        self.sends = false;
        (self.in_free, self.in_new) = (None, None);
        self.pending = Default::default();
    }
}
