//! The calls of the application on streams.

use bytes::Bytes;
use courser_base::{Rate, Time};
use courser_wire::{Direction, StreamId};

use super::Streams;
use super::control::ControlFrame;
use super::event::{ClosedStream, FinishError, ReadError, StreamEvent, WriteError};
use super::limits::Use;
use super::send::WriteRoom;

impl Streams {
    /// Opens a stream. Returns `None` at the peer's limit; then [`StreamEvent::Available`] follows.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.limits.open(direction)?;
        self.begin(id);
        Some(id)
    }

    /// Returns the next stream that the peer opened, in the order of their numbers. Returns `None`
    /// if there is none; then [`StreamEvent::Opened`] follows.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// # use courser_wire::Direction;
    /// # let near = pair.near().streams();
    /// # let opened = near.open(Direction::Unidirectional).expect("allowed");
    /// # near.write(opened, b"hello")?;
    /// # pair.run();
    /// # let streams = pair.far().streams();
    /// while let Some(id) = streams.accept(Direction::Unidirectional) {
    ///     let chunk = streams.read_chunk(id, usize::MAX)?;
    ///     println!("{chunk:?} on {id:?}");
    ///     # assert_eq!(id, opened);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let (id, usage) = self.limits.accept(direction)?;
        if usage == Use::New {
            self.begin(id);
        }
        Some(id)
    }

    /// Copies bytes to the end of a stream and returns how many there was room for.
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
        let (key, room) = (self.sender(id)?, self.write_room());
        let result = self.table.at(key).send.write(data, room, &mut self.buffers);
        self.on_written(key, result)
    }

    /// Appends bytes to a stream without copying them, removes those from `data`, and returns how
    /// many there was room for.
    ///
    /// # Errors
    ///
    /// [`WriteError::Blocked`] when there is no room at present, the other variants when there will
    /// never be any.
    pub fn write_chunk(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        let (key, room) = (self.sender(id)?, self.write_room());
        let result = self
            .table
            .at(key)
            .send
            .write_shared(data, room, &mut self.buffers);
        self.on_written(key, result)
    }

    /// Returns true if bytes written after `ahead` more bytes could be sent within the peer's
    /// credit. Otherwise, if `ahead` is 0, [`StreamEvent::Writable`] follows when there is credit.
    ///
    /// An application that produces content on demand asks this first: content produced for a peer
    /// that grants no credit takes memory for as long as the peer likes.
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::write`], without [`WriteError::Blocked`].
    pub fn is_worth_writing(&mut self, id: StreamId, ahead: u64) -> Result<bool, WriteError> {
        let (key, room) = (self.sender(id)?, self.write_room());
        let state = self.table.at(key);
        if let Some(code) = state.send.stopped() {
            return Err(WriteError::Stopped(code));
        }
        if state.send.is_worth_writing(ahead, room) {
            return Ok(true);
        }
        if ahead > 0 {
            return Ok(false);
        }
        if state.send.is_waiting_for_connection() {
            self.buffers.sending.wait(id);
        } else {
            let is_blocked = self.queues.signal_blocked(key, state);
            self.counters.stream_blocked += u64::from(is_blocked);
        }
        Ok(false)
    }

    pub(super) fn write_room(&self) -> WriteRoom {
        self.buffers.sending.room(self.flow.send.available())
    }

    fn on_written(
        &mut self,
        key: u32,
        result: Result<usize, WriteError>,
    ) -> Result<usize, WriteError> {
        match result {
            Ok(_) => self.schedule(key),
            Err(WriteError::Blocked) => {
                let state = self.table.at(key);
                if state.send.is_waiting_for_connection() {
                    self.buffers.sending.wait(state.id);
                }
            }
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {}
        }
        result
    }

    /// Ends the stream after the bytes written. [`StreamEvent::Finished`] follows when the peer
    /// has received everything.
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
        if self.table.at(key).send.reset(code, &mut self.buffers)? {
            self.on_reset_due(key);
        }
        Ok(())
    }

    /// Resets the stream with `code` at this time, unless the peer has acknowledged everything by
    /// then: [`StreamEvent::Expired`] follows. Replaces an earlier deadline; `None` removes it.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the peer has received everything, or the stream was reset before.
    pub fn set_deadline(
        &mut self,
        id: StreamId,
        at: Option<Time>,
        code: u64,
    ) -> Result<(), ClosedStream> {
        let key = self.sender(id)?;
        if self.table.at(key).send.stats().is_none() {
            return Err(ClosedStream);
        }
        match at {
            Some(at) => self.deadlines.get_or_insert_default().set(id, at, code),
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
            && let Some((id, code)) = deadlines.pop_due(now)
        {
            // It may have been delivered while its other direction stays open.
            let is_late = self.send_stats(id).is_ok() && self.reset(id, code).is_ok();
            if is_late {
                self.events.push_back(StreamEvent::Expired { id });
            }
        }
    }

    /// Limits the bytes per second that a stream sends for the first time. Bytes that are sent again do
    /// not count. Other streams use the time in which it pauses. `None` removes the limit, and a rate of
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

    /// Sends RESET_STREAM in place of the bytes of a stream, which were discarded.
    pub(super) fn on_reset_due(&mut self, key: u32) {
        self.queues.unschedule(key, self.table.at(key));
        let state = self.table.at(key);
        self.queues.withdraw(state, ControlFrame::Blocked);
        self.queues.request(key, state, ControlFrame::Reset);
        if !self.is_connection_blocked() {
            self.flow.withdraw_blocked();
        }
        self.wake_writers();
    }

    /// Sets the priority: of two streams with data to send, the one with the higher priority is
    /// sent first.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), ClosedStream> {
        let key = self.table.find(id).ok_or(ClosedStream)?;
        self.queues.unschedule(key, self.table.at(key));
        self.table.at(key).priority = priority;
        self.schedule(key);
        Ok(())
    }

    /// Returns the priority, zero unless set.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn priority(&self, id: StreamId) -> Result<i32, ClosedStream> {
        self.table
            .get(id)
            .map(|state| state.priority)
            .ok_or(ClosedStream)
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

    /// Copies received bytes to `out`. Returns `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`ReadError::Blocked`] when nothing has arrived yet, [`ReadError::Reset`] when the peer
    /// reset the stream, [`ReadError::ClosedStream`] when we stopped reading, the stream is gone,
    /// or the connection is over and all received bytes are read, [`ReadError::Unordered`] after
    /// [`Streams::read_unordered`].
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let key = self.reader(id)?;
        let part = &mut self.table.at(key).receive;
        let result = part.read(out, &mut self.flow.receive, &mut self.buffers);
        self.on_read(key);
        self.answer(result)
    }

    /// Removes and returns up to `max` received bytes without copying them; `None` at the end of
    /// the stream. A piece that fills little of its buffer is copied instead, so that the memory
    /// held is at most twice the bytes read.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// # use courser_wire::Direction;
    /// # let near = pair.near().streams();
    /// # let id = near.open(Direction::Unidirectional).expect("allowed");
    /// # near.write(id, b"hello")?;
    /// # pair.run();
    /// # let streams = pair.far().streams();
    /// # streams.accept(Direction::Unidirectional);
    /// use courser_transport::ReadError;
    ///
    /// assert_eq!(streams.read_chunk(id, 100)?.as_deref(), Some(&b"hello"[..]));
    /// // Nothing more has arrived. StreamEvent::Readable announces it.
    /// assert_eq!(streams.read_chunk(id, 100), Err(ReadError::Blocked));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::read`].
    pub fn read_chunk(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        let key = self.reader(id)?;
        let part = &mut self.table.at(key).receive;
        let result = part.read_chunk(max, &mut self.flow.receive, &mut self.buffers);
        self.on_read(key);
        self.answer(result)
    }

    /// Removes and returns up to `max` received bytes, at least one, with their offset; `None` at the end
    /// of the stream, when all bytes were read. Bytes that arrive past a gap are returned before those
    /// that fill it. Each byte is returned once, also if the peer repeats it, and also if the stream was
    /// read in order before. RFC 9000 §2.2.
    ///
    /// From the first call on, the stream cannot be read in order any more.
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::read`] without [`ReadError::Unordered`].
    pub fn read_unordered(
        &mut self,
        id: StreamId,
        max: usize,
    ) -> Result<Option<(u64, Bytes)>, ReadError> {
        let key = self.reader(id)?;
        let part = &mut self.table.at(key).receive;
        let result = part.read_unordered(max, &mut self.flow.receive, &mut self.buffers);
        self.on_read(key);
        self.answer(result)
    }

    /// Like [`Streams::read_chunk`] for all that is ready in one piece. If the end follows
    /// directly, it is read too: then the second value is true, and the stream needs no further
    /// read.
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::read`].
    pub fn read_chunk_and_end(&mut self, id: StreamId) -> Result<(Option<Bytes>, bool), ReadError> {
        let key = self.reader(id)?;
        let part = &mut self.table.at(key).receive;
        let result = part.read_chunk(usize::MAX, &mut self.flow.receive, &mut self.buffers);
        let is_end = match &result {
            Ok(Some(_)) => part.take_end(),
            Ok(None) => true,
            Err(_) => false,
        };
        self.on_read(key);
        Ok((self.answer(result)?, is_end))
    }

    /// Requests a [`StreamEvent::Readable`] for the next arrival, like a read that finds nothing.
    /// For callers that know the stream to be empty.
    pub fn await_data(&mut self, id: StreamId) {
        self.awaits_reset(id);
    }

    /// Returns true if the peer has reset the stream and the next read will report it. For callers
    /// that cannot read on yet: [`StreamEvent::Readable`] follows when anything arrives.
    pub fn awaits_reset(&mut self, id: StreamId) -> bool {
        let key = self.table.find(id);
        key.is_some_and(|key| self.table.at(key).receive.awaits_reset())
    }

    /// Keeps `len` bytes that were read charged to the windows of the stream and of the connection,
    /// because the application still holds them and must not be made to hold more. They count until
    /// [`Streams::release_credit`], even after the end of the stream.
    ///
    /// Half of each window is granted in any case, so that held bytes can wait for bytes of other
    /// streams.
    pub fn hold_credit(&mut self, id: StreamId, len: u64) {
        self.flow.receive.hold(len);
        if let Some(key) = self.table.find(id) {
            self.table.at(key).receive.hold_credit(len);
        }
    }

    /// Grants the peer credit for bytes that were [held](Streams::hold_credit).
    pub fn release_credit(&mut self, id: StreamId, len: u64) {
        self.flow.receive.release(len);
        let Ok(key) = self.reader(id) else {
            self.flow.update_credit();
            return;
        };
        self.table.at(key).receive.release_credit(len);
        self.on_read(key);
    }

    /// Updates the state after bytes or the end were read: credit may be due, and the stream may be
    /// over.
    #[inline]
    fn on_read(&mut self, key: u32) {
        let state = self.table.at(key);
        if !self.is_over && state.receive.wants_credit() {
            self.queues.request(key, state, ControlFrame::Credit);
        }
        self.flow.update_credit();
        self.retire_if_over(key);
    }

    /// Abandons reading: asks the peer to stop sending, and drops bytes that arrive until it does.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the end was read, reading was stopped before, or the stream is gone.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let key = self.reader(id)?;
        let state = self.table.at(key);
        let connection = &mut self.flow.receive;
        let is_due = state.receive.stop(code, connection, &mut self.buffers)?;
        self.queues.withdraw(state, ControlFrame::Credit);
        if self.is_over {
            self.retire(key);
            return Ok(());
        }
        if is_due {
            self.queues.request(key, state, ControlFrame::Stop);
        }
        self.note_content(id, false);
        self.flow.update_credit();
        self.retire_if_over(key);
        Ok(())
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
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

    #[inline]
    fn reader(&mut self, id: StreamId) -> Result<u32, ClosedStream> {
        let key = self.table.find(id).ok_or(ClosedStream)?;
        if self.table.at(key).receives {
            Ok(key)
        } else {
            Err(ClosedStream)
        }
    }
}
