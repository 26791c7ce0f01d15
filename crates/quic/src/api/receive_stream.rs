//! The receiving half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::foreign::TaskWaker;
use courser_transport::{self as transport, ClosedStream};
use courser_wire::{StreamId, VarInt};
use tokio::io::{AsyncRead, ReadBuf};

use crate::api::handles::ConnectionRef;
use crate::api::hooks::RecvStreamHooks;
use crate::error::{ReadError, ReadExactError, ReadToEndError};
use crate::shard::stream::Stream;

/// Receives on one stream: in order, or in the order of arrival with [`RecvStream::read_unordered`].
///
/// Dropping it before its end stops the stream with code 0: the peer is asked to send no more,
/// and data that still arrives is discarded.
///
/// Data that arrived before the peer closed the connection or stopped answering can be read as long as there
/// are handles; the error follows behind it. Data that was lost is not retransmitted after that. If the end of
/// a stream must not be lost, let its receiver close the connection.
#[derive(Debug)]
pub struct RecvStream {
    pub(crate) connection: Arc<ConnectionRef>,
    pub(crate) stream: Stream,
    end: Option<ReadEnd>,
    /// A waker may be registered, which has to be removed.
    has_waited: bool,
    /// The final size is awaited.
    awaits_size: bool,
    /// The number of bytes in the stream, once an end was read or it was stopped.
    final_size: FinalSize,
}

/// The reason why there is nothing more to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadEnd {
    Finished,
    Reset(VarInt),
    Stopped,
}

/// A final size that may be unknown, in the memory of an integer: handles of streams are moved much.
#[derive(Clone, Copy, Debug)]
struct FinalSize(u64);

impl FinalSize {
    /// No stream has this many bytes (RFC 9000 §4.5).
    const UNKNOWN: Self = Self(u64::MAX);

    fn new(size: Option<u64>) -> Self {
        size.map_or(Self::UNKNOWN, Self)
    }

    fn get(self) -> Option<u64> {
        (self.0 != u64::MAX).then_some(self.0)
    }
}

