//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use courser_quic as quic;
use courser_quic::hooks::{SendStreamHooks as _, Write};
use courser_quic::{ResetAtError, SendStreamStats, StreamId, VarInt, runtime};
use courser_webtransport::{ApplicationCode, StreamHeader, code};
use tokio::io::AsyncWrite;

use crate::error::{WriteError, application, var_int};
use crate::send_group::SendGroup;
use crate::shared::Handle;

/// The sending half of a stream in a session. Dropping it finishes the stream.
///
/// It implements tokio's [`AsyncWrite`].
#[derive(Debug)]
pub struct SendStream {
    stream: quic::SendStream,
    session: Arc<Handle>,
    is_reset: bool,
    /// The stream was reset for a peer without RESET_STREAM_AT, and `stream` may be elsewhere until its header has
    /// arrived.
    is_pending_reset: bool,
}

impl SendStream {
    pub(crate) const fn new(session: Arc<Handle>, stream: quic::SendStream) -> Self {
        Self {
            stream,
            session,
            is_reset: false,
            is_pending_reset: false,
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

    /// Writes all of a chunk without copying it. It is dropped when the peer has acknowledged it.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready may have written a part: [`write_all_chunks`](Self::write_all_chunks)
    /// keeps the rest.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        self.write_all_chunks(&mut [chunk]).await
    }

    /// Writes as much of the chunks as the send buffer and the session accept, without copying, and returns the number
    /// of bytes. Chunks that were written are empty afterwards, and one that was written in part holds the rest.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready writes nothing.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<usize, WriteError> {
        std::future::poll_fn(|cx| self.poll_chunks(cx, chunks)).await
    }

    /// Writes all of the chunks without copying; they are empty afterwards.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Safe: if the future is dropped before it is ready, the chunks hold the bytes that were not written.
    pub async fn write_all_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        while chunks.iter().any(|chunk| !chunk.is_empty()) {
            self.write_chunks(chunks).await?;
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
        self.reset_at(code, 0)
    }

    /// Resets the stream with a code, but still delivers its first `reliable_size` bytes, or as many of them as were
    /// written. The peer reads these and then the code. A second call, or [`reset`](Self::reset), can only reduce the
    /// size and keeps the code of the first.
    ///
    /// If the peer does not accept RESET_STREAM_AT, the stream is reset as by [`reset`](Self::reset), and nothing but
    /// what the peer has already is delivered.
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn reset_at(&mut self, code: u32, reliable_size: u64) -> Result<(), WriteError> {
        if self.is_pending_reset {
            return Err(self.closed_stream());
        }
        let code = var_int(ApplicationCode(code).to_http3());
        let header = self.header();
        match self
            .stream
            .reset_at(code, header.saturating_add(reliable_size))
        {
            Ok(()) => {}
            Err(ResetAtError::Unsupported) => {
                self.reset_after(code, header)?;
                self.is_pending_reset = true;
            }
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
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<ApplicationCode>, WriteError>> + Send + Sync + 'static
    {
        let stopped = self.stream.stopped();
        let shared = self.session.0.clone();
        async move {
            match stopped.await {
                Ok(code) => Ok(code.and_then(application)),
                Err(_) => Err(WriteError::SessionEnded(shared.closed().await)),
            }
        }
    }

    /// Resets the stream with `code` after this time, unless the peer has acknowledged everything by then. `None`
    /// removes the deadline. What is outdated then takes no bandwidth from newer data.
    ///
    /// If the peer accepts RESET_STREAM_AT, the reset keeps the number of the session, as [`reset`](Self::reset) does;
    /// if it does not, a stream that expires before any of it has arrived may belong to no session there.
    /// Later writes fail with [`WriteError::DeadlinePassed`].
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn set_deadline(&mut self, after: Option<Duration>, code: u32) -> Result<(), WriteError> {
        let header = self.header();
        let code = var_int(ApplicationCode(code).to_http3());
        let set = self.stream.set_deadline_at(after, code, header);
        set.map_err(|_| self.closed_stream())
    }

    /// Waits until the peer has acknowledged all bytes that were written before this call. The future does not borrow
    /// the stream, so that writing can continue.
    ///
    /// # Errors
    /// Returns an error if the stream is stopped, reset or late, or the session ends before.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub fn acknowledged(
        &self,
    ) -> impl Future<Output = Result<(), WriteError>> + Send + Sync + 'static {
        let acknowledged = self.stream.acknowledged();
        let shared = self.session.0.clone();
        async move {
            let result = acknowledged.await;
            result.map_err(|error| WriteError::of(&error, shared.ended()))
        }
    }

