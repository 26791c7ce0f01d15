//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_transport as transport;
use courser_wire::StreamId;
use tokio::io::AsyncWrite;

use crate::VarInt;
use crate::error::{ClosedStream, StoppedError, WriteError};
use crate::handles::ConnectionRef;
use crate::shard::Locked;

/// Sends on one stream.
///
/// Dropping it finishes the stream: what was written is still delivered, as long as the
/// connection lives. [`reset`](SendStream::reset) first to give it up instead.
///
/// # When bytes leave
/// A write of 32 KiB or more is sealed and sent by the caller itself. Smaller ones leave as soon
/// as the task waits for anything of this endpoint or yields to the runtime, so that writes made
/// in a row, and the end of the stream, share packets. [`flush`](SendStream::flush) sends at once.
#[derive(Debug)]
pub struct SendStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    /// It was finished.
    is_over: bool,
    /// A waker was left, which has to be taken back.
    has_waited: bool,
}

/// The amount that [`SendStream::write_chunks`] has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Total length in bytes.
    pub bytes: usize,
    /// Chunks written to their end; they are empty now.
    pub chunks: usize,
}

impl SendStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        Self {
            connection,
            id,
            is_over: false,
            has_waited: false,
        }
    }

    /// Writes as much of `buf` as there is room for, and returns how much that was.
    ///
    /// Waits while there is no room at all.
    ///
    /// # Errors
    /// [`WriteError`]: the peer stopped reading, the connection is over, or the stream was
    /// finished.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has written nothing.
    pub async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        std::future::poll_fn(|cx| self.poll_write(cx, buf)).await
    }

    /// Writes all of `buf`.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Not safe: dropped before it is ready, it has written an unknown part.
    pub async fn write_all(&mut self, mut buf: &[u8]) -> Result<(), WriteError> {
        while !buf.is_empty() {
            let written = self.write(buf).await?;
            buf = &buf[written..];
        }
        Ok(())
    }

    /// Writes all of a chunk without copying it.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Not safe: dropped before it is ready, it has written an unknown part.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        self.write_all_chunks(&mut [chunk]).await
    }

    /// Writes as much of the chunks as there is room for, without copying.
    ///
    /// Chunks that were written are empty afterwards; one that was written in part holds the
    /// rest. Waits while there is no room at all.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has written nothing.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Written, WriteError> {
        std::future::poll_fn(|cx| self.poll_write_chunks(cx, chunks)).await
    }

    /// Writes all of the chunks without copying; they are empty afterwards.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Safe in that the chunks tell what is left: they hold what was not written.
    pub async fn write_all_chunks(&mut self, mut chunks: &mut [Bytes]) -> Result<(), WriteError> {
        while !chunks.is_empty() {
            let written = self.write_chunks(chunks).await?;
            chunks = &mut chunks[written.chunks..];
        }
        Ok(())
    }

    /// Writes what there is room for, or arranges to be woken when there is some.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_write_with(cx, |streams, id| {
            streams
                .write(id, buf)
                .map(|bytes| Written { bytes, chunks: 0 })
        })
        .map_ok(|written| written.bytes)
    }

    pub(crate) fn poll_write_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Written, WriteError>> {
        if chunks.iter().all(Bytes::is_empty) {
            return Poll::Ready(Ok(Written {
                bytes: 0,
                chunks: chunks.len(),
            }));
        }
        self.poll_write_with(cx, |streams, id| write_chunks(streams, id, chunks))
    }

    /// Waits until what is written behind `ahead` further bytes could leave, as far as the peer's
    /// credit goes: content that is made for a peer that grants none takes memory for as long as the
    /// peer likes. With bytes ahead the task may not be woken: they have to be written first.
    pub(crate) fn poll_worth_writing(
        &mut self,
        cx: &mut Context<'_>,
        ahead: u64,
    ) -> Poll<Result<(), WriteError>> {
        let poll = self.poll_write_with(cx, |streams, id| {
            match streams.is_worth_writing(id, ahead)? {
                true => Ok(Written::default()),
                false => Err(transport::WriteError::Blocked),
            }
        });
        poll.map_ok(|_| ())
    }

    /// Writes bytes, and ends the stream in the same step if all of them have found room.
    pub(crate) fn poll_write_last(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let mut is_over = false;
        let poll = self.poll_write_with(cx, |streams, id| {
            let bytes = match buf.is_empty() {
                true => 0,
                false => streams.write(id, buf)?,
            };
            is_over = bytes == buf.len() && streams.finish(id).is_ok();
            Ok(Written { bytes, chunks: 0 })
        });
        self.is_over |= is_over;
        poll.map_ok(|written| written.bytes)
    }

    /// As [`poll_write_last`](Self::poll_write_last), with chunks that need not be copied.
    pub(crate) fn poll_write_last_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Written, WriteError>> {
        let count = chunks.len();
        let mut is_over = false;
        let poll = self.poll_write_with(cx, |streams, id| {
            let written = write_chunks(streams, id, chunks)?;
            is_over = written.chunks == count && streams.finish(id).is_ok();
            Ok(written)
        });
        self.is_over |= is_over;
        poll
    }

    /// True when it was finished, and no waker was left.
    fn needs_nothing(&self) -> bool {
        self.is_over && !self.has_waited
    }

    /// As [`poll_write`](Self::poll_write), for whoever holds the lock of this connection.
    pub(crate) fn poll_write_locked(
        &mut self,
        locked: &mut Locked<'_>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let place = Place {
            key: self.connection.key,
            id: self.id,
            has_waited: &mut self.has_waited,
        };
        let written = place.poll_write_with(locked, cx, |streams, id| {
            let bytes = streams.write(id, buf)?;
            Ok(Written { bytes, chunks: 0 })
        });
        written.map_ok(|written| written.bytes)
    }

    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnMut(&mut transport::Streams, StreamId) -> Result<Written, transport::WriteError>,
    ) -> Poll<Result<Written, WriteError>> {
        let mut locked = self.connection.lock();
        let place = Place {
            key: self.connection.key,
            id: self.id,
            has_waited: &mut self.has_waited,
        };
        place.poll_write_with(&mut locked, cx, write)
    }

    /// Sends what was written so far at once, as far as flow and congestion control allow.
    pub fn flush(&mut self) {
        self.connection.lock().flush();
    }

    /// As [`flush`](SendStream::flush), even when the driver is about to send and has only let other
    /// tasks run first: they may take long.
    pub(crate) fn flush_now(&mut self) {
        self.connection.lock().flush_now();
    }

    /// Ends the stream: the peer reads its end after what was written.
    ///
    /// Returns at once; [`stopped`](SendStream::stopped) waits until the peer has it all. No
    /// error if the peer has stopped reading meanwhile.
    ///
    /// # Errors
    /// [`ClosedStream`] when it was finished or reset before. Harmless.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        let key = self.connection.key;
        let mut locked = self.connection.lock();
        let Ok(connection) = locked.open_connection(key) else {
            return Err(ClosedStream);
        };
        match connection.streams().finish(self.id) {
            Ok(()) => {
                self.is_over = true;
                locked.on_used(key, 0);
                Ok(())
            }
            Err(transport::FinishError::Stopped(_)) => Ok(()),
            Err(transport::FinishError::ClosedStream) => {
                let was_stopped = locked.slot(key).wakers.stop_code(self.id, None).is_some();
                was_stopped.then_some(()).ok_or(ClosedStream)
            }
        }
    }

    /// Gives the stream up: what the peer has not received is not sent any more, and it learns
    /// `code` instead.
    ///
    /// # Errors
    /// [`ClosedStream`] when it was reset before or is delivered already. Harmless.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        let key = self.connection.key;
        let mut locked = self.connection.lock();
        let Ok(connection) = locked.open_connection(key) else {
            return Err(ClosedStream);
        };
        connection
            .streams()
            .reset(self.id, code.into_inner())
            .map_err(|_| ClosedStream)?;
        locked.on_used(key, 0);
        Ok(())
    }

    /// Sets the priority; the default is 0. Data of a higher priority leaves first; streams of
    /// the same priority take turns.
    ///
    /// # Errors
    /// [`ClosedStream`] when the stream is over.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        let mut locked = self.connection.lock();
        let connection = locked
            .open_connection(self.connection.key)
            .map_err(|_| ClosedStream)?;
        connection
            .streams()
            .set_priority(self.id, priority)
            .map_err(|_| ClosedStream)
    }

    /// The priority.
    ///
    /// # Errors
    /// [`ClosedStream`] when the stream is over.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        let mut locked = self.connection.lock();
        let connection = locked
            .open_connection(self.connection.key)
            .map_err(|_| ClosedStream)?;
        connection
            .streams()
            .priority(self.id)
            .map_err(|_| ClosedStream)
    }

    /// Waits until the peer stops the stream or has received all of it.
    ///
    /// Gives the peer's code in the first case, however late it is asked while the handle exists;
    /// of streams that were finished before they were stopped, the last 64. `None` means that the
    /// stream was finished and everything was acknowledged, or that it was reset; the peer's
    /// application may still have to read it. Acknowledgements may be delayed: an answer of the application is faster.
    ///
    /// # Errors
    /// When the connection is lost before that is known.
    ///
    /// # Cancel safety
    /// Safe; can be asked again, and by several tasks.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync + 'static {
        Stopped {
            connection: self.connection.clone(),
            id: self.id,
            ticket: None,
        }
    }

    /// Returns the number of the stream.
    pub fn id(&self) -> StreamId {
        self.id
    }
}

