//! A TCP socket that counts bytes, is aborted with the server, and fails if its peer reads too slowly.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::limits::buffers::{BLOCKED, ReadBuffers};
use crate::limits::holders::Holder;
use crate::limits::read_monitor::ReaderPace;
use crate::limits::shares::Share;
use crate::rare::Rare;
use crate::tally::{Open, Tally, Traffic};

mod plain_http;

struct Stalled {
    since: Instant,
    /// The time limit, if there is one.
    end: Option<Pin<Box<Sleep>>>,
}

/// The socket of a connection, including after an upgrade, when the user owns it.
pub(crate) struct Socket {
    stream: TcpStream,
    tally: Arc<Tally>,
    traffic: Arc<Traffic>,
    cut: Rare<dyn Future<Output = ()> + Send>,
    is_cut: bool,
    pace: ReaderPace,
    /// The time since which the peer reads nothing, and its limit.
    stalled: Option<Stalled>,
    /// The time limit for the peer to close after all data was sent.
    lingering: Option<Pin<Box<Sleep>>>,
    /// The connection's share of the connection limit.
    _share: Share,
    /// Counts the connection as open, including after an upgrade.
    open: Option<Arc<Open>>,
    /// The first bytes read, until they are taken or exceed [`MAX_FIRST`].
    first: Option<Vec<u8>>,
    buffers: ReadBuffers,
}

impl Socket {
    pub(crate) fn new(
        stream: TcpStream,
        tally: Arc<Tally>,
        cut: Rare<dyn Future<Output = ()> + Send>,
        pace: ReaderPace,
        share: Share,
        buffers: ReadBuffers,
    ) -> Self {
        Self {
            stream,
            tally,
            traffic: Arc::default(),
            cut,
            is_cut: false,
            pace,
            stalled: None,
            lingering: None,
            _share: share,
            open: None,
            first: Some(Vec::new()),
            buffers,
        }
    }

    /// Returns the first bytes read and stops recording them. `None` if they exceeded the limit.
    pub(crate) fn take_first(&mut self) -> Option<Vec<u8>> {
        self.first.take()
    }

    /// Keeps `open` for the lifetime of the socket.
    pub(crate) fn keep(&mut self, open: Arc<Open>) {
        self.open = Some(open);
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Returns the memory of the connection.
    pub(crate) fn holder(&self) -> &Arc<Holder> {
        self.buffers.holder()
    }

    /// Sets the largest number of received bytes that the protocol buffers.
    pub(crate) fn set_max_buffered(&mut self, bytes: u64) {
        self.buffers.set_max(bytes);
    }

    /// Returns an error once the server aborts its connections or blocks the address.
    fn check_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.is_cut = self.is_cut || Pin::new(&mut self.cut).poll(cx).is_ready();
        if self.is_cut {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the server has ended, or the address is blocked",
            ));
        }
        Ok(())
    }

    /// Returns `Ready` when the peer has closed, or its time limit has expired.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 1024];
        loop {
            let is_late = |sleep: &mut Pin<Box<Sleep>>| sleep.as_mut().poll(cx).is_ready();
            if self.lingering.as_mut().is_none_or(is_late) || self.check_cut(cx).is_err() {
                return Poll::Ready(());
            }
            let mut unwanted = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut unwanted)) {
                Ok(()) if !unwanted.filled().is_empty() => {}
                _ => return Poll::Ready(()),
            }
        }
    }

    /// Returns `Ready` when the peer has read nothing for too long, or reads too slowly.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let longest_pause = self.pace.remaining();
        let holder = self.buffers.holder();
        let stalled = self.stalled.get_or_insert_with(|| {
            holder.hold(BLOCKED);
            Stalled {
                since: Instant::now(),
                end: longest_pause.map(|pause| Box::pin(tokio::time::sleep(pause))),
            }
        });
        match &mut stalled.end {
            Some(end) => end.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    fn on_written(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &result {
            Poll::Pending => {
                if self.poll_stalled(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            Poll::Ready(Ok(written)) => {
                let written = *written as u64;
                let waited = match self.stalled.take() {
                    Some(stalled) => {
                        self.buffers.holder().shrink(BLOCKED);
                        stalled.since.elapsed()
                    }
                    None => Duration::ZERO,
                };
                if let Some(arrears) = &mut self.pace.arrears {
                    arrears.on_taken(written, waited);
                }
                self.tally.tcp_sent.fetch_add(written, Relaxed);
                self.traffic.sent.fetch_add(written, Relaxed);
            }
            Poll::Ready(Err(_)) => {}
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
        if let Some(first) = &mut self.first {
            first.extend_from_slice(&buffer.filled()[before..]);
            if first.len() > MAX_FIRST {
                self.first = None;
            }
        }
        let read = (buffer.filled().len() - before) as u64;
        self.tally.tcp_received.fetch_add(read, Relaxed);
        let waiting = self.traffic.on_received(read);
        let copied = self.first.as_ref().map_or(0, Vec::len) as u64;
        self.buffers.on_waiting(waiting + copied)?;
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

    /// Waits briefly until the peer has closed too. If the socket were closed with unread bytes, TCP would
    /// discard data in flight (RFC 9112 §9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.lingering = Some(Box::pin(tokio::time::sleep(LINGER)));
        }
        self.poll_linger(cx).map(Ok)
    }
}

/// Largest number of first bytes that are recorded (limit K206). A ClientHello has about 2 KiB.
const MAX_FIRST: usize = 16 * 1024;

/// Time limit for the peer to close: enough for a round trip and the rest of a slow reader's data.
const LINGER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
