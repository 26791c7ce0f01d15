//! The receiving half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_quic as quic;
use courser_quic::StreamId;
use courser_quic::hooks::RecvStreamHooks as _;
use courser_webtransport::{ApplicationCode, StreamHeader, StreamReset, code};
use courser_wire::Direction;
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
    direction: Direction,
    /// Bytes of the body that were read.
    read: u64,
    has_ended: bool,
    /// True if the bytes of a reset are counted.
    is_reset: bool,
}

impl RecvStream {
    pub(crate) const fn new(
        session: Arc<Handle>,
        first: Bytes,
        stream: quic::RecvStream,
        direction: Direction,
    ) -> Self {
        Self {
            first,
            stream,
            session,
            direction,
            read: 0,
            has_ended: false,
            is_reset: false,
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

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        let chunk = if self.first.is_empty() || most == 0 {
            ready!(self.stream.poll_read_chunk(cx, most))
        } else {
            Ok(Some(self.first.split_to(self.first.len().min(most))))
        };
        let session = &self.session.0;
        match chunk {
            Ok(Some(chunk)) => {
                self.read += chunk.len() as u64;
                let counter = &session.counters.bytes_received;
                counter.fetch_add(chunk.len() as u64, Relaxed);
                session.on_read(chunk.len());
                Poll::Ready(Ok(Some(chunk)))
            }
            Ok(None) => {
                self.has_ended = true;
                Poll::Ready(Ok(None))
            }
            Err(error) => {
                let closed = session.ended();
                if closed.is_none() && matches!(error, quic::ReadError::Reset(_)) {
                    self.on_reset();
                }
                Poll::Ready(Err(ReadError::of(&error, closed)))
            }
        }
    }

    /// Counts the bytes of a stream that the peer has reset, if the transport still knows their number.
    fn on_reset(&mut self) {
        let session = &self.session.0;
        if !session.has_flow_control || std::mem::replace(&mut self.is_reset, true) {
            return;
        }
        let Some(final_size) = self.stream.stats().ok().and_then(|stats| stats.final_size) else {
            return;
        };
        let is_of_peer = self.stream.id().initiator() != session.quic().side();
        let header = match is_of_peer {
            true => StreamHeader::new(self.direction, session.id).len() as u64,
            false => 0,
        };
        let reset = StreamReset {
            final_size,
            header,
            counted: self.read,
            consumed: self.read,
        };
        // An error has ended the session.
        let _ = session.update(|session, now| session.on_stream_reset(now, reset));
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
        self.session.0.remove_half(self.stream.id());
    }
}
