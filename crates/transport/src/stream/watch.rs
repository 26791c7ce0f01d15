//! The progress of one stream, for the application.

use courser_wire::StreamId;

use super::event::ClosedStream;
use super::stats::{BlockedBy, RecvStreamStats, SendStreamStats};
use super::{StreamEvent, Streams};

impl Streams {
    /// Returns how many more bytes of a stream may be written so that the peer's credit for the stream
    /// and for the connection covers all of them. Returns 0 for a stream that has ended.
    ///
    /// QPACK needs this for instructions that must not be sent in part (RFC 9204 §2.1.3).
    pub fn send_credit(&mut self, id: StreamId) -> u64 {
        let Ok(key) = self.sender(id) else {
            return 0;
        };
        let limits = self.write_limits(key);
        self.table.at(key).send.credit_for_writes(limits)
    }

    /// Returns the progress of sending.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when everything was acknowledged, the stream was reset, or we do not send
    /// on it.
    pub fn send_stats(&self, id: StreamId) -> Result<SendStreamStats, ClosedStream> {
        let state = self.table.get(id).filter(|state| state.sends);
        state.ok_or(ClosedStream)?.send.stats().ok_or(ClosedStream)
    }

    /// Returns the progress of receiving.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the end was read, the stream is gone, or the peer does not send on it.
    pub fn receive_stats(&self, id: StreamId) -> Result<RecvStreamStats, ClosedStream> {
        let state = self.table.get(id).filter(|state| state.receives);
        let receive = &state.ok_or(ClosedStream)?.receive;
        (!receive.is_over())
            .then(|| receive.stats())
            .ok_or(ClosedStream)
    }

    /// Returns true if all bytes of a stream have arrived, so that the peer can no longer reset it; `None` if
    /// the stream or the connection is over.
    pub fn has_everything(&self, id: StreamId) -> Option<bool> {
        let state = self.table.get(id).filter(|state| state.receives);
        state.map(|state| state.receive.has_everything())
    }

    /// Returns true if the peer has acknowledged the first `len` bytes of a stream.Otherwise
    /// [`StreamEvent::Acknowledged`] follows once, for the smallest `len` of such calls, and then the others
    /// have to be repeated; or [`StreamEvent::Finished`] follows when everything was acknowledged.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when everything was acknowledged, the stream was reset, or we do not send
    /// on it.
    pub fn await_acknowledged(&mut self, id: StreamId, len: u64) -> Result<bool, ClosedStream> {
        let key = self.sender(id)?;
        self.table.at(key).send.await_acked(len)
    }

    /// Returns the limit that blocked the last write, as long as it still does; `None` if the next write may
    /// succeed.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is finished, reset or gone, or we do not send on it.
    pub fn blocked_by(&self, id: StreamId) -> Result<Option<BlockedBy>, ClosedStream> {
        let state = self.table.get(id).filter(|state| state.sends);
        let credit = self.flow.send.available();
        let unclaimed = credit.saturating_sub(self.buffers.sending.unsent());
        let send = &state.ok_or(ClosedStream)?.send;
        send.blocked_by(credit, unclaimed)
    }

    /// Returns the final size of the stream whose end or reset the last read has returned.
    pub fn last_final_size(&self) -> Option<u64> {
        self.last_size
    }

    /// Awaits the final size of a stream, which the peer announces with its end or its reset, also after
    /// [`Streams::stop`]. [`StreamEvent::Readable`] follows when it is known, and [`Streams::final_size`] returns it.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone or the peer does not send on it.
    pub fn await_final_size(&mut self, id: StreamId) -> Result<(), ClosedStream> {
        let state = self.table.get(id).filter(|state| state.receives);
        let size = state.ok_or(ClosedStream)?.receive.stats().final_size;
        self.sizes.get_or_insert_default().insert(id, size);
        Ok(())
    }

    /// Returns the awaited final size of a stream, `None` until it is known.
    pub fn final_size(&self, id: StreamId) -> Option<u64> {
        let sizes = self.sizes.as_ref()?;
        sizes.get(&id).copied().flatten()
    }

    /// Ends the wait for the final size of a stream.
    pub fn forget_final_size(&mut self, id: StreamId) {
        if let Some(sizes) = &mut self.sizes {
            sizes.remove(&id);
        }
    }

    /// Reports the final size of a stream that is awaited.
    pub(super) fn report_final_size(&mut self, key: u32) {
        let state = self.table.at(key);
        let (Some(sizes), Some(size)) = (&mut self.sizes, state.receive.stats().final_size) else {
            return;
        };
        if let Some(awaited @ None) = sizes.get_mut(&state.id) {
            *awaited = Some(size);
            self.events
                .push_back(StreamEvent::Readable { id: state.id });
        }
    }

    /// Reports that the bytes which the application waits for are acknowledged.
    #[inline]
    pub(super) fn report_acked(&mut self, key: u32) {
        let state = self.table.at(key);
        if let Some(len) = state.send.take_acked() {
            let id = state.id;
            self.events.push_back(StreamEvent::Acknowledged { id, len });
        }
    }
}
