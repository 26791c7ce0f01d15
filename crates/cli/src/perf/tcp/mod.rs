//! The same measurements over TLS on TCP, as the yardstick.
//!
//! TCP has no streams, so a connection carries one exchange after the other. A request begins
//! with the wanted response length, as over QUIC, and the length of what follows; with the
//! latter at its maximum, bytes follow until the end of the connection.

mod client;
mod server;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use courser::Algorithm;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::counters::IoCounters;
use super::meter::Meter;
use super::wire::filler_slice;

pub(crate) use client::{TcpConnector, TcpLink};
pub(crate) use server::TcpServer;

/// What a request begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Frame {
    /// Wanted length of the response.
    response: u64,
    /// Length of the request, [`UNTIL_END`] if the end of the connection tells.
    request: u64,
}

const FRAME: usize = 16;
const UNTIL_END: u64 = u64::MAX;

impl Frame {
    fn to_bytes(self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        bytes[..8].copy_from_slice(&self.response.to_be_bytes());
        bytes[8..].copy_from_slice(&self.request.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; FRAME]) -> Self {
        let both = u128::from_be_bytes(bytes);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the two halves, one after the other"
        )]
        let (response, request) = ((both >> 64) as u64, both as u64);
        Self { response, request }
    }
}

/// Writes this many bytes that mean nothing. The last ones may wait for a flush.
async fn write_filler(
    stream: &mut (impl AsyncWrite + Unpin),
    mut bytes: u64,
    meter: Option<&Meter>,
) -> io::Result<()> {
    while bytes > 0 {
        let chunk = filler_slice(bytes);
        stream.write_all(chunk).await?;
        bytes -= chunk.len() as u64;
        if let Some(meter) = meter {
            meter.on_sent(chunk.len());
        }
    }
    Ok(())
}

/// Reads and forgets `bytes` bytes, or fewer if the stream ends before; returns how many.
async fn read_filler(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
    bytes: u64,
    meter: Option<&Meter>,
) -> io::Result<u64> {
    let mut received = 0;
    while received < bytes {
        let most = usize::try_from(bytes - received)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = match stream.read(&mut buffer[..most]).await {
            Ok(0) => break,
            Ok(read) => read,
            // The peer has left without the good-bye of TLS.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };
        received += read as u64;
        if let Some(meter) = meter {
            meter.on_received(read);
        }
    }
    Ok(received)
}

/// A TCP stream whose calls to the kernel are counted.
#[derive(Debug)]
struct Counted {
    stream: TcpStream,
    tally: Arc<Tally>,
}

/// The counts, of all streams of one end.
#[derive(Debug, Default)]
struct Tally {
    send_calls: AtomicU64,
    receive_calls: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Tally {
    fn snapshot(&self) -> IoCounters {
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
    /// Takes a stream over: small writes are not held back, and both ends use the same
    /// controller as they would over QUIC.
    fn new(stream: TcpStream, tally: Arc<Tally>, congestion: Algorithm) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        set_congestion(&stream, congestion)?;
        Ok(Self { stream, tally })
    }
}

#[cfg(target_os = "linux")]
fn set_congestion(stream: &TcpStream, congestion: Algorithm) -> io::Result<()> {
    let name = match congestion {
        Algorithm::NewReno => "reno",
        Algorithm::Cubic => "cubic",
        // Not part of every kernel: the call below says so.
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
            this.tally.receive_calls.fetch_add(1, Relaxed);
            this.tally.received_bytes.fetch_add(read, Relaxed);
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
            this.tally.on_sent(written);
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
            this.tally.on_sent(written);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_survives_the_way() {
        let frame = Frame {
            response: 0x0102,
            request: UNTIL_END,
        };
        assert_eq!(frame.to_bytes()[..8], 0x0102_u64.to_be_bytes());
        assert_eq!(Frame::from_bytes(frame.to_bytes()), frame);
    }
}
