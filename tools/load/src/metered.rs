//! A stream that counts the bytes of HTTP, without the overhead of TLS and TCP.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use courser::HandshakeFailure;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that passed through a stream.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) read: AtomicU64,
    pub(crate) written: AtomicU64,
    /// The reason why the server refused the client after the handshake, if it sent a TLS alert.
    refusal: OnceLock<String>,
}

impl Traffic {
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    fn on_error(&self, error: &std::io::Error) {
        if let Some(failure) = HandshakeFailure::after_handshake(error, "TLS") {
            // Keeps the first error.
            let _ = self.refusal.set(failure.seen().to_owned());
        }
    }
}

#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    traffic: Arc<Traffic>,
}

impl<S> Metered<S> {
    pub(crate) fn new(stream: S, traffic: Arc<Traffic>) -> Self {
        Self { stream, traffic }
    }

    fn on_written(&self, result: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = result {
            self.traffic.written.fetch_add(bytes as u64, Relaxed);
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        result.inspect_err(|error| self.traffic.on_error(error))?;
        let read = buffer.filled().len() - before;
        self.traffic.read.fetch_add(read as u64, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.on_written(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.on_written(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
