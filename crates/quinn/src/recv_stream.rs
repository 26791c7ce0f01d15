//! The receiving half of a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_quic as quic;
use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetError, StreamId, VarInt,
};

/// Receives on one stream.
///
/// Dropping it before its end stops the stream with code 0.
#[derive(Debug)]
pub struct RecvStream {
    inner: quic::RecvStream,
    /// Bytes that were read in order.
    offset: u64,
}

/// Bytes of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// The offset of the first byte from the start of the stream.
    pub offset: u64,
    /// The bytes from this offset on.
    pub bytes: Bytes,
}

impl RecvStream {
    pub(crate) fn new(inner: quic::RecvStream) -> Self {
        Self { inner, offset: 0 }
    }

    /// Reads available bytes into `buf` and returns their number, or `None` at the end of the stream.
    ///
    /// # Errors
    /// Returns [`ReadError`] when the peer reset the stream, the connection is over, or the stream was stopped.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let read = self.inner.read(buf).await?;
        self.offset += read.unwrap_or(0) as u64;
        Ok(read)
    }

    /// Reads until `buf` is full.
    ///
    /// # Errors
    /// Returns [`ReadExactError::FinishedEarly`] if the stream ends before; otherwise as
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

    /// Reads available bytes, or arranges to be woken when there are some. `Ok(0)` is the end of the stream, unless
    /// `buf` is empty.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        let read = ready!(self.inner.poll_read(cx, buf))?;
        self.offset += read as u64;
        Poll::Ready(Ok(read))
    }

    /// Reads like [`RecvStream::poll_read`], into a buffer of tokio.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    pub fn poll_read_buf(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), ReadError>> {
        let read = ready!(self.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(read);
        Poll::Ready(Ok(()))
    }

    /// Reads the next chunk of at most `max_length` bytes without copying; `None` at the end.
    ///
    /// If `ordered` is false, chunks are returned in the order of their arrival, and later reads in order fail with
    /// [`ReadError::IllegalOrderedRead`].
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing.
    pub async fn read_chunk(
        &mut self,
        max_length: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        if !ordered {
            let chunk = self.inner.read_unordered(max_length).await?;
            return Ok(chunk.map(|(offset, bytes)| Chunk { offset, bytes }));
        }
        let chunk = self.inner.read_chunk(max_length).await?;
        Ok(chunk.map(|bytes| {
            let offset = self.offset;
            self.offset += bytes.len() as u64;
            Chunk { offset, bytes }
        }))
    }

    /// Reads available chunks into `bufs` without copying, and returns their number, or `None` at the end.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::read`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has read nothing.
    pub async fn read_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        let count = self.inner.read_chunks(bufs).await?;
        let read = bufs.iter().take(count.unwrap_or(0));
        self.offset += read.map(|chunk| chunk.len() as u64).sum::<u64>();
        Ok(count)
    }

    /// Reads the rest of the stream.
    ///
    /// # Errors
    /// Returns [`ReadToEndError::TooLong`] once it is longer than `size_limit`, and otherwise the errors of
    /// [`RecvStream::read`]. Bytes that were read are lost.
    ///
    /// # Cancel safety
    /// Not safe. Bytes that were read before the future is dropped are lost.
    pub async fn read_to_end(&mut self, size_limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        match self.inner.read_to_end(size_limit).await {
            Ok(all) => {
                self.offset += all.len() as u64;
                Ok(all)
            }
            Err(quic::ReadToEndError::Read(error)) => Err(ReadToEndError::Read(error.into())),
            Err(_) => Err(ReadToEndError::TooLong),
        }
    }

    /// Asks the peer to send no more, with this code, and discards data that arrives.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] when it was stopped or read to its end before.
    pub fn stop(&mut self, error_code: VarInt) -> Result<(), ClosedStream> {
        Ok(self.inner.stop(error_code.into())?)
    }

    /// Returns true if the client opened the stream before the handshake was complete.
    pub fn is_0rtt(&self) -> bool {
        self.inner.is_early()
    }

    /// Returns the number of the stream.
    pub fn id(&self) -> StreamId {
        self.inner.id().into()
    }

    /// Waits until the peer resets the stream, and returns its code; `None` when no reset can follow.
    ///
    /// # Errors
    /// Returns [`ResetError`] when the connection is over before that is known.
    ///
    /// # Cancel safety
    /// Safe; can be called again.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, ResetError> {
        match self.inner.received_reset().await {
            Ok(code) => Ok(code.map(VarInt::from)),
            Err(quic::ReadError::ConnectionLost(error)) => {
                Err(ResetError::ConnectionLost(error.into()))
            }
            Err(quic::ReadError::EarlyDataRejected) => Err(ResetError::ZeroRttRejected),
            // Nothing else is reported without a read.
            Err(_) => Ok(None),
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll_read_buf(cx, buf).map_err(Into::into)
    }
}

#[cfg(feature = "futures-io")]
impl futures_io::AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_read(self.get_mut(), cx, buf).map_err(Into::into)
    }
}
