//! A time limit for writes to a socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Fails a write that waits longer than [`LONGEST_WRITE`], so that clients that never read cannot occupy the
/// admin address.
#[derive(Debug)]
pub(super) struct WriteTimeout<S> {
    stream: S,
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            waits: None,
        }
    }

    /// Returns an error if `result` has been pending for too long.
    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waits = None;
            return result;
        }
        let waits = self
            .waits
            .get_or_insert_with(|| Box::pin(sleep(LONGEST_WRITE)));
        match waits.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Longest time that a write may wait (limit K248).
const LONGEST_WRITE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writes_to_clients_that_never_read_time_out() {
        let (near, far) = duplex(1000);
        let mut near = WriteTimeout::new(near);
        let began = Instant::now();
        let error = near
            .write_all(&[0; 2000])
            .await
            .expect_err("the peer does not read");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let took = began.elapsed();
        assert!(
            (LONGEST_WRITE..LONGEST_WRITE + Duration::from_secs(1)).contains(&took),
            "{took:?}"
        );
        drop(far);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_readers_are_served_while_they_read() {
        let (near, mut far) = duplex(1000);
        let reading = tokio::spawn(async move {
            let mut all = 0;
            let mut buffer = [0; 1000];
            loop {
                tokio::time::sleep(LONGEST_WRITE - Duration::from_secs(1)).await;
                match far.read(&mut buffer).await.expect("open") {
                    0 => return all,
                    len => all += len,
                }
            }
        });
        let mut near = WriteTimeout::new(near);
        near.write_all(&[0; 10_000]).await.expect("it is read");
        drop(near);
        assert_eq!(reading.await.expect("no panic"), 10_000);
    }
}
