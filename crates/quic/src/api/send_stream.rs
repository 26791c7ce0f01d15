//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::Rate;
use courser_base::foreign::TaskWaker;
use courser_transport::{self as transport, ClosedStream, Level, ResetAtError};
use courser_wire::{StreamId, VarInt};
use tokio::io::AsyncWrite;

use crate::api::handles::ConnectionRef;
use crate::api::hooks::{LockedStreams, SendStreamHooks};
use crate::api::send_half::SendHalf;
use crate::api::stopped::Stopped;
use crate::api::write::{Write, Written};
use crate::error::{StoppedError, WriteError};
use crate::shard::stream::Stream;

/// Sends on one stream.
///
/// Dropping it finishes the stream: written data is still delivered while the connection is open. Call
/// [`reset`](SendStream::reset) before to abandon it instead.
///
/// # When bytes leave
/// The caller itself seals and sends writes of 32 KiB or more. Smaller ones are sent when the task waits
/// for this endpoint or yields to the runtime, so that consecutive writes and the end of the stream share
/// packets. [`flush`](SendStream::flush) sends at once.
///
/// # Other tasks
/// A task that writes much and never has to wait yields to other tasks from time to time. A write may then
/// return [`Poll::Pending`] although the buffer has room, and wakes the task at once.
#[derive(Debug)]
pub struct SendStream {
    pub(crate) connection: Arc<ConnectionRef>,
    pub(crate) half: SendHalf,
}

