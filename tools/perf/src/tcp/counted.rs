//! TCP streams whose system calls are counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use courser::Algorithm;
use courser_measure::IoCounters;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream whose system calls are counted.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    counters: Arc<StreamCounters>,
}

/// Counters of all streams of one end.
#[derive(Debug, Default)]
pub(super) struct StreamCounters {
    send_calls: AtomicU64,
    receive_calls: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl StreamCounters {
    pub(super) fn snapshot(&self) -> IoCounters {
        IoCounters {
            send_calls: self.send_calls.load(Relaxed),
            receive_calls: self.receive_calls.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            sent_datagrams: None,
            received_datagrams: None,
            kernel_drops: None,
        }
    }

    fn on_sent(&self, bytes: usize) {
        self.send_calls.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl Counted {
    /// Wraps a stream. Turns off Nagle's algorithm, and sets the same congestion controller as over QUIC.
    pub(super) fn new(
        stream: TcpStream,
        counters: Arc<StreamCounters>,
        congestion: Algorithm,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        set_congestion(&stream, congestion)?;
        Ok(Self { stream, counters })
    }
}

#[cfg(target_os = "linux")]
fn set_congestion(stream: &TcpStream, congestion: Algorithm) -> io::Result<()> {
    let name = match congestion {
        Algorithm::NewReno => "reno",
        Algorithm::Cubic => "cubic",
        // Some kernels lack Prague, in which case the call below fails.
        Algorithm::Prague => "prague",
        Algorithm::Bbr => "bbr",
    };
    Ok(rustix::net::sockopt::set_tcp_congestion(stream, name)?)
}

#[cfg(not(target_os = "linux"))]
fn set_congestion(_: &TcpStream, _: Algorithm) -> io::Result<()> {
    Ok(())
}

impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let poll = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = poll {
            let read = (buffer.filled().len() - before) as u64;
            this.counters.receive_calls.fetch_add(1, Relaxed);
            this.counters.received_bytes.fetch_add(read, Relaxed);
        }
        poll
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.stream).poll_write(cx, buffer);
        if let Poll::Ready(Ok(written)) = poll {
            this.counters.on_sent(written);
        }
        poll
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.stream).poll_write_vectored(cx, buffers);
        if let Poll::Ready(Ok(written)) = poll {
            this.counters.on_sent(written);
        }
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
