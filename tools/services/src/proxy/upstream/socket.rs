//! A connection to the upstream server that is counted while it is open and reports what it has received.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of open connections.
#[derive(Clone, Debug, Default)]
pub(in crate::proxy) struct OpenConnections(Arc<AtomicUsize>);

impl OpenConnections {
    pub(in crate::proxy) fn count(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Counts a connection as open until the guard is dropped.
    pub(super) fn begin(&self) -> OpenGuard {
        self.0.fetch_add(1, Relaxed);
        OpenGuard(self.0.clone())
    }
}

#[derive(Debug)]
pub(super) struct OpenGuard(Arc<AtomicUsize>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

/// Facts about a connection for its pool and for logs.
#[derive(Debug)]
pub(super) struct ConnectionFacts {
    pub(super) address: Option<SocketAddr>,
    /// Time that it took to establish the connection.
    pub(super) connecting: Duration,
    received: AtomicU64,
    /// True if the first bytes are those of an HTTP/1 response.
    is_http1: AtomicBool,
    is_used: AtomicBool,
}

impl ConnectionFacts {
    pub(super) fn new(address: Option<SocketAddr>, connecting: Duration) -> Arc<Self> {
        Arc::new(Self {
            address,
            connecting,
            received: AtomicU64::new(0),
            is_http1: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
        })
    }

    /// Returns the number of bytes received so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(super) fn is_http1(&self) -> bool {
        self.is_http1.load(Relaxed)
    }

    /// Returns true for the first call.
    pub(super) fn begin_use(&self) -> bool {
        !self.is_used.swap(true, Relaxed)
    }

    fn on_received(&self, bytes: &[u8]) {
        let before = self.received.fetch_add(bytes.len() as u64, Relaxed);
        if before == 0 {
            let length = bytes.len().min(HTTP1.len());
            let is_http1 = bytes[..length] == HTTP1[..length];
            self.is_http1.store(is_http1, Relaxed);
        }
    }
}

const HTTP1: &[u8] = b"HTTP/1.";

/// The socket of a connection, including after an upgrade.
///
/// A server may respond before the end of a request and close the connection, and the rest of the request then
/// resets it. The response has arrived nevertheless. After such an error, bytes to send are discarded, and the error
/// is returned where the received bytes end (RFC 9112 §9.5: a client that sees a connection close while it sends
/// ought to look for a response).
pub(super) struct Counted<T> {
    io: T,
    facts: Arc<ConnectionFacts>,
    /// The error with which the server has ended the direction to it.
    reset: Option<io::ErrorKind>,
    _open: OpenGuard,
}

impl<T> Counted<T> {
    pub(super) const fn new(io: T, facts: Arc<ConnectionFacts>, open: OpenGuard) -> Self {
        Self {
            io,
            facts,
            reset: None,
            _open: open,
        }
    }
}

impl<T> Counted<T> {
    /// Keeps the error of a connection that the server has ended, and reports that all bytes are sent.
    fn on_sent(
        &mut self,
        sent: Poll<io::Result<usize>>,
        length: impl FnOnce() -> usize,
    ) -> Poll<io::Result<usize>> {
        match sent {
            Poll::Ready(Err(error)) if is_reset(&error) => {
                self.reset = Some(error.kind());
                Poll::Ready(Ok(length()))
            }
            sent => sent,
        }
    }
}

/// Returns true if the other end has closed the connection.
pub(super) fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buffer);
        if let Some(received @ [_, ..]) = buffer.filled().get(before..) {
            self.facts.on_received(received);
        } else if let (Some(reset), Poll::Ready(Ok(()))) = (self.reset, &polled) {
            // The system reports an error once, so that reading finds an orderly end.
            return Poll::Ready(Err(reset.into()));
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.reset.is_some() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let sent = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.on_sent(sent, || bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = || slices.iter().map(|slice| slice.len()).sum();
        if self.reset.is_some() {
            return Poll::Ready(Ok(length()));
        }
        let sent = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.on_sent(sent, length)
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn received_bytes_come_before_the_error_of_a_reset_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut stream, mut server) = (stream.expect("connected"), accepted.expect("one").0);
        stream.write_all(b"unread").await.expect("open");
        server.readable().await.expect("open");
        server.write_all(b"early").await.expect("open");
        // Closing with unread bytes resets the connection.
        drop(server);
        stream.ready(Interest::ERROR).await.expect("a reset");
        let open = OpenConnections::default();
        let facts = ConnectionFacts::new(None, Duration::ZERO);
        let mut counted = Counted::new(stream, facts, open.begin());
        for _ in 0..3 {
            counted.write_all(b"more").await.expect("discarded");
        }
        let mut received = Vec::new();
        let error = counted.read_to_end(&mut received).await;
        assert_eq!(received, b"early");
        assert!(is_reset(&error.expect_err("the end is not orderly")));
    }
}
