//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes};
use courser_quic as quic;
use courser_quic::hooks::{SendStreamHooks as _, Write};
use courser_quic::{ResetAtError, StreamId, VarInt, runtime};
use courser_webtransport::{ApplicationCode, StreamHeader, code};
use tokio::io::AsyncWrite;

use crate::error::{WriteError, application, var_int};
use crate::shared::Handle;

/// The sending half of a stream in a session. Dropping it finishes the stream.
///
/// It implements tokio's [`AsyncWrite`].
#[derive(Debug)]
pub struct SendStream {
    stream: quic::SendStream,
    session: Arc<Handle>,
    /// The stream was reset, and `stream` may be elsewhere until its header has arrived.
    is_reset: bool,
}

impl SendStream {
    pub(crate) const fn new(session: Arc<Handle>, stream: quic::SendStream) -> Self {
        Self {
            stream,
            session,
            is_reset: false,
        }
    }

    /// Writes some bytes, and returns their number.
    ///
    /// # Errors
    /// Returns an error if the peer has stopped reading, the stream is closed or the session has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready writes nothing.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        std::future::poll_fn(|cx| self.poll_send(cx, bytes)).await
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready may have written a part.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of a chunk without copying it. The session of a gateway passes on what it has read this way.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Safe if the chunk is kept: after the future is dropped, `chunk` has the bytes that were not written.
    pub async fn write_chunk(&mut self, chunk: &mut Bytes) -> Result<(), WriteError> {
        while !chunk.is_empty() {
            std::future::poll_fn(|cx| self.poll_send_chunk(cx, chunk)).await?;
        }
        Ok(())
    }

    /// Finishes the stream. The peer reads everything that was written, and then the end.
    ///
    /// # Errors
    /// Returns [`WriteError::ClosedStream`] if it was finished or reset before, and
    /// [`WriteError::SessionEnded`] after the end of the session.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        if self.is_reset {
            return Err(self.closed_stream());
        }
        self.stream.finish().map_err(|_| self.closed_stream())
    }

    /// Resets the stream with a code. What was written may be lost, but for the number of the session.
    ///
    /// If the peer does not accept RESET_STREAM_AT, as no browser does, a task resets the stream once the peer has
    /// acknowledged that number: a stream that is reset before belongs to no session there.
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        if self.is_reset {
            return Err(self.closed_stream());
        }
        let code = var_int(ApplicationCode(code).to_http3());
        let header = self.header();
        match self.stream.reset_at(code, header) {
            Ok(()) => {}
            Err(ResetAtError::Unsupported) => self.reset_after(code, header)?,
            Err(_) => return Err(self.closed_stream()),
        }
        self.is_reset = true;
        Ok(())
    }

    /// Returns the length of the header of this stream. Those of the peer begin without one of this end.
    fn header(&self) -> u64 {
        let (stream, session) = (self.stream.id(), &self.session.0);
        match stream.initiator() == session.quic().side() {
            true => StreamHeader::new(stream.direction(), session.id).len() as u64,
            false => 0,
        }
    }

    /// Resets the stream when the peer has acknowledged its header.
    fn reset_after(&mut self, code: VarInt, header: u64) -> Result<(), WriteError> {
        let mut delivered = Box::pin(self.stream.acknowledged_to(header));
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(result) = delivered.as_mut().poll(&mut cx) {
            let reset = result.is_ok().then(|| self.stream.reset(code));
            let is_reset = reset.is_some_and(|reset| reset.is_ok());
            return is_reset.then_some(()).ok_or_else(|| self.closed_stream());
        }
        let mut stream = self.stream.take();
        runtime::spawn(async move {
            // An error has ended the stream.
            if delivered.await.is_ok() {
                let _ = stream.reset(code);
            }
        });
        Ok(())
    }

    /// Waits until the peer stops reading, and returns its code: `None` if it is none of an application, or if the peer
    /// has received everything.
    ///
    /// # Errors
    /// Returns [`WriteError::SessionEnded`] if the connection is lost.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn stopped(&self) -> Result<Option<ApplicationCode>, WriteError> {
        match self.stream.stopped().await {
            Ok(code) => Ok(code.and_then(application)),
            Err(_) => Err(WriteError::SessionEnded(self.session.0.closed().await)),
        }
    }

    /// Sets the priority, 0 by default. Data of a higher priority is sent first, over all streams of the connection.
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn set_priority(&self, priority: i32) -> Result<(), WriteError> {
        let set = self.stream.set_priority(priority);
        set.map_err(|_| self.closed_stream())
    }

    /// Returns the stream ID.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    fn closed_stream(&self) -> WriteError {
        let closed = self.session.0.ended();
        closed.map_or(WriteError::ClosedStream, WriteError::SessionEnded)
    }

    /// Resets the stream of a session that has ended.
    pub(crate) fn give_up(&mut self) {
        // Fails if the stream has ended.
        let _ = self.stream.reset(var_int(code::SESSION_GONE));
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, WriteError>> {
        self.poll_with_credit(cx, bytes.len(), |stream, cx, granted| {
            stream.poll_write(cx, &bytes[..granted])
        })
    }

    fn poll_send_chunk(
        &mut self,
        cx: &mut Context<'_>,
        chunk: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        self.poll_with_credit(cx, chunk.len(), |stream, cx, granted| {
            let mut part = [chunk.slice(..granted)];
            let written = stream.poll_send(cx, Write::chunks(&mut part));
            written.map_ok(|written| {
                chunk.advance(written.bytes);
                written.bytes
            })
        })
    }

    /// Writes up to `len` bytes, as far as the session has credit, which is given back for those that were not written.
    fn poll_with_credit(
        &mut self,
        cx: &mut Context<'_>,
        len: usize,
        write: impl FnOnce(
            &mut quic::SendStream,
            &mut Context<'_>,
            usize,
        ) -> Poll<Result<usize, quic::WriteError>>,
    ) -> Poll<Result<usize, WriteError>> {
        if self.is_reset {
            return Poll::Ready(Err(self.closed_stream()));
        }
        let session = &self.session.0;
        let granted = session.reserve(cx, self.stream.id(), len);
        if granted == 0 && len > 0 {
            return match session.ended() {
                Some(closed) => Poll::Ready(Err(WriteError::SessionEnded(closed))),
                None => Poll::Pending,
            };
        }
        let written = write(&mut self.stream, cx, granted);
        let used = match &written {
            Poll::Ready(Ok(used)) => *used,
            _ => 0,
        };
        session.give_back(granted - used);
        let counter = &session.counters.bytes_sent;
        counter.fetch_add(used as u64, Relaxed);
        let written = ready!(written);
        Poll::Ready(written.map_err(|error| WriteError::of(&error, session.ended())))
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, bytes).map_err(Into::into)
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.session.0.remove_half(self.stream.id());
    }
}