impl RecvStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, stream: Stream) -> Self {
        Self {
            connection,
            stream,
            end: None,
            has_waited: false,
            awaits_size: false,
            final_size: FinalSize::UNKNOWN,
        }
    }

    /// Creates the handle of a stream that was read to its end, with the number of its bytes.
    pub(crate) fn finished(
        connection: Arc<ConnectionRef>,
        stream: Stream,
        size: Option<u64>,
    ) -> Self {
        let mut receive = Self::new(connection, stream);
        receive.end = Some(ReadEnd::Finished);
        receive.final_size = FinalSize::new(size);
        receive
    }

    /// Creates the handle of a stream whose reader already waits.
    pub(crate) fn awaited(connection: Arc<ConnectionRef>, stream: Stream) -> Self {
        let mut receive = Self::new(connection, stream);
        receive.has_waited = true;
        receive
    }

    /// Reads available bytes into `buf` and returns their number, or `None` at the end of the stream.
    ///
    /// Waits until bytes are available.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut sending = client.open_uni().await?;
    /// # sending.write_all(b"0123456789").await?;
    /// # sending.finish()?;
    /// # let mut stream = server.accept_uni().await?;
    ///
    /// let mut buffer = [0; 4];
    /// while let Some(length) = stream.read(&mut buffer).await? {
    ///     println!("{:?}", &buffer[..length]);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ReadError`] if the peer reset the stream, the connection is over, or the stream was stopped.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_some(cx, buf)).await
    }

    /// Reads until `buf` is full.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut sending = client.open_uni().await?;
    /// # sending.write_all(b"0123456789").await?;
    /// # sending.finish()?;
    /// # let mut stream = server.accept_uni().await?;
    ///
    /// let mut header = [0; 4];
    /// stream.read_exact(&mut header).await?;
    /// assert_eq!(&header, b"0123");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ReadExactError::FinishedEarly`] if the stream ends before; otherwise as
    /// [`RecvStream::read`].
    ///
    /// # Cancel safety
    /// Not safe. A future that is dropped before it is ready has read an unknown part.
    pub async fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.read(&mut buf[filled..]).await? {
                Some(read) => filled += read,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// Reads the next chunk of at most `max_length` bytes without copying it. Returns `None` at the end.
    ///
    /// Chunks are in order, and their boundaries have no meaning. A chunk keeps its receive buffer in use: copy
    /// bytes that are kept for long.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut sending = client.open_uni().await?;
    /// # sending.write_all(b"0123456789").await?;
    /// # sending.finish()?;
    /// # let mut stream = server.accept_uni().await?;
    ///
    /// let mut length = 0;
    /// while let Some(chunk) = stream.read_chunk(usize::MAX).await? {
    ///     length += chunk.len();
    /// }
    /// assert_eq!(length, 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing.
    pub async fn read_chunk(&mut self, max_length: usize) -> Result<Option<Bytes>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_chunk(cx, max_length)).await
    }

    /// Reads bytes in the order of their arrival: the next chunk of at most `max_length` bytes, but at
    /// least one, with the offset of its first byte; `None` at the end, when all were read.
    ///
    /// Bytes behind a loss do not wait for the retransmission. Each byte is returned once, even if it arrives
    /// twice. After reading in order, a stream may be read without order: then only the rest is returned. The
    /// reverse is not possible: from the first call on, all methods that read in order fail with
    /// [`ReadError::Unordered`]. RFC 9000 §2.2.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn fill(mut stream: courser::RecvStream, file: &mut [u8]) -> Result<(), courser::ReadError> {
    /// while let Some((offset, bytes)) = stream.read_unordered(usize::MAX).await? {
    ///     let start = offset as usize;
    ///     file[start..start + bytes.len()].copy_from_slice(&bytes);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`]. A reset of the peer is reported as soon as it arrives.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing, but the stream can then be read
    /// without order only.
    pub async fn read_unordered(
        &mut self,
        max_length: usize,
    ) -> Result<Option<(u64, Bytes)>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_unordered(cx, max_length)).await
    }

    /// Reads like [`RecvStream::read_unordered`], or arranges to be woken when bytes are available.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read_unordered`].
    pub fn poll_read_unordered(
        &mut self,
        cx: &mut Context<'_>,
        max_length: usize,
    ) -> Poll<Result<Option<(u64, Bytes)>, ReadError>> {
        self.poll_read_with(cx, |streams, id| {
            let piece = streams.read_unordered(id, max_length)?;
            Ok((piece, None))
        })
    }

    /// Reads available chunks into `chunks` without copying, and returns their number, or `None` at the end of
    /// the stream. The previous contents of `chunks` are dropped.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_chunks(cx, chunks)).await
    }

    /// Reads the rest of the stream.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut sending = client.open_uni().await?;
    /// # sending.write_all(b"0123456789").await?;
    /// # sending.finish()?;
    /// # let mut stream = server.accept_uni().await?;
    ///
    /// let message = stream.read_to_end(1 << 20).await?; // an error if it is longer
    /// assert_eq!(message, b"0123456789");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ReadToEndError::TooLong`] if the rest is longer than `limit`, and the errors of
    /// [`RecvStream::read`]. Bytes that were read before an error are lost.
    ///
    /// # Cancel safety
    /// Not safe. Bytes that were read before the future is dropped are lost.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(usize::MAX).await? {
            if chunk.len() > limit - all.len() {
                return Err(ReadToEndError::TooLong { limit });
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Asks the peer with STOP_SENDING and `code` to send no more, and discards data that arrives.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut sending = client.open_uni().await?;
    /// # sending.write_all(b"0123456789").await?;
    /// # sending.finish()?;
    /// # let mut stream = server.accept_uni().await?;
    ///
    /// stream.stop(4u32.into())?; // the peer's writes fail with this code
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream was stopped or read to its end before, which is harmless.
    pub fn stop(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        if self.end.is_some() {
            return Err(ClosedStream);
        }
        self.end = Some(ReadEnd::Stopped);
        let handle = self.connection.handle;
        let mut locked = self.connection.lock();
        if locked.is_rejected(handle, self.stream) {
            return Err(ClosedStream);
        }
        locked.entry(handle).wakers.forget_reader(self.stream.id);
        let is_open = locked.end_of(handle).is_none();
        let id = self.stream.id;
        let stopped = locked.streams(handle).map(|streams| {
            // The stream may be gone afterwards.
            let stats = streams.receive_stats(id).ok();
            self.final_size = FinalSize::new(stats.and_then(|stats| stats.final_size));
            streams.stop(id, code.into_inner())
        });
        match stopped {
            Some(Err(_)) if is_open => Err(ClosedStream),
            Some(Ok(())) => {
                locked.used(handle, 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of the stream.
    pub fn id(&self) -> StreamId {
        self.stream.id
    }

    /// Returns true if the client opened the stream before the handshake was complete; see
    /// [`Connecting::early`](crate::Connecting::early). On a server, data that is read before
    /// [`Connection::authenticated`](crate::Connection::authenticated) returns may be a replay.
    pub fn is_early(&self) -> bool {
        self.stream.is_early
    }

    /// Reads available bytes, or arranges to be woken when there are some. `Ok(0)` is the end of the stream,
    /// unless `buf` is empty.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        self.poll_read_some(cx, buf)
            .map_ok(|read| read.unwrap_or(0))
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        self.poll_read_with(cx, |streams, id| {
            streams.read(id, buf).map(|read| (read, None))
        })
    }

    /// Reads like [`RecvStream::read_chunk`], or arranges to be woken when bytes are available.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max_length: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if max_length == 0 {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        self.poll_read_with(cx, |streams, id| {
            let chunk = streams.read_chunk(id, max_length)?;
            Ok((chunk, None))
        })
    }

    /// Returns the final size if the end or a reset was read, or the stream was stopped.
    pub(crate) fn known_final_size(&self) -> Option<u64> {
        self.final_size.get()
    }

    /// Returns the end of the stream, once it is known: the code of a reset, or `None` for any other end.
    pub(crate) fn end_code(&self) -> Option<Option<VarInt>> {
        self.end.map(|end| match end {
            ReadEnd::Reset(code) => Some(code),
            ReadEnd::Finished | ReadEnd::Stopped => None,
        })
    }

    fn poll_read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if chunks.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        // Their previous contents are dropped here, before the lock is taken. Most are empty.
        let nothing = Bytes::new().as_ptr();
        let held = chunks.iter_mut().filter(|chunk| chunk.as_ptr() != nothing);
        held.for_each(|chunk| *chunk = Bytes::new());
        self.poll_read_with(cx, |streams, id| {
            // The transport reports the end once. Behind other chunks, it is kept for the next call.
            let (mut count, mut end) = (0, None);
            for target in chunks {
                match streams.read_chunk(id, usize::MAX) {
                    Ok(Some(chunk)) => {
                        *target = chunk;
                        count += 1;
                        continue;
                    }
                    result if count == 0 => return result.map(|_| (None, None)),
                    Ok(None) => end = Some(ReadEnd::Finished),
                    Err(transport::ReadError::Reset(code)) => {
                        end = Some(ReadEnd::Reset(VarInt::from_wire(code)));
                    }
                    Err(_) => {}
                }
                break;
            }
            Ok((Some(count), end))
        })
    }

    /// Performs one read under the lock, and announces credit that it frees. `read` returns the end beside a
    /// value if it directly follows, and no value at the end.
    fn poll_read_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(
            &mut transport::Streams,
            StreamId,
        ) -> Result<(Option<T>, Option<ReadEnd>), transport::ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        match self.end {
            None => {}
            Some(ReadEnd::Finished) => return Poll::Ready(Ok(None)),
            Some(ReadEnd::Reset(code)) => return Poll::Ready(Err(ReadError::Reset(code))),
            Some(ReadEnd::Stopped) => return Poll::Ready(Err(ReadError::ClosedStream)),
        }
        let handle = self.connection.handle;
        let mut waker = TaskWaker::of(cx);
        let mut locked = self.connection.lock();
        if locked.is_rejected(handle, self.stream) {
            return Poll::Ready(Err(ReadError::EarlyDataRejected));
        }
        let result = match locked.streams(handle) {
            Some(streams) => read(streams, self.stream.id),
            None => Err(transport::ReadError::ClosedStream),
        };
        let outcome = match result {
            Ok((value, end)) => {
                self.end = match value {
                    Some(_) => end,
                    None => Some(ReadEnd::Finished),
                };
                if self.end.is_some() {
                    let streams = locked.streams(handle);
                    let size = streams.and_then(|streams| streams.last_final_size());
                    self.final_size = FinalSize::new(size);
                }
                Ok(value)
            }
            Err(transport::ReadError::Reset(code)) => {
                let code = VarInt::from_wire(code);
                let streams = locked.streams(handle);
                let size = streams.and_then(|streams| streams.last_final_size());
                self.final_size = FinalSize::new(size);
                self.end = Some(ReadEnd::Reset(code));
                Err(ReadError::Reset(code))
            }
            Err(error) => {
                if let Some(lost) = locked.end_of(handle) {
                    return Poll::Ready(Err(ReadError::ConnectionLost(lost.clone())));
                }
                match error {
                    transport::ReadError::ClosedStream => {
                        return Poll::Ready(Err(ReadError::ClosedStream));
                    }
                    transport::ReadError::Unordered => {
                        return Poll::Ready(Err(ReadError::Unordered));
                    }
                    transport::ReadError::Blocked | transport::ReadError::Reset(_) => {}
                }
                self.has_waited = true;
                locked
                    .entry(handle)
                    .wakers
                    .wait_to_read(self.stream.id, waker.take());
                locked.about_to_wait();
                return Poll::Pending;
            }
        };
        if self.end.is_some() && std::mem::take(&mut self.has_waited) {
            // With no reader left, dropping the stream need not take the lock.
            locked.entry(handle).wakers.forget_reader(self.stream.id);
        }
        // Most reads free too little credit to be worth a frame.
        if locked
            .connection(handle)
            .is_some_and(|connection| connection.streams().has_frames_to_send())
        {
            locked.used(handle, 0);
        }
        Poll::Ready(outcome)
    }
}