/// A stream, without its lock.
struct Place<'a> {
    key: usize,
    id: StreamId,
    has_waited: &'a mut bool,
}

impl Place<'_> {
    fn poll_write_with(
        self,
        locked: &mut Locked<'_>,
        cx: &mut Context<'_>,
        mut write: impl FnMut(
            &mut transport::Streams,
            StreamId,
        ) -> Result<Written, transport::WriteError>,
    ) -> Poll<Result<Written, WriteError>> {
        let Self {
            key,
            id,
            has_waited,
        } = self;
        loop {
            let connection = match locked.open_connection(key) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            match write(connection.streams(), id) {
                Ok(written) => {
                    locked.on_used(key, written.bytes);
                    return Poll::Ready(Ok(written));
                }
                Err(transport::WriteError::Blocked) => {
                    // What waits to be sent may be all that is in the way.
                    if !locked.flush_before_wait() {
                        *has_waited = true;
                        locked.slot(key).wakers.wait_to_write(id, cx.waker());
                        return Poll::Pending;
                    }
                }
                Err(transport::WriteError::Stopped(code)) => {
                    return Poll::Ready(Err(WriteError::Stopped(VarInt::from_wire(code))));
                }
                Err(transport::WriteError::ClosedStream) => {
                    let code = locked.slot(key).wakers.stop_code(id, None);
                    let error = code.map_or(WriteError::ClosedStream, WriteError::Stopped);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

/// Writes chunk by chunk until one does not fit.
fn write_chunks(
    streams: &mut transport::Streams,
    id: StreamId,
    chunks: &mut [Bytes],
) -> Result<Written, transport::WriteError> {
    let mut written = Written::default();
    for chunk in chunks {
        while !chunk.is_empty() {
            match streams.write_chunk(id, chunk) {
                Ok(bytes) => written.bytes += bytes,
                // The next call tells; what was taken must not be reported as lost.
                Err(_) if written.bytes > 0 => return Ok(written),
                Err(error) => return Err(error),
            }
        }
        written.chunks += 1;
    }
    Ok(written)
}

/// Waits for the end of a stream that is sent on.
struct Stopped {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    ticket: Option<u64>,
}

impl Future for Stopped {
    type Output = Result<Option<VarInt>, StoppedError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let key = this.connection.key;
        let mut locked = this.connection.lock();
        if let Some(code) = locked.slot(key).wakers.stop_code(this.id, this.ticket) {
            return Poll::Ready(Ok(Some(code)));
        }
        let stopped = match locked.open_connection(key) {
            Ok(connection) => connection.streams().stopped(this.id),
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        match stopped {
            Err(_) => Poll::Ready(Ok(None)),
            Ok(Some(code)) => Poll::Ready(Ok(Some(VarInt::from_wire(code)))),
            Ok(None) => {
                locked
                    .slot(key)
                    .wakers
                    .wait_for_end(this.id, &mut this.ticket, cx.waker());
                locked.flush_before_wait();
                Poll::Pending
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut locked = self.connection.lock();
            locked
                .slot(self.connection.key)
                .wakers
                .forget_end(self.id, ticket);
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if self.needs_nothing() {
            return;
        }
        let key = self.connection.key;
        let mut locked = self.connection.lock();
        locked.slot(key).wakers.forget_writer(self.id);
        let Ok(connection) = locked.open_connection(key) else {
            return;
        };
        if connection.streams().finish(self.id).is_ok() {
            locked.on_used(key, 0);
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        SendStream::poll_write(self.get_mut(), cx, buf).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}
