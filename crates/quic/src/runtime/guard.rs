//! A socket of another runtime or the transport of a user, whose results are checked.
//!
//! The rest of the crate relies on what a kernel guarantees: lengths within the buffer, whole
//! datagrams, addresses that can be answered. This module enforces the same for other transports, so that
//! a faulty one loses datagrams and does not crash the process.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use courser_base::canonical;
use courser_base::foreign::Foreign;
use courser_udp::{
    AtomicCounters, Capabilities, Counters, PacketTooBig, Received, Transmit, UnreachableReport,
};

use super::traits::{Runtime, UdpSocket};

/// Attempts to send that may fail in a row although the transport has reported that it is writable
/// (limit K191). The batch is lost then; otherwise the driver would retry endlessly.
const MAX_FAILED_SENDS: u32 = 16;

/// Empty or impossible batches that may be received in a row (limit K192). Further ones count as
/// errors, after which receiving pauses.
const MAX_UNUSABLE_BATCHES: u32 = 16_384;

/// Datagrams in one batch (limit K193), as many as Linux accepts. A transport may ask for fewer.
const MAX_SEGMENTS: usize = 128;

/// A socket whose results are corrected where they are impossible.
#[derive(Debug)]
pub(crate) struct Guarded {
    socket: Foreign<Box<dyn UdpSocket>, true>,
    /// Queried once, because the value is needed after every batch.
    gso_segments: usize,
    tally: AtomicCounters,
    /// The runtime that bound it, which can bind another one. `None` for a transport of a user.
    runtime: Option<Arc<dyn Runtime>>,
    /// Attempts to send that have failed in a row.
    failed_sends: AtomicU32,
    /// Batches without a usable datagram in a row.
    unusable_batches: AtomicU32,
}

impl Guarded {
    pub(super) fn new(socket: Box<dyn UdpSocket>) -> Self {
        let gso_segments = socket.capabilities().gso_segments.clamp(1, MAX_SEGMENTS);
        Self {
            socket: Foreign::new(socket),
            gso_segments,
            tally: AtomicCounters::default(),
            runtime: None,
            failed_sends: AtomicU32::new(0),
            unusable_batches: AtomicU32::new(0),
        }
    }