impl SendStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, stream: Stream) -> Self {
        Self {
            connection,
            half: SendHalf::new(stream),
        }
    }

    /// Writes as much of `buf` as the send buffer accepts, and returns the number of bytes.
    ///
    /// Waits while the buffer is full.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// let data = b"as much as the buffer accepts";
    /// let mut written = 0;
    /// while written < data.len() {
    ///     written += stream.write(&data[written..]).await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`WriteError`] if the peer stopped reading, the connection is over, or the stream was finished.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has written nothing.
    pub async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        let written = std::future::poll_fn(|cx| self.poll_send(cx, Write::slice(buf))).await?;
        Ok(written.bytes)
    }

    /// Writes all of `buf`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// stream.write_all(b"everything").await?;
    /// stream.finish()?;
    /// # assert_eq!(server.accept_uni().await?.read_to_end(100).await?, b"everything");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Not safe. A future that is dropped before it is ready has written an unknown part.
    pub async fn write_all(&mut self, mut buf: &[u8]) -> Result<(), WriteError> {
        while !buf.is_empty() {
            let written = self.write(buf).await?;
            buf = &buf[written..];
        }
        Ok(())
    }

    /// Writes all of a chunk without copying it.
    ///
    /// The chunk is dropped when the peer has acknowledged it or it is no longer needed. If it has an
    /// owner ([`Bytes::from_owner`]), the owner's `Drop` runs without a lock: it may use the connection, and
    /// may be slow.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// let chunk = bytes::Bytes::from(vec![0; 64 * 1024]);
    /// stream.write_chunk(chunk.clone()).await?; // the bytes are shared
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Not safe. A future that is dropped before it is ready has written an unknown part.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        self.write_all_chunks(&mut [chunk]).await
    }

    /// Writes as much of the chunks as the send buffer accepts, without copying.
    ///
    /// Chunks that were written are empty afterwards; one that was written in part holds the
    /// rest. Waits while the buffer is full.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has written nothing.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Written, WriteError> {
        std::future::poll_fn(|cx| self.poll_send(cx, Write::chunks(chunks))).await
    }

    /// Writes all of the chunks without copying; they are empty afterwards.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// use bytes::Bytes;
    ///
    /// let mut chunks = [Bytes::from_static(b"header"), Bytes::from_static(b"content")];
    /// stream.write_all_chunks(&mut chunks).await?;
    /// stream.finish()?;
    /// # assert_eq!(server.accept_uni().await?.read_to_end(100).await?, b"headercontent");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Safe. If the future is dropped before it is ready, the chunks hold the bytes that were not written.
    pub async fn write_all_chunks(&mut self, mut chunks: &mut [Bytes]) -> Result<(), WriteError> {
        while !chunks.is_empty() {
            let written = self.write_chunks(chunks).await?;
            chunks = &mut chunks[written.chunks..];
        }
        Ok(())
    }

    /// Writes as much as the send buffer accepts, or arranges to be woken when it accepts more.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let written = self.poll_send(cx, Write::slice(buf));
        written.map_ok(|written| written.bytes)
    }

    /// Sends written data at once, as far as flow and congestion control allow.
    pub fn flush(&mut self) {
        self.connection.lock().send_pending();
    }

    /// Ends the stream: the peer reads the end behind all written data.
    ///
    /// Returns at once; [`stopped`](SendStream::stopped) waits until the peer has received everything. If the
    /// peer has stopped reading meanwhile, that is no error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// stream.write_all(b"the end follows").await?;
    /// stream.finish()?;
    /// assert!(stream.finish().is_err()); // harmless
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream was finished or reset before, which is harmless.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        match locked.open_streams(handle, stream)?.finish(stream.id) {
            Ok(()) => {
                self.half.is_over = true;
                locked.used(handle, 0);
                Ok(())
            }
            Err(transport::FinishError::Stopped(_)) => Ok(()),
            Err(transport::FinishError::ClosedStream) => {
                let stop_code = locked.entry(handle).wakers.stop_code(stream.id, None);
                stop_code.map(drop).ok_or(ClosedStream)
            }
        }
    }

    /// Abandons the stream: data that the peer has not received is no longer sent, and the peer gets `code`
    /// instead.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// use courser::ReadError;
    ///
    /// stream.write_all(b"never mind").await?;
    /// # stream.flush();
    /// # let mut received = server.accept_uni().await?;
    /// stream.reset(9u32.into())?;
    /// // The peer's reads fail with the code.
    /// while let Ok(Some(_)) = received.read_chunk(100).await {}
    /// assert!(matches!(received.read_chunk(100).await, Err(ReadError::Reset(_))));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream was reset before or is delivered already, which is harmless.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        let streams = locked.open_streams(handle, stream)?;
        streams.reset(stream.id, code.into_inner())?;
        self.half.was_reset = true;
        locked.wake(handle, |entry, woken| {
            entry.end_watches(stream.id, &Err(WriteError::ClosedStream), woken);
        });
        locked.used(handle, 0);
        Ok(())
    }

    /// Abandons the stream like [`reset`](SendStream::reset), but still delivers its first `reliable_size`
    /// bytes, or as many of them as were written.
    ///
    /// The peer reads these bytes and then gets [`ReadError::Reset`](crate::ReadError::Reset) with
    /// `code`. A second call, or `reset`, can only reduce the size and keeps the code of the first.
    /// The size is in bytes from the start of the stream.
    /// draft-ietf-quic-reliable-stream-reset-10.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn give_up(stream: &mut courser::SendStream, header: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// stream.write_all(header).await?;
    /// stream.write_all(b"content that is found to be outdated").await?;
    /// stream.reset_at(7u32.into(), header.len() as u64)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ResetAtError::Unsupported`] if the peer does not accept such resets: use `reset`. Returns
    /// [`ResetAtError::ClosedStream`] if the stream was reset before or is delivered already, or if the
    /// connection is over.
    pub fn reset_at(&mut self, code: VarInt, reliable_size: u64) -> Result<(), ResetAtError> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        let streams = locked.open_streams(handle, stream)?;
        streams.reset_at(stream.id, code.into_inner(), reliable_size)?;
        self.half.was_reset = true;
        locked.wake(handle, |entry, woken| {
            let wakers = &mut entry.wakers;
            wakers.give_up_beyond(stream.id, reliable_size, woken);
            wakers.wake_blocked(stream.id, woken);
        });
        locked.used(handle, 0);
        Ok(())
    }

    /// Sets the priority, 0 by default. Data of a higher priority is sent first; streams of the same priority
    /// take turns, unless they have different [orders](SendStream::set_order) or [groups](SendStream::set_group).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let (urgent, bulk) = (client.open_uni().await?, client.open_uni().await?);
    /// urgent.set_priority(1)?;
    /// bulk.set_priority(-1)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream is over.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        let streams = locked.open_streams(handle, stream)?;
        streams.set_priority(stream.id, priority)
    }

    /// Limits the bytes per second that this stream sends, in addition to
    /// [`TransportConfig::max_send_rate`](crate::TransportConfig::max_send_rate) for the connection.
    ///
    /// Only data that is sent for the first time counts; retransmissions come on top. Bursts have about 10 ms of
    /// data, but at least a packet, and up to 110 ms after a pause of the writer. Other streams use the pauses of
    /// this one. `None` removes the limit, and a rate of zero counts as one byte per second.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// use courser::Rate;
    /// use std::time::Duration;
    ///
    /// let rate = Rate::from_bytes_in(125_000, Duration::from_secs(1)); // 1 Mbit/s
    /// stream.set_max_send_rate(Some(rate))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream is over.
    pub fn set_max_send_rate(&self, rate: Option<Rate>) -> Result<(), ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        let streams = locked.open_streams(handle, stream)?;
        streams.set_max_send_rate(stream.id, rate)?;
        locked.used(handle, 0);
        Ok(())
    }

    /// Returns the priority.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream is over.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        locked.open_streams(handle, stream)?.priority(stream.id)
    }

    /// Waits until the peer stops the stream or has received all of it.
    ///
    /// Returns the code of the peer if it stopped the stream. The code is kept while the handle exists, and for
    /// the last 64 streams that were stopped after they were finished. `None` means that the stream was finished
    /// and everything was acknowledged, or that it was reset. The peer's application may still have to read the
    /// data. Acknowledgements may be delayed: an answer of the application is faster.
    ///
    /// A peer that closes the connection as soon as it has read the end may be faster too. Then this returns
    /// [`ConnectionLost`](StoppedError::ConnectionLost), because the acknowledgement never arrived, although the peer
    /// has everything. In such a protocol wait for [`Connection::closed`](crate::Connection::closed) instead, and let
    /// the code with which the peer closes say whether it was content.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    ///
    /// # tokio::spawn(async move {
    /// #     server.accept_uni().await?.read_to_end(100).await?;
    /// #     server.closed().await;
    /// #     Result::Ok(())
    /// # });
    /// stream.write_all(b"important").await?;
    /// stream.finish()?;
    /// match stream.stopped().await? {
    ///     None => println!("the peer has acknowledged everything"),
    ///     Some(code) => println!("the peer has stopped reading: {code}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the connection is lost before.
    ///
    /// # Cancel safety
    /// Safe. The method can be called again, and by several tasks.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync + 'static {
        Stopped::new(self.connection.clone(), self.half.stream)
    }

    /// Returns the number of the stream.
    pub fn id(&self) -> StreamId {
        self.half.stream.id
    }

    /// Returns true if the client opened the stream before the handshake was complete; see
    /// [`Connecting::early`](crate::Connecting::early).
    pub fn is_early(&self) -> bool {
        self.half.stream.is_early
    }
}

