//! Operations on connections.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_base::Time;
use courser_base::foreign::ForeignWaker;
use courser_telemetry::Tap;
use courser_transport::{ConnectionError, DatagramPrefix, Level, Undelivered};
use courser_wire::{Direction, StreamId, VarInt};

use super::locked_streams::LockedStreams;
use crate::api::connection::Connection;
use crate::api::datagram::DatagramOptions;
use crate::api::receive_stream::RecvStream;
use crate::api::send_stream::SendStream;
use crate::error::{SendDatagramError, WriteError};
use crate::shard::lock::{Afterwards, Locked};
use crate::shard::stream::Stream;
use crate::shard::wakers::Topic;

/// Operations on a [`Connection`].
#[doc(hidden)]
pub trait ConnectionHooks {
    /// Accepts a bidirectional stream, and sets its level by its index. Calls `before_wait`, which may
    /// still write, before it waits.
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    fn accept_bi_at(
        &self,
        level: fn(u64) -> Level,
        before_wait: impl FnOnce() + Send,
    ) -> impl Future<Output = Result<(SendStream, RecvStream), ConnectionError>> + Send;

    /// Accepts a bidirectional stream like [`accept_bi_at`](Self::accept_bi_at), and reads what has arrived of it in the
    /// same turn, with the end if it directly follows. A stream of a session has no level of its own. Returns no bytes if nothing was read, and the next read tells why.
    /// `session` gets the bytes, and returns the request of the session into which the stream is put. It is called under the
    /// lock of the endpoint.
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    fn accept_bi_and_read(
        &self,
        level: fn(u64) -> Level,
        session: impl Fn(&[u8]) -> Option<StreamId> + Send + Sync,
        before_wait: impl FnOnce() + Send,
    ) -> impl Future<Output = Result<Accepted, ConnectionError>> + Send;

