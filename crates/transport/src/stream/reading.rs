//! The calls of applications that read from streams.

use bytes::Bytes;
use courser_wire::{Direction, StreamId};

use super::Streams;
use super::control::ControlFrame;
use super::event::{ClosedStream, ReadError};
use super::limits::Use;

impl Streams {
    /// Returns the next stream that the peer opened, in the order of their numbers. Returns `None`
    /// if there is none; then [`StreamEvent::Opened`](super::StreamEvent::Opened) follows.
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
        self.or_closed(result)
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
        self.or_closed(result)
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
        self.or_closed(result)
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
        Ok((self.or_closed(result)?, is_end))
    }

    /// Requests a [`StreamEvent::Readable`](super::StreamEvent::Readable) for the next bytes, end or reset,
    /// like a blocked read. For callers that know that there is nothing to read.
    pub fn await_data(&mut self, id: StreamId) {
        self.await_data_or_reset(id);
    }

    /// Returns true if the peer has reset the stream and the next read will report it. Otherwise
    /// [`StreamEvent::Readable`](super::StreamEvent::Readable) follows when anything arrives. For callers
    /// that cannot take more bytes yet.
    pub fn await_data_or_reset(&mut self, id: StreamId) -> bool {
        let key = self.table.find(id);
        key.is_some_and(|key| self.table.at(key).receive.await_data_or_reset())
    }

    /// Withholds the credit for `len` bytes that were read, because the application still buffers them and
    /// could not buffer more. They count against the windows of the stream and of the connection until
    /// [`Streams::release_credit`], even after the end of the stream.
    ///
    /// Half of each window is granted in any case, because held bytes may depend on bytes of other
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

    /// Updates the state after bytes or the end were read: grants credit, and removes a stream that has
    /// ended.
    #[inline]
    fn on_read(&mut self, key: u32) {
        let state = self.table.at(key);
        if !self.is_over && state.receive.is_credit_due() {
            self.queues.request(key, state, ControlFrame::Credit);
        }
        self.flow.update_credit();
        if state.is_read_to_end() {
            self.last_size = state.receive.stats().final_size;
            self.retire_if_over(key);
        }
    }

    /// Abandons reading: asks the peer to stop sending, and drops all bytes that still arrive.
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
        self.record_content(id, false);
        self.flow.update_credit();
        self.retire_if_over(key);
        Ok(())
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
