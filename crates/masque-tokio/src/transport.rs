//! Endpoints of QUIC on a tunnel.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_base::Mutex;
use courser_masque::Carrier;
use courser_quic::Capabilities;
use courser_quic::runtime::{Ecn, Received, Transmit, UdpSocket};

use crate::socket::Socket;

/// The transport of an endpoint whose packets go through a tunnel to one target, from [`Socket::into_transport`].
///
/// Packets to other addresses than [`Socket::peer_addr`] are dropped. ECN marks do not pass through tunnels (RFC 9298
/// §6.2). Over HTTP/3, connections of the endpoint use packets of [`Socket::max_size`] bytes at most, and follow its changes
/// within a round trip: what fits into the packets to the proxy is the MTU of their interface.
#[derive(Debug)]
pub struct Transport {
    socket: Socket,
    peer: SocketAddr,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    payloads: VecDeque<Bytes>,
    /// Empty between calls.
    batch: Vec<Bytes>,
    /// The longest payload that the endpoint knows of, and the next change of it.
    size: usize,
    change: Option<SizeChange>,
    has_changed: bool,
}

type SizeChange = Pin<Box<dyn Future<Output = usize> + Send>>;

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("payloads", &self.payloads.len())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Waiting {
    /// Notes changes of the longest payload, and has the task woken at the next one.
    fn watch_size(&mut self, socket: &Socket, cx: &mut Context<'_>) {
        if socket.carrier() != Carrier::Http3 {
            return;
        }
        let begin = |known: usize| -> SizeChange {
            let socket = socket.clone();
            Box::pin(async move { socket.max_size_changed(known).await })
        };
        let change = self.change.get_or_insert_with(|| begin(self.size));
        while let Poll::Ready(size) = change.as_mut().poll(cx) {
            (self.size, self.has_changed) = (size, true);
            *change = begin(size);
        }
    }
}

impl Socket {
    /// Returns a transport on which an [`Endpoint`](courser_quic::Endpoint) runs, so that QUIC connections to the target
    /// pass through the proxy. See [`EndpointBuilder::transport`](courser_quic::EndpointBuilder::transport).
    pub fn into_transport(self) -> Transport {
        Transport::new(self)
    }
}

impl Transport {
    fn new(socket: Socket) -> Self {
        Self {
            peer: socket.peer_addr(),
            waiting: Mutex::new(Waiting {
                size: socket.max_size(),
                ..Waiting::default()
            }),
            socket,
        }
    }

    /// Returns the address to which the endpoint connects.
    pub const fn peer_addr(&self) -> SocketAddr {
        self.peer
    }
}

impl UdpSocket for Transport {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut waiting = self.waiting.lock();
        waiting.watch_size(&self.socket, cx);
        let Waiting {
            payloads, batch, ..
        } = &mut *waiting;
        if payloads.is_empty() {
            match self.socket.poll_many(cx, batch) {
                Poll::Ready(Ok(())) => payloads.extend(batch.drain(..)),
                // An endpoint cannot do anything about it: its connections time out.
                Poll::Ready(Err(end)) => {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, end)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        let Some(first) = payloads.pop_front() else {
            return Poll::Pending;
        };
        let (segment, mut len) = (first.len(), copy(&first, buffer));
        while segment > 0
            && len % segment == 0
            && let Some(next) = payloads.front()
            && (1..=segment).contains(&next.len())
            && len + next.len() <= buffer.len()
        {
            len += copy(next, &mut buffer[len..]);
            payloads.pop_front();
        }
        Poll::Ready(Ok(Received {
            len,
            segment_size: segment.max(1),
            peer: self.peer,
            local: None,
            ecn: Ecn::NotEct,
            truncated: false,
        }))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        let len = transmit.contents.len();
        if transmit.destination == self.peer {
            let segment = transmit.segment_size.unwrap_or(len);
            let sent = self.socket.send_batch(transmit.contents, segment);
            sent.map_err(|end| io::Error::new(io::ErrorKind::BrokenPipe, end))?;
        }
        Ok(len)
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What does not fit is dropped, as in a router.
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(match self.peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, LOCAL_PORT).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, LOCAL_PORT).into(),
        })
    }

    fn interface_mtu(&self, _: SocketAddr) -> Option<u32> {
        // Over TCP there is no limit that helps to find that of the path behind the proxy.
        let is_limited = self.socket.carrier() == Carrier::Http3;
        let header = match self.peer {
            SocketAddr::V4(_) => 20 + 8,
            SocketAddr::V6(_) => 40 + 8,
        };
        let size = u32::try_from(self.socket.max_size()).ok()?;
        is_limited.then_some(size + header)
    }

    fn take_interface_change(&self) -> bool {
        std::mem::take(&mut self.waiting.lock().has_changed)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = SEGMENTS;
        capabilities
    }
}

fn copy(payload: &[u8], buffer: &mut [u8]) -> usize {
    let len = payload.len().min(buffer.len());
    buffer[..len].copy_from_slice(&payload[..len]);
    len
}

/// Datagrams in a batch: as many as the send queue of a connection takes with room for others.
const SEGMENTS: usize = 32;

/// A port that stands for the one of the proxy, which the client does not know.
const LOCAL_PORT: u16 = 9;