    /// Returns the numbers of bytes that were written, sent and acknowledged so far. They include the header with the
    /// number of the session, up to 12 bytes.
    ///
    /// # Errors
    /// Returns [`WriteError::ClosedStream`] if everything was acknowledged or the stream was reset, and
    /// [`WriteError::SessionEnded`] after the end of the session.
    pub fn stats(&self) -> Result<SendStreamStats, WriteError> {
        self.stream.stats().map_err(|_| self.closed_stream())
    }

    /// Sets the order, 0 by default: `sendOrder` of W3C. Of the streams of one group that have data to send, those with
    /// the highest order are sent, and take turns if there are several; streams with lower orders wait. It can change
    /// at any time, also while data waits.
    ///
    /// The order has an effect inside the session only. Sessions and requests of one urgency share by bytes
    /// (draft-ietf-webtrans-http3-16 §3.4).
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn set_order(&self, order: i64) -> Result<(), WriteError> {
        let set = self.stream.set_order(order);
        set.map_err(|_| self.closed_stream())
    }

    /// Returns the order.
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn order(&self) -> Result<i64, WriteError> {
        self.stream.order().map_err(|_| self.closed_stream())
    }

    /// Puts the stream into a group of its session, or with `None` among the streams without one, which count as a
    /// group: `sendGroup` of W3C. The groups that have data to send get the same number of bytes each.
    ///
    /// # Errors
    /// Returns [`WriteError::OtherSession`] for a group of another session, and the errors of [`finish`](Self::finish).
    pub fn set_group(&self, group: Option<&SendGroup>) -> Result<(), WriteError> {
        if group.is_some_and(|group| !group.is_of(&self.session.0)) {
            return Err(WriteError::OtherSession);
        }
        let group = group.map(|group| &group.group);
        let set = self.stream.set_group(group);
        set.map_err(|_| self.closed_stream())
    }

    /// Sets the priority, 0 by default. Data of a higher priority is sent before that of all groups and orders of the
    /// session with a lower one.
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

    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let granted = ready!(self.poll_credit(cx, bytes.len()))?;
        let written = self.stream.poll_write(cx, &bytes[..granted]);
        self.on_written(granted, written)
    }

    fn poll_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<usize, WriteError>> {
        let len = chunks.iter().map(Bytes::len).sum();
        let granted = ready!(self.poll_credit(cx, len))?;
        if granted == len {
            let written = self.stream.poll_send(cx, Write::chunks(chunks));
            return self.on_written(granted, written.map_ok(|written| written.bytes));
        }
        // Only what the session allows.
        let mut allowed = Vec::new();
        let mut left = granted;
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            let len = chunk.len().min(left);
            allowed.push(chunk.slice(..len));
            left -= len;
            if left == 0 {
                break;
            }
        }
        let written = self.stream.poll_send(cx, Write::chunks(&mut allowed));
        if let Poll::Ready(Ok(written)) = &written {
            let mut bytes = written.bytes;
            for chunk in chunks {
                let len = chunk.len().min(bytes);
                chunk.advance(len);
                bytes -= len;
            }
        }
        self.on_written(granted, written.map_ok(|written| written.bytes))
    }

    /// Waits for credit of the session for some of `len` bytes, and takes it.
    fn poll_credit(&self, cx: &Context<'_>, len: usize) -> Poll<Result<usize, WriteError>> {
        if self.is_reset {
            return Poll::Ready(Err(self.closed_stream()));
        }
        let session = &self.session.0;
        let granted = session.reserve(cx, self.stream.id(), len);
        if granted > 0 || len == 0 {
            return Poll::Ready(Ok(granted));
        }
        match session.ended() {
            Some(closed) => Poll::Ready(Err(WriteError::SessionEnded(closed))),
            None => Poll::Pending,
        }
    }

    /// Gives credit back that was not used.
    fn on_written(
        &self,
        granted: usize,
        written: Poll<Result<usize, quic::WriteError>>,
    ) -> Poll<Result<usize, WriteError>> {
        let session = &self.session.0;
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
