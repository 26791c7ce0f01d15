//! A UDP socket for one peer, for relays.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, ready};

use courser_base::{Ecn, Unreachable};
use courser_udp::{Received, Transmit};

use super::current::Current;
use super::socket::Socket;

/// A UDP socket that sends to one peer and receives from it alone, in batches and without ECN marks. Datagrams are never
/// fragmented.
#[derive(Debug)]
pub struct PeerSocket {
    socket: Socket,
    peer: SocketAddr,
}

impl PeerSocket {
    /// Opens a socket of the current runtime, connected to `peer` if the runtime has the sockets of the system.
    ///
    /// # Errors
    /// Returns the error of the system, such as a missing route, or one if there is no runtime.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = Current::require()?.bind(any)?;
        if let Socket::System(system) = &socket {
            system.udp().limit_buffers(BUFFER);
            system.udp().connect(peer)?;
        }
        Ok(Self { socket, peer })
    }

    /// Returns the peer.
    pub const fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the local address. It is one of the machine if the runtime has the sockets of the system.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the largest number of datagrams in a batch that is sent.
    pub fn max_segments(&self) -> usize {
        self.socket.gso_segments()
    }

    /// Receives one batch of the peer into `buffer`, which has 65 536 bytes, or arranges to be woken.
    ///
    /// # Errors
    /// Returns the error of the system, which may report an earlier send.
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        for _ in 0..STRANGERS {
            let received = ready!(self.socket.poll_receive(cx, buffer))?;
            // Datagrams of others may have arrived before the socket was connected.
            if received.peer == self.peer && !received.truncated {
                return Poll::Ready(Ok(received));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sends as many datagrams of a batch as the system accepts now, and returns their bytes.
    ///
    /// # Errors
    /// Returns `WouldBlock` if there is no room, or the error of the system.
    pub fn try_send(&self, contents: &[u8], segment_size: usize) -> io::Result<usize> {
        self.socket.try_send_some(&Transmit {
            destination: self.peer,
            source: None,
            ecn: Ecn::NotEct,
            segment_size: Some(segment_size),
            contents,
        })
    }

    /// Returns the reason of the next ICMP message that a datagram did not reach the peer. The task that receives
    /// is woken when there is one.
    pub fn take_unreachable(&self) -> Option<Unreachable> {
        self.socket.take_unreachable().map(|report| report.cause)
    }
}

/// Bytes of each buffer of the system (limit K626): a relay has a socket for each tunnel, and the buffers of an endpoint
/// (7 MiB) would hold gigabytes for peers of a client that does not read.
const BUFFER: usize = 1024 * 1024;

/// Batches of others that are dropped in a row before other tasks have their turn.
const STRANGERS: usize = 16;