impl RecvStreamHooks for RecvStream {
    fn take(&mut self) -> Self {
        let mut closed = Self::new(self.connection.clone(), self.stream);
        closed.end = Some(ReadEnd::Stopped);
        std::mem::replace(self, closed)
    }

    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<ReadError> {
        if self.end.is_some() {
            // All of it was read, and a reset comes too late.
            return Poll::Pending;
        }
        let handle = self.connection.handle;
        let mut waker = TaskWaker::of(cx);
        let mut locked = self.connection.lock();
        if locked.is_rejected(handle, self.stream) {
            return Poll::Ready(ReadError::EarlyDataRejected);
        }
        let streams = locked.streams(handle);
        if streams.is_some_and(|streams| streams.await_data_or_reset(self.stream.id)) {
            drop(locked);
            return match self.poll_read_chunk(cx, 1) {
                Poll::Ready(Err(error)) => Poll::Ready(error),
                _ => Poll::Pending,
            };
        }
        self.has_waited = true;
        locked
            .entry(handle)
            .wakers
            .wait_to_read(self.stream.id, waker.take());
        Poll::Pending
    }

    fn poll_final_size(&mut self, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        if let Some(size) = self.final_size.get() {
            return Poll::Ready(Some(size));
        }
        let (handle, id) = (self.connection.handle, self.stream.id);
        let mut waker = TaskWaker::of(cx);
        let mut locked = self.connection.lock();
        if locked.is_rejected(handle, self.stream) || locked.end_of(handle).is_some() {
            return Poll::Ready(None);
        }
        let Some(streams) = locked.streams(handle) else {
            return Poll::Ready(None);
        };
        if !self.awaits_size {
            if streams.await_final_size(id).is_err() {
                return Poll::Ready(None);
            }
            self.awaits_size = true;
        }
        if let Some(size) = streams.final_size(id) {
            self.final_size = FinalSize::new(Some(size));
            return Poll::Ready(Some(size));
        }
        self.has_waited = true;
        let wakers = &mut locked.entry(handle).wakers;
        wakers.wait_to_read(id, waker.take());
        locked.about_to_wait();
        Poll::Pending
    }

