//! A TCP socket that counts, is cut with the server, and gives up those who do not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use super::phase::{Part, Phase};
use super::tally::{Open, Tally, Traffic};

/// Lives as long as the connection does, whoever has it: after an upgrade the user.
pub(super) struct Socket {
    stream: TcpStream,
    tally: Arc<Tally>,
    traffic: Arc<Traffic>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_cut: bool,
    /// How long the peer may leave what we have to say.
    patience: Option<Duration>,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Its place among the connections that may be.
    _permit: OwnedSemaphorePermit,
    /// Counted as open, also after an upgrade.
    open: Option<Arc<Open>>,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        tally: Arc<Tally>,
        part: Part,
        patience: Option<Duration>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            stream,
            tally,
            traffic: Arc::default(),
            cut: part.will_reach(Phase::Cut),
            is_cut: false,
            patience,
            stalled: None,
            _permit: permit,
            open: None,
        }
    }

    /// Keeps this for as long as the socket lives.
    pub(super) fn keep(&mut self, open: Arc<Open>) {
        self.open = Some(open);
    }

    pub(super) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Fails once the server has cut what is left.
    fn check_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.is_cut = self.is_cut || self.cut.as_mut().poll(cx).is_ready();
        if self.is_cut {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the server has ended",
            ));
        }
        Ok(())
    }

    fn on_written(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match (&result, self.patience) {
            (Poll::Pending, Some(patience)) => {
                let stalled = self
                    .stalled
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                if stalled.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            (Poll::Ready(Ok(written)), _) => {
                self.stalled = None;
                let written = *written as u64;
                self.tally.tcp_sent.fetch_add(written, Relaxed);
                self.traffic.sent.fetch_add(written, Relaxed);
            }
            _ => {}
        }
        result
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_cut(cx)?;
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let read = (buffer.filled().len() - before) as u64;
        self.tally.tcp_received.fetch_add(read, Relaxed);
        self.traffic.received.fetch_add(read, Relaxed);
        result
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_cut(cx)?;
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.on_written(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check_cut(cx)?;
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.on_written(cx, result)
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
