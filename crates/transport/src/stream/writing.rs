//! The calls of applications that write to streams.

use bytes::Bytes;
use courser_base::{Rate, Time};
use courser_wire::{Direction, StreamId};

use super::Streams;
use super::control::ControlFrame;
use super::deadlines::Expiry;
use super::event::{ClosedStream, FinishError, ResetAtError, StreamEvent, WriteError};
use super::send_budget::WriteLimits;

impl Streams {
    /// Opens a stream. Returns `None` at the peer's limit; then [`StreamEvent::Available`] follows.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.limits.open(direction)?;
        self.begin(id);
        Some(id)
    }

    /// Copies as many bytes to the end of a stream as the send buffer accepts, and returns how many.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// # use courser_wire::Direction;
    /// # let streams = pair.near().streams();
    /// # let id = streams.open(Direction::Unidirectional).expect("allowed");
    /// let data = vec![0; 10_000_000];
    /// let written = streams.write(id, &data)?;
    /// assert!(written < data.len()); // the rest follows at StreamEvent::Writable
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::Blocked`] when there is no room at present, the other variants when there will
    /// never be any.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let key = self.sender(id)?;
        let limits = self.quick_limits(key);
        let send = &mut self.table.at(key).send;
        let mut result = send.write(data, limits, &mut self.buffers);
        if let Err(WriteError::Blocked) = result
            && let Some(limits) = self.raised_limits(key)
        {
            let send = &mut self.table.at(key).send;
            result = send.write(data, limits, &mut self.buffers);
            send.end_wait_if(result.is_ok());
        }
        self.on_written(key, result)
    }

    /// Writes the header of a new stream, of which at most 16 bytes, without regard to the memory that other streams hold: it
    /// would have to wait for them before the stream can get an order. Returns how many bytes were written.
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::write`].
    pub fn write_header(&mut self, id: StreamId, header: &[u8]) -> Result<usize, WriteError> {
        let key = self.sender(id)?;
        let header = &header[..header.len().min(LONGEST_HEADER)];
        let limits = WriteLimits::of_header(header.len() as u64, self.flow.send.available());
        let send = &mut self.table.at(key).send;
        let result = send.write(header, limits, &mut self.buffers);
        self.on_written(key, result)
    }

    /// Appends bytes to a stream without copying them, as many as the send buffer accepts.
    /// Removes those from `data` and returns how many.
    ///
    /// # Errors
    ///
    /// [`WriteError::Blocked`] when there is no room at present, the other variants when there will
    /// never be any.
    pub fn write_chunk(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        let key = self.sender(id)?;
        let limits = self.quick_limits(key);
        let send = &mut self.table.at(key).send;
        let mut result = send.write_shared(data, limits, &mut self.buffers);
        if let Err(WriteError::Blocked) = result
            && let Some(limits) = self.raised_limits(key)
        {
            let send = &mut self.table.at(key).send;
            result = send.write_shared(data, limits, &mut self.buffers);
            send.end_wait_if(result.is_ok());
        }
        self.on_written(key, result)
    }

    /// Returns how many bytes written after `ahead` more bytes could be sent within the peer's credit, or
    /// `u64::MAX` if bytes can never be sent. With 0, if `ahead` is 0, [`StreamEvent::Writable`] follows when
    /// there is credit.
    ///
    /// An application that produces content on demand should call this first: content beyond the credit takes
    /// memory until the peer grants more.
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::write`], without [`WriteError::Blocked`].
    pub fn credit_beyond(&mut self, id: StreamId, ahead: u64) -> Result<u64, WriteError> {
        let key = self.sender(id)?;
        let limits = self.write_limits(key);
        let state = self.table.at(key);
        if let Some(code) = state.send.stopped() {
            return Err(WriteError::Stopped(code));
        }
        let credit = state.send.credit_beyond(ahead, limits);
        if credit > 0 || ahead > 0 {
            return Ok(credit);
        }
        if state.send.is_waiting_for_connection() {
            self.buffers.sending.wait(state.share.session, id);
        } else {
            let is_blocked = self.queues.signal_blocked(key, state);
            self.counters.stream_blocked += u64::from(is_blocked);
        }
        Ok(0)
    }

    /// Returns the limits of a write without those that only a blocked one needs.
    #[inline]
    fn quick_limits(&mut self, key: u32) -> WriteLimits {
        match self.table.at(key).share.session {
            0 => self
                .buffers
                .sending
                .quick_limits(self.flow.send.available()),
            _ => self.write_limits(key),
        }
    }

    pub(super) fn write_limits(&mut self, key: u32) -> WriteLimits {
        let session = self.table.at(key).share.session;
        let credit = self.flow.send.available();
        self.buffers.sending.write_limits(credit, session)
    }

    fn on_written(
        &mut self,
        key: u32,
        result: Result<usize, WriteError>,
    ) -> Result<usize, WriteError> {
        match result {
            Ok(_) => {
                if self.table.at(key).share.session != 0 {
                    self.count_held(key);
                }
                self.schedule(key);
            }
            Err(WriteError::Blocked) => self.on_write_blocked(key),
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {}
        }
        result
    }

    /// Ends the stream after the bytes written. [`StreamEvent::Finished`] follows when the peer has
    /// received everything.
    ///
    /// # Errors
    ///
    /// [`FinishError::Stopped`] when the peer has sent STOP_SENDING, [`FinishError::ClosedStream`]
    /// when the stream was finished or reset before.
    pub fn finish(&mut self, id: StreamId) -> Result<(), FinishError> {
        let key = self.sender(id)?;
        self.table.at(key).send.finish()?;
        self.schedule(key);
        Ok(())
    }

    /// Abandons sending: bytes that the peer has not received yet may never be delivered.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the peer has received everything, or the stream was reset before.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let key = self.sender(id)?;
        let before = self.unsent_if_open(key);
        if self.table.at(key).send.reset(code, &mut self.buffers)? {
            self.on_unsent_discarded(key, before);
            self.on_reset_due(key);
        }
        Ok(())
    }

    /// Abandons sending, but delivers the first `reliable_size` bytes of the stream, or all that were written if
    /// these are fewer. The peer's application reads these bytes and then the error code.
    ///
    /// A later call may reduce the size, down to 0 by [`Streams::reset`]. The code of the first
    /// call counts. [`StreamEvent::Finished`] follows when the peer has received the reset and these
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`ResetAtError::Unsupported`] when the peer does not accept RESET_STREAM_AT, and
    /// [`ResetAtError::ClosedStream`] when it has received everything or the stream was reset
    /// before.
    pub fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        let key = self.sender(id)?;
        if !self.peer_accepts_reset_at {
            return Err(ResetAtError::Unsupported);
        }
        if reliable_size == 0 {
            return Ok(self.reset(id, code)?);
        }
        let before = self.unsent_if_open(key);
        let state = self.table.at(key);
        let is_shorter = state
            .send
            .reset_at(code, reliable_size, &mut self.buffers)?;
        if !is_shorter {
            return Ok(());
        }
        self.on_unsent_discarded(key, before);
        self.count_held(key);
        self.queues.unschedule(self.table.at(key));
        self.schedule(key);
        let state = self.table.at(key);
        if state.send.unsent() == 0 {
            self.queues.withdraw(state, ControlFrame::Blocked);
        }
        self.request_reset_at(key);
        self.wake_writers();
        Ok(())
    }

    /// Resets the stream with `code` at this time, unless the peer has acknowledged everything by
    /// then: [`StreamEvent::Expired`] follows. Replaces an earlier deadline; `None` removes it. The first
    /// `reliable_size` bytes are still delivered if the peer accepts RESET_STREAM_AT.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the peer has received everything, or the stream was reset before.
    pub fn set_deadline(
        &mut self,
        id: StreamId,
        at: Option<Time>,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ClosedStream> {
        let key = self.sender(id)?;
        if self.table.at(key).send.stats().is_none() {
            return Err(ClosedStream);
        }
        let expiry = Expiry {
            code,
            reliable_size,
        };
        match at {
            Some(at) => self.deadlines.get_or_insert_default().set(id, at, expiry),
            None => {
                if let Some(deadlines) = &mut self.deadlines {
                    deadlines.remove(id);
                }
            }
        }
        Ok(())
    }

    /// Resets the streams whose deadlines have passed.
    #[cold]
    pub(super) fn reset_late_streams(&mut self, now: Time) {
        while let Some(deadlines) = &mut self.deadlines
            && let Some((id, expiry)) = deadlines.pop_due(now)
        {
            // All data may have been acknowledged while the stream stays open in the other direction.
            if self.send_stats(id).is_ok() && self.expire(id, expiry).is_ok() {
                self.events.push_back(StreamEvent::Expired { id });
            }
        }
    }

    fn expire(&mut self, id: StreamId, expiry: Expiry) -> Result<(), ClosedStream> {
        let Expiry {
            code,
            reliable_size,
        } = expiry;
        match self.reset_at(id, code, reliable_size) {
            Ok(()) => Ok(()),
            Err(ResetAtError::Unsupported) => self.reset(id, code),
            Err(ResetAtError::ClosedStream) => Err(ClosedStream),
        }
    }

    /// Limits the bytes per second that a stream sends for the first time. Bytes that are sent again do
    /// not count. Other streams send while it pauses. `None` removes the limit, and a rate of
    /// zero counts as a byte per second.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone, or we do not send on it.
    pub fn set_max_send_rate(
        &mut self,
        id: StreamId,
        rate: Option<Rate>,
    ) -> Result<(), ClosedStream> {
        let key = self.sender(id)?;
        self.queues.set_rate(self.now, id, rate);
        self.schedule(key);
        Ok(())
    }

    /// Returns the unsent bytes of all streams, or `None` if this one was reset before: its final size is known, and
    /// includes what it may still discard.
    pub(super) fn unsent_if_open(&mut self, key: u32) -> Option<u64> {
        let is_open = self.table.at(key).send.stats().is_some();
        is_open.then(|| self.buffers.sending.unsent())
    }

    /// Requests RESET_STREAM, and removes the stream from the queues of data, which was discarded.
    pub(super) fn on_reset_due(&mut self, key: u32) {
        self.count_held(key);
        self.queues.unschedule(self.table.at(key));
        let state = self.table.at(key);
        self.queues.withdraw(state, ControlFrame::Blocked);
        self.queues.request(key, state, ControlFrame::Reset);
        if !self.is_connection_blocked() {
            self.flow.withdraw_blocked();
        }
        self.wake_writers();
    }

    /// Returns the application error code of the peer's STOP_SENDING, if it sent one.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the peer has received everything, the stream is gone or we do not send
    /// on it.
    pub fn stopped(&self, id: StreamId) -> Result<Option<u64>, ClosedStream> {
        let state = self.table.get(id).filter(|state| state.sends);
        let send = &state.ok_or(ClosedStream)?.send;
        match send.stopped() {
            // The other direction may keep the stream for a long time.
            None if send.is_over() => Err(ClosedStream),
            stopped => Ok(stopped),
        }
    }

    #[inline]
    pub(super) fn sender(&mut self, id: StreamId) -> Result<u32, ClosedStream> {
        let key = self.table.find(id).ok_or(ClosedStream)?;
        if self.table.at(key).sends {
            Ok(key)
        } else {
            Err(ClosedStream)
        }
    }
}

/// Bytes of a header that are written in any case (limit K652): a type and the number of a session.
const LONGEST_HEADER: usize = 16;