    /// Wraps a socket that `runtime` has bound.
    pub(super) fn bound(socket: Box<dyn UdpSocket>, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime: Some(runtime),
            ..Self::new(socket)
        }
    }

    pub(super) fn is_of_runtime(&self) -> bool {
        self.runtime.is_some()
    }

    /// Binds another socket to the same address.
    pub(super) fn reopen(&self) -> io::Result<Self> {
        let Some(runtime) = &self.runtime else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the transport was supplied by the application and cannot be opened again",
            ));
        };
        let socket = runtime.bind(self.socket.local_addr()?)?;
        Ok(Self::bound(socket, runtime.clone()))
    }

    /// Returns a socket on the same address that neither sends nor receives, and holds nothing of this one.
    pub(super) fn placeholder(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            ..Self::new(Box::new(Closed(self.socket.local_addr().ok())))
        }
    }

    pub(super) fn can_mark(&self) -> bool {
        self.socket.can_mark()
    }

    pub(super) fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        self.socket.is_readable(cx)
    }

    /// Receives one batch. The result lies within the buffer, has a segment size above 0 and addresses
    /// that can be answered.
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        let received = match ready!(self.socket.poll_receive(cx, buffer)) {
            Ok(received) => received,
            // The waker of a transport that reports this is not registered, so that it is asked again
            // in the next turn, and after a pause if that goes on.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Poll::Ready(Err(io::ErrorKind::Interrupted.into()));
            }
            Err(error) => {
                self.tally.on_receive_error(&error);
                return Poll::Ready(Err(error));
            }
        };
        let is_usable = received.len > 0
            && received.len <= buffer.len()
            && !received.truncated
            && can_send(received.peer);
        if is_usable {
            self.unusable_batches.store(0, Relaxed);
            let received = corrected(received);
            self.tally.on_received(received.count(), received.len);
            return Poll::Ready(Ok(received));
        }
        if self.unusable_batches.load(Relaxed) >= MAX_UNUSABLE_BATCHES {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        self.unusable_batches.fetch_add(1, Relaxed);
        // The driver drops empty batches and counts the call.
        Poll::Ready(Ok(Received {
            len: 0,
            segment_size: 1,
            ..received
        }))
    }

    /// Sends a batch. The result covers whole datagrams of it, at least one.
    pub(super) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        let len = transmit.contents.len();
        let taken = match self.socket.try_send(transmit) {
            Ok(0) if len > 0 => Err(io::ErrorKind::WouldBlock.into()),
            other => other,
        };
        match taken {
            Ok(taken) => {
                self.failed_sends.store(0, Relaxed);
                let segment = match transmit.segment_size {
                    Some(size) if size > 0 => size,
                    _ => len.max(1),
                };
                let datagrams = taken.min(len).div_ceil(segment);
                let taken = datagrams.saturating_mul(segment).min(len);
                self.tally.on_sent(datagrams, taken);
                Ok(taken)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.failed_sends.load(Relaxed) < MAX_FAILED_SENDS {
                    return Err(error);
                }
                self.failed_sends.store(0, Relaxed);
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(error) => {
                self.tally.on_send_error(&error);
                Err(error)
            }
        }
    }

    /// Returns `Ready` when another attempt to send makes sense.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = self.socket.poll_writable(cx);
        match &poll {
            // An attempt follows at once. It resets the number if it succeeds.
            Poll::Ready(Ok(())) => self.failed_sends.fetch_add(1, Relaxed),
            _ => self.failed_sends.swap(0, Relaxed),
        };
        poll
    }

    pub(super) fn gso_segments(&self) -> usize {
        self.gso_segments
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.socket.interface_mtu(peer)
    }

    pub(super) fn take_interface_change(&self) -> bool {
        self.socket.take_interface_change()
    }

    pub(super) fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        self.socket.take_packet_too_big()
    }

    pub(super) fn take_unreachable(&self) -> Option<UnreachableReport> {
        self.socket.take_unreachable()
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        self.socket.capabilities()
    }

    pub(super) fn counters(&self) -> Counters {
        let own = self.socket.counters();
        let mut counters = self.tally.snapshot();
        counters.gso_fallbacks = own.gso_fallbacks;
        counters.mark_fallbacks = own.mark_fallbacks;
        counters.source_fallbacks = own.source_fallbacks;
        counters.path_errors = own.path_errors;
        counters.packets_too_big = own.packets_too_big;
        counters
    }

    pub(super) fn receive_overflow(&self) -> Option<u64> {
        self.socket.receive_overflow()
    }
}

/// The socket of a shard that has ended, or that waits for another one. It has an address only.
#[derive(Debug)]
pub(super) struct Closed(pub(super) Option<SocketAddr>);

impl UdpSocket for Closed {
    fn poll_receive(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<Received>> {
        Poll::Pending
    }

    fn is_readable(&self, _: &mut Context<'_>) -> bool {
        false
    }

    fn try_send(&self, _: &Transmit<'_>) -> io::Result<usize> {
        Err(io::ErrorKind::NotConnected.into())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// Returns the batch with a segment size that divides it and addresses in their short form.
fn corrected(received: Received) -> Received {
    let segment_size = match received.segment_size {
        0 => received.len,
        size => size.min(received.len),
    };
    Received {
        segment_size,
        peer: canonical(received.peer),
        local: received.local.map(|local| local.to_canonical()),
        ..received
    }
}

/// Returns true if a datagram can have come from `peer`, so that an answer can reach it.
fn can_send(peer: SocketAddr) -> bool {
    let ip = peer.ip().to_canonical();
    let is_group = ip.is_multicast() || ip == IpAddr::from([255; 4]);
    peer.port() != 0 && !ip.is_unspecified() && !is_group
}

#[cfg(test)]
mod tests;
