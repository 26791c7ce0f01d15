//! The connection of a client without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A connection that fails once its client has taken nothing for too long. hyper does not ask for more content of a
/// response meanwhile, so that no time limit of the content would end it.
#[derive(Debug)]
pub(crate) struct PlainStream {
    stream: TcpStream,
    longest_stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl PlainStream {
    pub(crate) const fn new(stream: TcpStream, longest_stall: Duration) -> Self {
        Self {
            stream,
            longest_stall,
            stalled: None,
        }
    }

    /// Makes the end of the connection a reset.
    pub(crate) fn set_zero_linger(&self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    fn poll_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let longest = self.longest_stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(longest)));
        ready!(stalled.as_mut().poll(cx));
        // The system would keep for the client what it does not take.
        self.set_zero_linger()?;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.poll_stalled(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.poll_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