    /// Opens a bidirectional stream, writes a message on it, and has the task of `cx` wait for the answer.
    /// A small request takes the lock once instead of four times.
    ///
    /// Returns `None` if the peer allows no stream now or the connection is over:
    /// [`open_bi`](Connection::open_bi) then waits, or returns the reason. `message` gets the ID of the
    /// stream, and may change others. The caller may hold a lock of its own: tasks are woken and bytes leave
    /// when the [`Afterwards`] of the result are dropped.
    fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        message: impl FnOnce(StreamId, &mut LockedStreams<'_, '_>) -> &'m [u8],
    ) -> Option<OpenedRequest<'_>>;

    /// Returns the number of bidirectional streams that the peer may have opened so far.
    fn granted_requests(&self) -> u64;

    /// Sends a datagram of the request with the index `prefix`, which is the variable-length integer at its beginning
    /// (RFC 9297 §2.1). The payload is not copied before it
    /// is written into a packet.
    ///
    /// # Errors
    /// The errors of [`Connection::send_datagram`], whose sizes include the prefix.
    fn send_datagram_after(
        &self,
        prefix: u64,
        payload: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError>;

    /// Sends datagrams of the request with the index `prefix`, and removes them from `payloads`, in
    /// one turn. The payloads are not copied before they are written into packets.
    ///
    /// # Errors
    /// The errors of [`Connection::send_datagram`], whose sizes include the prefix. The datagram that failed
    /// and later ones remain.
    fn send_datagrams(
        &self,
        prefix: u64,
        payloads: &mut VecDeque<Bytes>,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError>;

    /// Waits for received datagrams, and appends up to `most` of them to `datagrams`.
    ///
    /// # Errors
    /// The errors of [`Connection::read_datagram`].
    fn read_datagrams(
        &self,
        datagrams: &mut Vec<Bytes>,
        most: usize,
    ) -> impl Future<Output = Result<(), ConnectionError>> + Send;

    /// Raises how many bidirectional and unidirectional streams the peer may have open to at least these
    /// numbers.
    fn raise_max_streams(&self, bidirectional: u64, unidirectional: u64);

    /// Returns true if the peer accepts RESET_STREAM_AT
    /// ([`SendStream::reset_at`](crate::SendStream::reset_at)).
    fn accepts_reset_at(&self) -> bool;

    /// Returns true while the peer has not acknowledged everything that was written.
    fn has_undelivered(&self) -> bool;

    /// Returns the amount of written data that the peer has not acknowledged yet.
    fn undelivered(&self) -> Undelivered;

    /// Sets the level of a stream whose handle is elsewhere.
    fn set_stream_level(&self, id: StreamId, level: Level);

    /// Begins a session on the stream of its request: it has the class of the stream, also when that changes, and
    /// shares with the other sessions and the requests of the class.
    fn begin_session(&self, request: StreamId);

    /// Returns the number of bytes that were written on streams of the session and will never be sent, since the last
    /// call. The reader of the request is woken when there are more.
    fn take_unsent_of_session(&self, request: StreamId) -> u64;

    /// Opens a stream in a session, and writes the beginning of its content. Waits while the peer allows no stream.
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream.
    fn open_in_session(
        &self,
        direction: Direction,
        request: StreamId,
        header: &[u8],
    ) -> impl Future<Output = Result<OpenedInSession, ConnectionError>> + Send;

    /// Resets and stops a stream whose handles are elsewhere, and wakes the tasks that wait there.
    fn abort_stream(&self, id: StreamId, code: VarInt);

    /// Calls `run` with the tap of the connection and the time for records, under the lock of the endpoint.
    /// Returns `None` if the connection is gone.
    fn with_tap<T>(&self, run: impl FnOnce(&mut Tap, Time) -> T) -> Option<T>;
}

impl ConnectionHooks for Connection {
    async fn accept_bi_at(
        &self,
        level: fn(u64) -> Level,
        before_wait: impl FnOnce() + Send,
    ) -> Result<(SendStream, RecvStream), ConnectionError> {
        let handle = self.0.handle;
        let accept = move |locked: &mut Locked<'_>| {
            let streams = locked.streams(handle)?;
            let id = streams.accept(Direction::Bidirectional)?;
            // It is open: it was just accepted.
            let _ = streams.set_level(id, level(id.index()));
            Some(Stream::new(streams, id))
        };
        let accepted = accept(&mut self.0.lock());
        let stream = match accepted {
            Some(stream) => stream,
            None => {
                before_wait();
                let accept = move |locked: &mut Locked<'_>| match accept(locked) {
                    Some(stream) => Poll::Ready(Ok(stream)),
                    None => locked.poll_open(handle),
                };
                let topic = Topic::Accept(Direction::Bidirectional);
                self.0.wait(topic, accept).await?
            }
        };
        Ok((
            SendStream::new(self.0.clone(), stream),
            RecvStream::new(self.0.clone(), stream),
        ))
    }

    async fn accept_bi_and_read(
        &self,
        level: fn(u64) -> Level,
        session: impl Fn(&[u8]) -> Option<StreamId> + Send + Sync,
        before_wait: impl FnOnce() + Send,
    ) -> Result<Accepted, ConnectionError> {
        let handle = self.0.handle;
        let session = &session;
        let accept = move |locked: &mut Locked<'_>| {
            let streams = locked.streams(handle)?;
            let id = streams.accept(Direction::Bidirectional)?;
            let mut end = None;
            // Errors remain for the next read.
            let first = match streams.read_chunk_and_end(id) {
                Ok((first, is_end)) => {
                    end = is_end.then(|| streams.last_final_size());
                    first.unwrap_or_default()
                }
                Err(_) => Bytes::new(),
            };
            let request = session(&first);
            // It is open: it was just accepted.
            let _ = match request {
                Some(request) => streams.set_session(id, request),
                None => streams.set_level(id, level(id.index())),
            };
            let stream = Stream::new(streams, id);
            // Most reads free too little credit to be worth a frame.
            if streams.has_frames_to_send() {
                locked.used(handle, 0);
            }
            Some((stream, first, end, request.is_some()))
        };
        let accepted = accept(&mut self.0.lock());
        let (stream, first, end, is_in_session) = match accepted {
            Some(accepted) => accepted,
            None => {
                before_wait();
                let accept = move |locked: &mut Locked<'_>| match accept(locked) {
                    Some(accepted) => Poll::Ready(Ok(accepted)),
                    None => locked.poll_open(handle),
                };
                let topic = Topic::Accept(Direction::Bidirectional);
                self.0.wait(topic, accept).await?
            }
        };
        let receive = match end {
            Some(size) => RecvStream::finished(self.0.clone(), stream, size),
            None => RecvStream::new(self.0.clone(), stream),
        };
        Ok(Accepted {
            send: SendStream::new(self.0.clone(), stream),
            receive,
            first,
            is_in_session,
        })
    }

    fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        message: impl FnOnce(StreamId, &mut LockedStreams<'_, '_>) -> &'m [u8],
    ) -> Option<OpenedRequest<'_>> {
        let handle = self.0.handle;
        let waker = ForeignWaker::of(cx);
        let mut locked = self.0.lock();
        let streams = locked.open_connection(handle).ok()?.streams();
        let id = streams.open(Direction::Bidirectional)?;
        let message = message(id, &mut LockedStreams::new(&mut locked, handle));
        let streams = locked.open_connection(handle).ok()?.streams();
        // The only possible error of a stream that has just begun is that there is no room.
        let written = streams.write(id, message).unwrap_or(0);
        let stream = Stream::new(streams, id);
        let is_whole = written == message.len() && streams.finish(id).is_ok();
        let mut send = None;
        if is_whole {
            streams.await_data(id);
            // Before anything is sent: that may be the end of the connection, which wakes all.
            locked.entry(handle).wakers.wait_to_read(id, waker);
        } else {
            send = Some(SendStream::new(self.0.clone(), stream));
        }
        locked.used(handle, written);
        Some(OpenedRequest {
            send,
            receive: RecvStream::awaited(self.0.clone(), stream),
            written,
            afterwards: locked.release_later(&self.0.shard),
        })
    }

    fn granted_requests(&self) -> u64 {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or(0, |connection| {
            connection.streams().granted(Direction::Bidirectional)
        })
    }

    fn send_datagram_after(
        &self,
        prefix: u64,
        payload: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let options = options.for_session(prefix, self.0.shard.now());
        let prefix = DatagramPrefix::varint(prefix);
        let sent = self
            .0
            .send_after(&mut self.0.lock(), prefix, payload, options);
        sent.map(drop)
    }

    fn send_datagrams(
        &self,
        prefix: u64,
        payloads: &mut VecDeque<Bytes>,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let options = options.for_session(prefix, self.0.shard.now());
        let prefix = DatagramPrefix::varint(prefix);
        self.0
            .send_all_after(&mut self.0.lock(), prefix, payloads, options)
    }

    async fn read_datagrams(
        &self,
        datagrams: &mut Vec<Bytes>,
        most: usize,
    ) -> Result<(), ConnectionError> {
        let handle = self.0.handle;
        let read = move |locked: &mut Locked<'_>| {
            let before = datagrams.len();
            // Datagrams that arrived before the end can be read after it.
            if let Some(connection) = locked.connection(handle) {
                let received = std::iter::from_fn(|| connection.datagrams().receive());
                datagrams.extend(received.take(most));
            }
            match datagrams.len() > before {
                true => Poll::Ready(Ok(())),
                false => locked.poll_open(handle),
            }
        };
        self.0.wait(Topic::Datagram, read).await
    }

    fn raise_max_streams(&self, bidirectional: u64, unidirectional: u64) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            let streams = connection.streams();
            streams.raise_max_streams(Direction::Bidirectional, bidirectional);
            streams.raise_max_streams(Direction::Unidirectional, unidirectional);
        }
        locked.used(self.0.handle, 0);
    }

    fn accepts_reset_at(&self) -> bool {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.is_ok_and(|connection| connection.streams().peer_accepts_reset_at())
    }

    fn has_undelivered(&self) -> bool {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.is_ok_and(|connection| connection.streams().unacked_or_unsent())
    }

    fn undelivered(&self) -> Undelivered {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or_else(
            |_| Undelivered::default(),
            |connection| connection.streams().undelivered(),
        )
    }

    fn set_stream_level(&self, id: StreamId, level: Level) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            // A stream that is over has none.
            let _ = connection.streams().set_level(id, level);
        }
    }

    fn begin_session(&self, request: StreamId) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            // The session of a request that is over ends at once.
            let _ = connection.streams().begin_session(request);
        }
    }

    fn take_unsent_of_session(&self, request: StreamId) -> u64 {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or(0, |connection| {
            connection.streams().take_unsent_of_session(request)
        })
    }

    async fn open_in_session(
        &self,
        direction: Direction,
        request: StreamId,
        header: &[u8],
    ) -> Result<OpenedInSession, ConnectionError> {
        let handle = self.0.handle;
        let open = move |locked: &mut Locked<'_>| {
            let streams = match locked.open_connection(handle) {
                Ok(connection) => connection.streams(),
                Err(error) => return Poll::Ready(Err(error)),
            };
            let Some(id) = streams.open(direction) else {
                // Sends STREAMS_BLOCKED (RFC 9000 §4.6).
                locked.used(handle, 0);
                return Poll::Pending;
            };
            // It is open: it was just opened. The only possible error of the write is that there is no credit.
            let _ = streams.set_session(id, request);
            let written = streams.write_header(id, header).unwrap_or(0);
            let stream = Stream::new(streams, id);
            locked.used(handle, written);
            Poll::Ready(Ok((stream, written)))
        };
        let (stream, written) = self.0.wait(Topic::Open(direction), open).await?;
        let receive = || RecvStream::new(self.0.clone(), stream);
        Ok(OpenedInSession {
            send: SendStream::new(self.0.clone(), stream),
            receive: (direction == Direction::Bidirectional).then(receive),
            written,
        })
    }

    fn abort_stream(&self, id: StreamId, code: VarInt) {
        let mut locked = self.0.lock();
        let handle = self.0.handle;
        if let Ok(connection) = locked.open_connection(handle) {
            // Either half may be over already.
            let _ = connection.streams().reset(id, code.into_inner());
            let _ = connection.streams().stop(id, code.into_inner());
        }
        locked.wake(handle, |entry, woken| {
            entry.wakers.wake_reader(id, woken);
            entry.wakers.wake_writer(id, woken);
            entry.end_watches(id, &Err(WriteError::ClosedStream), woken);
        });
        locked.used(handle, 0);
    }

    fn with_tap<T>(&self, run: impl FnOnce(&mut Tap, Time) -> T) -> Option<T> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        Some(run(locked.connection(self.0.handle)?.tap(), now))
    }
}