    fn hold_credit(&self, len: u64) {
        let (handle, stream) = (self.connection.handle, self.stream);
        let mut locked = self.connection.lock();
        if let Some(streams) = locked.received_streams(handle, stream) {
            streams.hold_credit(stream.id, len);
        }
    }

    fn release_credit(&self, len: u64) {
        let (handle, stream) = (self.connection.handle, self.stream);
        let mut locked = self.connection.lock();
        let Some(streams) = locked.received_streams(handle, stream) else {
            return;
        };
        streams.release_credit(stream.id, len);
        if streams.has_frames_to_send() {
            locked.used(handle, 0);
        }
    }

    fn poll_read_chunk_and_end(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        self.poll_read_with(cx, |streams, id| {
            let (chunk, is_end) = streams.read_chunk_and_end(id)?;
            Ok((chunk, is_end.then_some(ReadEnd::Finished)))
        })
    }

    fn has_ended(&self) -> bool {
        self.end == Some(ReadEnd::Finished)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.end.is_some() && !self.has_waited {
            return;
        }
        let (stream, is_open) = (self.stream, self.end.is_none());
        let awaits_size = self.awaits_size;
        self.connection.on_drop(move |locked, handle| {
            if locked.is_rejected(handle, stream) {
                return;
            }
            locked.entry(handle).wakers.forget_reader(stream.id);
            if awaits_size && let Some(streams) = locked.streams(handle) {
                streams.forget_final_size(stream.id);
            }
            let streams = locked.streams(handle).filter(|_| is_open);
            if streams.is_some_and(|streams| streams.stop(stream.id, 0).is_ok()) {
                locked.used(handle, 0);
            }
        });
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(RecvStream::poll_read(
            self.get_mut(),
            cx,
            buf.initialize_unfilled()
        ))?;
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}