impl SendStreamHooks for SendStream {
    fn take(&mut self) -> Self {
        let mut closed = Self::new(self.connection.clone(), self.half.stream);
        closed.half.is_over = true;
        std::mem::replace(self, closed)
    }

    fn set_level(&self, level: Level) {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        if let Ok(streams) = locked.open_streams(handle, stream) {
            let _ = streams.set_level(stream.id, level);
        }
    }

    fn set_deadline_at(
        &mut self,
        after: Option<Duration>,
        code: VarInt,
        reliable_size: u64,
    ) -> Result<(), ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let at = after.map(|after| self.connection.shard.now() + after);
        let mut locked = self.connection.lock();
        let streams = locked.open_streams(handle, stream)?;
        streams.set_deadline(stream.id, at, code.into_inner(), reliable_size)?;
        if at.is_some() {
            self.half.has_waited = true;
            locked.entry(handle).wakers.await_deadline(stream.id);
        }
        locked.used(handle, 0);
        Ok(())
    }

    fn set_session(&self, request: StreamId) {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        if let Ok(streams) = locked.open_streams(handle, stream) {
            let _ = streams.set_session(stream.id, request);
        }
    }

    fn acknowledged_to(
        &self,
        len: u64,
    ) -> impl Future<Output = Result<(), WriteError>> + Send + Sync + 'static {
        Self::acknowledged_to(self, len)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        mut write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>> {
        if let Some(nothing) = write.nothing() {
            return Poll::Ready(Ok(nothing));
        }
        let Self { connection, half } = self;
        let mut waker = TaskWaker::of(cx);
        let poll = half.poll_send(
            &mut connection.lock(),
            connection.handle,
            &mut waker,
            &mut write,
        );
        if std::mem::take(&mut half.yields) && !crate::runtime::yield_to_others(cx) {
            cx.waker().wake_by_ref();
        }
        poll
    }

    fn poll_send_locked(
        &mut self,
        locked: &mut LockedStreams<'_, '_>,
        cx: &mut Context<'_>,
        mut write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>> {
        let mut waker = TaskWaker::of(cx);
        let poll = self.half.poll_send(
            locked.state(),
            self.connection.handle,
            &mut waker,
            &mut write,
        );
        if let Poll::Ready(Ok(written)) = &poll {
            write.drop_later(written.chunks);
        }
        if std::mem::take(&mut self.half.yields) {
            locked.state().woken.push(waker.take().into_inner());
        }
        poll
    }

    fn credit(&self) -> u64 {
        let mut locked = self.connection.lock();
        self.half.credit(&mut locked, self.connection.handle)
    }

    fn credit_locked(&self, locked: &mut LockedStreams<'_, '_>) -> u64 {
        self.half.credit(locked.state(), self.connection.handle)
    }

    fn poll_credit(&mut self, cx: &mut Context<'_>, ahead: u64) -> Poll<Result<u64, WriteError>> {
        let Self { connection, half } = self;
        let mut waker = TaskWaker::of(cx);
        let mut locked = connection.lock();
        half.poll_step(
            &mut locked,
            connection.handle,
            &mut waker,
            |streams, id| match streams.credit_beyond(id, ahead)? {
                0 => Err(transport::WriteError::Blocked),
                credit => Ok(credit),
            },
        )
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if self.half.is_over && !self.half.has_waited {
            return;
        }
        let stream = self.half.stream;
        self.connection.on_drop(move |locked, handle| {
            if locked.is_rejected(handle, stream) {
                return;
            }
            locked.entry(handle).wakers.forget_writer(stream.id);
            let Ok(connection) = locked.open_connection(handle) else {
                return;
            };
            if connection.streams().finish(stream.id).is_ok() {
                locked.used(handle, 0);
            }
        });
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
