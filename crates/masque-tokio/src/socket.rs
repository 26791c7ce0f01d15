//! The socket of a tunnel on a client.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_base::Mutex;
use courser_http3_tokio as h3;
use courser_masque::ip::Reason;
use courser_masque::{Carrier, Target, datagram};

use crate::ended::Ended;
use crate::stats::TunnelStats;
use crate::tunnel::Tunnel;

/// A UDP socket at the end of a tunnel: what it sends, the proxy sends to the target, and what the target answers, it
/// receives. Clones share it; the tunnel ends when the last one is dropped.
///
/// Packets may be lost, duplicated and reordered, as everywhere with UDP.
#[derive(Clone)]
pub struct Socket(Arc<Inner>);

struct Inner {
    tunnel: Tunnel,
    target: Target,
    carrier: Carrier,
    /// Keeps the connection to the proxy.
    _connection: Option<h3::Client>,
    /// Received payloads that the next call returns.
    received: Mutex<Vec<Bytes>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tunnel.close();
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("target", &self.0.target)
            .field("carrier", &self.0.carrier)
            .finish_non_exhaustive()
    }
}

/// The reason why a payload or packet was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The payload or packet is longer than the path to the other end carries.
    #[error("{size} bytes exceed the {max} bytes that the path to the other end carries")]
    TooLarge {
        /// Its length in bytes.
        size: usize,
        /// Longest one that can be sent at present, in bytes.
        max: usize,
    },
    /// The IP packet may not pass.
    #[error("the packet was dropped: {0}")]
    Dropped(Reason),
    /// The tunnel has ended.
    #[error("{0}")]
    Ended(#[from] Ended),
}

impl Socket {
    pub(crate) fn new(
        tunnel: Tunnel,
        target: Target,
        carrier: Carrier,
        connection: Option<h3::Client>,
    ) -> Self {
        Self(Arc::new(Inner {
            tunnel,
            target,
            carrier,
            _connection: connection,
            received: Mutex::new(Vec::new()),
        }))
    }

    /// Sends a UDP payload, which may be empty, without waiting. If the proxy does not keep up, the oldest payloads are
    /// dropped over HTTP/3, and the newest over HTTP/2 and HTTP/1.1, where they are [counted](Self::stats).
    ///
    /// # Errors
    /// Returns an error if the payload exceeds [`max_size`](Self::max_size), or the tunnel has ended.
    pub fn send(&self, payload: &[u8]) -> Result<(), SendError> {
        let max = self.max_size();
        let size = payload.len();
        if size > max {
            if self.0.carrier == Carrier::Http3 {
                // The connection to the proxy may find that larger packets pass.
                self.0.tunnel.send(&mut vec![datagram::encode(payload)])?;
            }
            return Err(match self.0.tunnel.ended() {
                Some(end) => end.into(),
                None => SendError::TooLarge { size, max },
            });
        }
        let mut datagrams = vec![datagram::encode(payload)];
        self.0.tunnel.send(&mut datagrams)?;
        Ok(())
    }

    /// Sends UDP payloads of one length, which stand one directly after the other in `contents`; the last may be
    /// shorter. A batch costs less than its payloads one by one. Those that are too large are dropped.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    pub fn send_batch(&self, contents: &[u8], segment_size: usize) -> Result<(), Ended> {
        let mut datagrams = Vec::new();
        datagram::encode_batch(contents, segment_size, &mut datagrams);
        self.0.tunnel.send(&mut datagrams)?;
        Ok(())
    }

    /// Waits for the next UDP payload.
    ///
    /// # Errors
    /// Returns the end of the tunnel when nothing is left.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing. One task receives at a time.
    pub async fn recv(&self) -> Result<Bytes, Ended> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for a UDP payload, like [`recv`](Self::recv). Only the task that polled last is woken.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Ended>> {
        let mut received = self.0.received.lock();
        loop {
            if let Some(payload) = received.pop() {
                return Poll::Ready(Ok(payload));
            }
            match self.0.tunnel.poll_receive(cx, &mut received, BATCH) {
                // The first one is taken from the end.
                Poll::Ready(Ok(())) => received.reverse(),
                Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Returns the longest UDP payload that can be sent now, in bytes. Over HTTP/3 it is what a QUIC packet to the proxy
    /// carries, and grows as the path MTU is found; over HTTP/2 and HTTP/1.1 it is 65 527.
    pub fn max_size(&self) -> usize {
        self.0.tunnel.max_size()
    }

    /// Waits until [`max_size`](Self::max_size) differs from a size that is known.
    pub(crate) async fn max_size_changed(&self, known: usize) -> usize {
        self.0.tunnel.size_changed(known).await
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// Returns the version of HTTP that carries the tunnel.
    pub fn carrier(&self) -> Carrier {
        self.0.carrier
    }

    /// Returns the address of the target for an [`Endpoint`](courser_quic::Endpoint) on this socket. For a name, which the
    /// proxy has resolved, it is 192.0.2.1 with the port of the target, an address that stands for it.
    pub fn peer_addr(&self) -> SocketAddr {
        let port = self.0.target.port().get();
        self.0
            .target
            .address()
            .unwrap_or_else(|| ([192, 0, 2, 1], port).into())
    }

    /// Waits until the tunnel has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn closed(&self) -> Ended {
        self.0.tunnel.closed().await
    }

    /// Returns a future that waits until the tunnel has ended, like [`closed`](Self::closed), and does not keep it open: the
    /// tunnel ends when the last socket is dropped.
    pub fn end(&self) -> impl Future<Output = Ended> + Send + 'static {
        let tunnel = self.0.tunnel.clone();
        async move { tunnel.closed().await }
    }

    /// Ends the tunnel.
    pub fn close(&self) {
        self.0.tunnel.close();
    }

    /// Returns the counters of this end.
    pub fn stats(&self) -> TunnelStats {
        self.0.tunnel.stats()
    }

    pub(crate) fn poll_many(
        &self,
        cx: &mut Context<'_>,
        payloads: &mut Vec<Bytes>,
    ) -> Poll<Result<(), Ended>> {
        self.0.tunnel.poll_receive(cx, payloads, BATCH)
    }
}

/// Payloads that are received at a time.
const BATCH: usize = 64;
