//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_quic as quic;
use tokio::io::AsyncWrite;

use crate::{ClosedStream, StoppedError, StreamId, VarInt, WriteError};

pub use courser_quic::Written;

/// Sends on one stream.
///
/// Dropping it finishes the stream.
#[derive(Debug)]
pub struct SendStream(quic::SendStream);

impl SendStream {
    pub(crate) fn new(stream: quic::SendStream) -> Self {
        Self(stream)
    }

    /// Writes as much of `buf` as the send buffer accepts, and returns the number of bytes. Waits while the
    /// buffer is full.
    ///
    /// # Errors
    /// Returns [`WriteError`] when the peer stopped reading, the connection is over, or the stream is closed.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has written nothing.
    pub async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        Ok(self.0.write(buf).await?)
    }

    /// Writes all of `buf`.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Not safe. A future that is dropped before it is ready has written an unknown part.
    pub async fn write_all(&mut self, buf: &[u8]) -> Result<(), WriteError> {
        Ok(self.0.write_all(buf).await?)
    }

    /// Writes as much of the chunks as the send buffer accepts, without copying. Bytes that were written are removed
    /// from the chunks.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has written nothing.
    pub async fn write_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Written, WriteError> {
        Ok(self.0.write_chunks(bufs).await?)
    }

    /// Writes all of a chunk without copying.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    ///
    /// # Cancel safety
    /// Not safe. A future that is dropped before it is ready has written an unknown part.
    pub async fn write_chunk(&mut self, buf: Bytes) -> Result<(), WriteError> {
        Ok(self.0.write_chunk(buf).await?)
    }

    /// Writes all of the chunks without copying. They hold the remaining bytes if the future is dropped early.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    pub async fn write_all_chunks(&mut self, bufs: &mut [Bytes]) -> Result<(), WriteError> {
        Ok(self.0.write_all_chunks(bufs).await?)
    }

    /// Ends the stream after all written data.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] when it was finished or reset before.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        Ok(self.0.finish()?)
    }

    /// Abandons the stream, and sends `error_code` to the peer instead of the rest.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] when it was reset before or is delivered already.
    pub fn reset(&mut self, error_code: VarInt) -> Result<(), ClosedStream> {
        Ok(self.0.reset(error_code.into())?)
    }

    /// Sets the priority. Data of a higher one leaves first; the default is 0.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] when the stream is over.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        Ok(self.0.set_priority(priority)?)
    }

    /// Returns the priority.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] when the stream is over.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        Ok(self.0.priority()?)
    }

    /// Waits until the peer stops the stream, and returns its code, or has received all of it (`None`).
    ///
    /// # Errors
    /// Returns [`StoppedError`] when the connection is over before that is known.
    ///
    /// # Cancel safety
    /// Safe; can be called again, and by several tasks.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync + 'static {
        let stopped = self.0.stopped();
        async move { Ok(stopped.await?.map(VarInt::from)) }
    }

    /// Returns the number of the stream.
    pub fn id(&self) -> StreamId {
        self.0.id().into()
    }

    /// Writes as much of `buf` as the send buffer accepts, or arranges to be woken when it accepts more.
    ///
    /// # Errors
    /// Returns the errors of [`SendStream::write`].
    pub fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        self.get_mut().0.poll_write(cx, buf).map_err(Into::into)
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_write(self, cx, buf).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}

#[cfg(feature = "futures-io")]
impl futures_io::AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(self, cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(self, cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(self, cx)
    }
}
