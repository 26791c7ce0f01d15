//! A stream whose reads are observed. Writes pass unchanged.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Observes the reads of a stream.
pub(super) trait Observe {
    /// Returns true if the stream is read no more: each read then returns its end.
    fn has_ended(&self) -> bool {
        false
    }

    /// Processes the bytes of a read, none at the end of the stream. Returns the result for the reader.
    fn on_read(&mut self, received: &[u8], result: io::Result<()>) -> io::Result<()>;
}

/// A stream with the observer of its reads.
pub(super) struct Observed<T, O> {
    io: T,
    observer: O,
}

impl<T, O> Observed<T, O> {
    pub(super) const fn new(io: T, observer: O) -> Self {
        Self { io, observer }
    }
}

impl<T: AsyncRead + Unpin, O: Observe + Unpin> AsyncRead for Observed<T, O> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.observer.has_ended() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut this.io).poll_read(cx, buffer));
        let received = buffer.filled().get(before..).unwrap_or_default();
        Poll::Ready(this.observer.on_read(received, result))
    }
}

impl<T: AsyncWrite + Unpin, O: Unpin> AsyncWrite for Observed<T, O> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
