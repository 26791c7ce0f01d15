//! Endpoints of QUIC on a tunnel.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_base::Mutex;
use courser_quic::Capabilities;
use courser_quic::runtime::{Ecn, Received, Transmit, UdpSocket};

use crate::socket::Socket;

/// The transport of an endpoint whose packets go through a tunnel to one target, from [`Socket::into_transport`].
///
/// Packets to other addresses than [`Socket::peer_addr`] are dropped. ECN marks do not pass through tunnels (RFC 9298
/// §6.2). The search for the path MTU of the endpoint finds what fits into the packets to the proxy.
#[derive(Debug)]
pub struct Transport {
    socket: Socket,
    peer: SocketAddr,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    payloads: VecDeque<Bytes>,
    /// Empty between calls.
    batch: Vec<Bytes>,
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
            socket,
            waiting: Mutex::default(),
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
        let Waiting { payloads, batch } = &mut *waiting;
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
