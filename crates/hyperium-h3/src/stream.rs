//! Streams and their two directions.

use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use courser::{ClosedStream, StoppedError};
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use crate::error::{connection_lost, read_error, saturating_var_int, write_error};

/// A bidirectional stream that was opened or accepted, before [`split`](quic::BidiStream::split).
#[derive(Debug)]
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    receive: RecvStream,
}

impl<B: Buf> BidiStream<B> {
    pub(crate) fn new((send, receive): (courser::SendStream, courser::RecvStream)) -> Self {
        Self {
            send: SendStream::new(send),
            receive: RecvStream::new(receive),
        }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        (self.send, self.receive)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.receive.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for BidiStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.send.poll_send(cx, buf)
    }
}

/// The receiving direction of a stream. Returns data as it was received, without a copy.
#[derive(Debug)]
pub struct RecvStream(courser::RecvStream);

impl RecvStream {
    pub(crate) fn new(stream: courser::RecvStream) -> Self {
        Self(stream)
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.0.poll_read_chunk(cx, usize::MAX).map_err(read_error)
    }

    fn stop_sending(&mut self, error_code: u64) {
        // Fails if the stream has already ended.
        let _ = self.0.stop(saturating_var_int(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.0.id())
    }
}

/// The sending direction of a stream.
///
/// Dropping it finishes the stream after the bytes already written. Data passed to `send_data` is
/// lost if `poll_ready` has not written it.
pub struct SendStream<B: Buf> {
    stream: courser::SendStream,
    writing: Option<WriteBuf<B>>,
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: courser::SendStream) -> Self {
        Self {
            stream,
            writing: None,
        }
    }

    /// Writes as much of the next chunk of `buf` as the stream accepts. An empty buffer succeeds even
    /// if the stream accepts nothing.
    fn poll_write<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        let written = ready!(self.stream.poll_write(cx, buf.chunk())).map_err(write_error)?;
        buf.advance(written);
        Poll::Ready(Ok(written))
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let Some(mut data) = self.writing.take() else {
            return Poll::Ready(Ok(()));
        };
        while data.has_remaining() {
            match self.poll_write(cx, &mut data) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.writing = Some(data);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(trait_misuse("send_data before the stream was ready"));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let Err(ClosedStream) = self.stream.finish() else {
            return Poll::Ready(Ok(()));
        };
        // The stream was closed, either by its connection or earlier.
        Poll::Ready(Err(match pin!(self.stream.stopped()).poll(cx) {
            Poll::Ready(Err(StoppedError::ConnectionLost(error))) => connection_lost(error),
            _ => StreamErrorIncoming::Unknown(Box::new(ClosedStream)),
        }))
    }

    fn reset(&mut self, reset_code: u64) {
        // A reset stream sends no more data.
        self.writing = None;
        let _ = self.stream.reset(saturating_var_int(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        if self.writing.is_some() {
            return Poll::Ready(Err(trait_misuse("poll_send before the stream was ready")));
        }
        self.poll_write(cx, buf)
    }
}

impl<B: Buf> fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream")
            .field("stream", &self.stream)
            .field("writing", &self.writing.as_ref().map(Buf::remaining))
            .finish()
    }
}

/// Returns the error for a call that the contract of the traits forbids. `h3` then closes the
/// connection with H3_INTERNAL_ERROR.
fn trait_misuse(how: &str) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: ConnectionErrorIncoming::InternalError(how.to_owned()),
    }
}

fn stream_id(id: courser::StreamId) -> StreamId {
    StreamId::try_from(id.value()).expect("stream IDs are below 2^62")
}