/// A bidirectional stream that was accepted, and what was read of it.
#[derive(Debug)]
pub struct Accepted {
    /// The sending half.
    pub send: SendStream,
    /// The receiving half, after the bytes.
    pub receive: RecvStream,
    /// The bytes that had arrived. None if there were none, or the next read returns an error.
    pub first: Bytes,
    /// True if the stream was put into a session.
    pub is_in_session: bool,
}

/// A stream of a session that was just opened.
#[derive(Debug)]
pub struct OpenedInSession {
    /// The sending half.
    pub send: SendStream,
    /// The receiving half of a bidirectional stream.
    pub receive: Option<RecvStream>,
    /// Bytes of the header that were written. Others have to be written before anything else.
    pub written: usize,
}

/// A stream on which a message was written, or the beginning of it.
#[derive(Debug)]
pub struct OpenedRequest<'a> {
    /// `None` if the message and the end of the stream are written.
    send: Option<SendStream>,
    receive: RecvStream,
    /// Bytes of the message that were written.
    written: usize,
    /// Dropped when the caller has released its own lock.
    afterwards: Afterwards<'a>,
}

impl<'a> OpenedRequest<'a> {
    /// Returns the number of bytes of the message that were written.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Returns both halves of the stream, and the rest of the work. The sending half is `None` if all
    /// of the message and the end of the stream are written.
    pub fn into_parts(self) -> (Option<SendStream>, RecvStream, Afterwards<'a>) {
        (self.send, self.receive, self.afterwards)
    }
}
