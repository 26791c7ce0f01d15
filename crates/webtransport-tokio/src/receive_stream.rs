//! The receiving half of a stream.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_quic as quic;
use courser_quic::hooks::{RecvStreamHooks as _, has_runtime};
use courser_quic::{StreamId, runtime};
use courser_webtransport::{ApplicationCode, code};
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::{ReadError, ReadToEndError, application, var_int};
use crate::shared::Handle;

/// The receiving half of a stream in a session. Dropping it stops the stream.
///
/// It implements tokio's [`AsyncRead`].
#[derive(Debug)]
pub struct RecvStream {
    /// Bytes that were read together with the header.
    first: Bytes,
    stream: quic::RecvStream,
    session: Arc<Handle>,
    /// The length of the header of a stream of the peer. Those of this end begin without one.
    header: u8,
    /// Bytes of the body that were read.
    read: u64,
    has_ended: bool,
    /// The bytes that are not read are counted, or will be.
    is_counted: bool,
}

impl RecvStream {
    pub(crate) const fn new(
        session: Arc<Handle>,
        first: Bytes,
        stream: quic::RecvStream,
        header: u8,
    ) -> Self {
        Self {
            first,
            stream,
            session,
            header,
            read: 0,
            has_ended: false,
            is_counted: false,
        }
    }

    /// Reads some bytes into `buf`, and returns their number, or `None` at the end of the stream.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream, it was stopped or the session has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let chunk = self.read_chunk(buf.len()).await?;
        Ok(chunk.map(|chunk| {
            buf[..chunk.len()].copy_from_slice(&chunk);
            chunk.len()
        }))
    }

    /// Returns up to `most` of the next bytes without copying them, or `None` at the end of the stream.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, ReadError> {
        std::future::poll_fn(|cx| self.poll_chunk(cx, most)).await
    }

    /// Reads available chunks into `chunks` without copying them, and returns their number, or `None` at the end of the
    /// stream. The previous contents of `chunks` are dropped.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        std::future::poll_fn(|cx| self.poll_chunks(cx, chunks)).await
    }

    fn poll_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        if let Some(place) = chunks.first_mut()
            && !self.first.is_empty()
        {
            *place = std::mem::take(&mut self.first);
            self.on_read(place.len());
            return Poll::Ready(Ok(Some(1)));
        }
        // The future has no state of its own.
        let read = ready!(pin!(self.stream.read_chunks(chunks)).poll(cx));
        let read = self.on_result(read)?;
        if let Some(count) = read {
            let len = chunks.iter().take(count).map(Bytes::len).sum();
            self.on_read(len);
        }
        Poll::Ready(Ok(read))
    }

    /// Counts bytes that the application gets.
    fn on_read(&mut self, len: usize) {
        self.read += len as u64;
        let session = &self.session.0;
        let counter = &session.counters.bytes_received;
        counter.fetch_add(len as u64, Relaxed);
        session.on_read(len);
    }

    /// Converts the result of a read, and keeps the end.
    fn on_result<T>(
        &mut self,
        result: Result<Option<T>, quic::ReadError>,
    ) -> Result<Option<T>, ReadError> {
        match result {
            Ok(value) => {
                self.has_ended = value.is_none();
                Ok(value)
            }
            Err(error) => {
                let closed = self.session.0.ended();
                if closed.is_none() && matches!(error, quic::ReadError::Reset(_)) {
                    self.on_reset();
                }
                Err(ReadError::of(&error, closed))
            }
        }
    }

    /// Returns the number of bytes in the stream, once the peer has announced it with the end or with a reset. It does
    /// not count the header with the number of the session.
    pub fn final_size(&self) -> Option<u64> {
        let size = self.stream.final_size()?;
        Some(size.saturating_sub(self.header.into()))
    }

    /// Reads everything up to the end of the stream, at most `limit` bytes.
    ///
    /// # Errors
    /// Returns [`ReadToEndError::TooLong`] for a longer stream, and the errors of [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Dropping the future loses what was read.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(usize::MAX).await? {
            if chunk.len() > limit - all.len() {
                return Err(ReadToEndError::TooLong(limit));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Asks the peer to stop sending, with a code. What has arrived is discarded.
    ///
    /// # Errors
    /// Returns [`ReadError::ClosedStream`] if the stream was stopped or read to its end before.
    pub fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        let code = var_int(ApplicationCode(code).to_http3());
        self.first = Bytes::new();
        let stopped = self.stream.stop(code);
        if stopped.is_ok() {
            self.abandon();
        }
        stopped.map_err(|_| ReadError::ClosedStream)
    }

    /// Waits until the peer resets the stream, without reading it, and returns its code like [`ReadError::Reset`]. Never
    /// completes if the stream ends in another way.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn was_reset(&mut self) -> Option<ApplicationCode> {
        match std::future::poll_fn(|cx| self.stream.poll_reset(cx)).await {
            quic::ReadError::Reset(code) => {
                self.on_reset();
                application(code)
            }
            _ => std::future::pending().await,
        }
    }

    /// Gives the bytes of a stream that is no longer read back to the window of the session, once their number is
    /// known. Without this, streams that an application does not want would use the window up.
    fn abandon(&mut self) {
        let shared = self.session.0.clone();
        let is_counted = std::mem::replace(&mut self.is_counted, true);
        let is_needed = shared.has_flow_control && shared.ended().is_none();
        if is_counted || !is_needed || !has_runtime() {
            return;
        }
        let (header, read) = (self.header.into(), self.read);
        let mut stream = self.stream.take();
        // Fails if it was stopped.
        let _ = stream.stop(quic::VarInt::from_u32(0));
        runtime::spawn(async move {
            let size = std::future::poll_fn(|cx| stream.poll_final_size(cx)).await;
            if let Some(final_size) = size {
                shared.on_reset(final_size, header, read);
            }
        });
    }

    /// Returns the stream ID.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Stops the stream of a session that has ended.
    pub(crate) fn give_up(&mut self) {
        self.first = Bytes::new();
        // Fails if the stream has ended.
        let _ = self.stream.stop(var_int(code::SESSION_GONE));
    }

    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        let chunk = if self.first.is_empty() || most == 0 {
            // The end costs no further turn if it is there.
            match most == usize::MAX {
                true => ready!(self.stream.poll_read_chunk_and_end(cx)),
                false => ready!(self.stream.poll_read_chunk(cx, most)),
            }
        } else {
            Ok(Some(self.first.split_to(self.first.len().min(most))))
        };
        let chunk = self.on_result(chunk)?;
        if let Some(chunk) = &chunk {
            self.on_read(chunk.len());
        }
        Poll::Ready(Ok(chunk))
    }

    /// Counts the bytes of a stream that the peer has reset.
    fn on_reset(&mut self) {
        let session = &self.session.0;
        if std::mem::replace(&mut self.is_counted, true) || !session.has_flow_control {
            return;
        }
        if let Some(final_size) = self.stream.final_size() {
            session.on_reset(final_size, self.header.into(), self.read);
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let chunk = ready!(self.get_mut().poll_chunk(cx, buf.remaining()))?;
        if let Some(chunk) = chunk {
            buf.put_slice(&chunk);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.has_ended {
            self.abandon();
        }
        self.session.0.remove_half(self.stream.id());
    }
}
