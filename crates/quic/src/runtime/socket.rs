//! The socket of a shard: the system's, one of another runtime, or the transport of a user.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::{FourTuple, ScopedIp};
use courser_udp::{Capabilities, Counters, PacketTooBig, Received, Transmit, UnreachableReport};

use super::guard::{Closed, Guarded};
use super::system;
use super::traits::{Runtime, UdpSocket};

/// A bound socket with notifications of readability.
#[derive(Debug)]
pub(crate) enum Socket {
    System(system::Socket),
    /// The socket of a runtime, or the transport of a user.
    Custom(Guarded),
}

impl Socket {
    pub(super) fn of_system(socket: courser_udp::UdpSocket) -> io::Result<Self> {
        system::Socket::new(socket).map(Self::System)
    }

    /// Wraps the transport of a user, or a socket that a runtime has adopted.
    pub(crate) fn of_runtime(socket: Box<dyn UdpSocket>) -> Self {
        Self::Custom(Guarded::new(socket))
    }

    /// Wraps a socket that a runtime has bound.
    pub(super) fn bound(socket: Box<dyn UdpSocket>, runtime: Arc<dyn Runtime>) -> Self {
        Self::Custom(Guarded::bound(socket, runtime))
    }

    /// Opens another socket on the same address, to take the place of this one.
    ///
    /// # Errors
    /// Returns `Unsupported` for a socket or a transport that was given.
    pub(crate) fn reopen(&self) -> io::Result<Self> {
        match self {
            Self::System(socket) => Self::of_system(socket.udp().reopen()?),
            Self::Custom(socket) => socket.reopen().map(Self::Custom),
        }
    }

    /// Opens a socket on the same address that receives the datagrams of this path only.
    ///
    /// # Errors
    /// Returns `Unsupported` for sockets that this process has not bound itself.
    pub(crate) fn open_for_path(&self, path: FourTuple) -> io::Result<Self> {
        match self {
            Self::System(socket) => Self::of_system(socket.udp().open_for_path(path)?),
            Self::Custom(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Leaves the address to other processes. Only datagrams of peers that have a socket of their own arrive here.
    ///
    /// # Errors
    /// Like [`open_for_path`](Self::open_for_path).
    pub(crate) fn leave_address(&self) -> io::Result<()> {
        match self {
            Self::System(socket) => socket.udp().leave_address(),
            Self::Custom(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns a second descriptor of the socket.
    ///
    /// # Errors
    /// Returns `Unsupported` for the socket of another runtime and for a transport.
    #[cfg(unix)]
    pub(crate) fn duplicate(&self) -> io::Result<std::net::UdpSocket> {
        match self {
            Self::System(socket) => socket.udp().duplicate(),
            Self::Custom(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns true for a socket that another runtime has bound, and can bind again once it is dropped.
    pub(crate) fn is_of_runtime(&self) -> bool {
        match self {
            Self::System(_) => false,
            Self::Custom(socket) => socket.is_of_runtime(),
        }
    }

    /// Returns a socket on the same address that neither sends nor receives.
    pub(crate) fn placeholder(&self) -> Self {
        match self {
            Self::System(socket) => {
                let address = socket.udp().local_addr().ok();
                Self::of_runtime(Box::new(Closed(address)))
            }
            Self::Custom(socket) => Self::Custom(socket.placeholder()),
        }
    }

    /// Returns false once ECN marks turn out to be impossible.
    pub(crate) fn can_mark(&self) -> bool {
        match self {
            Self::System(socket) => socket.udp().can_mark(),
            Self::Custom(socket) => socket.can_mark(),
        }
    }

    /// Returns true if there may be something to receive; otherwise wakes the task when there is.
    pub(crate) fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::System(socket) => socket.is_readable(cx),
            Self::Custom(socket) => socket.is_readable(cx),
        }
    }

    /// Receives one batch, or arranges to be woken when there is one.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        match self {
            Self::System(socket) => socket.poll_receive(cx, buffer),
            Self::Custom(socket) => socket.poll_receive(cx, buffer),
        }
    }

    /// Sends as many datagrams of a batch as are accepted now, and returns the bytes sent.
    pub(crate) fn try_send_some(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        match self {
            Self::System(socket) => socket.udp().try_send_some(transmit),
            Self::Custom(socket) => socket.try_send(transmit),
        }
    }

    /// Returns the maximum of datagrams in one send call.
    pub(crate) fn gso_segments(&self) -> usize {
        match self {
            Self::System(socket) => socket.udp().gso_segments(),
            Self::Custom(socket) => socket.gso_segments(),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(socket) => socket.udp().local_addr(),
            Self::Custom(socket) => socket.local_addr(),
        }
    }

    /// Returns true if datagrams to link-local addresses need a zone, and replies have it. Transports of
    /// their own may not know zones.
    pub(crate) fn needs_zones(&self) -> bool {
        matches!(self, Self::System(_))
    }

    /// Returns false if `local` is not an address of this machine. Runtimes with sockets of their own
    /// report that when they send.
    pub(crate) fn has_address(&self, local: ScopedIp) -> bool {
        match self {
            Self::System(_) => std::net::UdpSocket::bind(local.with_port(0)).is_ok(),
            Self::Custom(_) => true,
        }
    }

    /// Returns the MTU of the interface towards `peer`, if it is known.
    pub(crate) fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        match self {
            Self::System(socket) => socket.udp().interface_mtu(peer),
            Self::Custom(socket) => socket.interface_mtu(peer),
        }
    }

    /// Returns true once after the MTU of the interface has changed. The system reports changes of its own by
    /// ICMP messages.
    pub(crate) fn take_interface_change(&self) -> bool {
        match self {
            Self::System(_) => false,
            Self::Custom(socket) => socket.take_interface_change(),
        }
    }

    /// Returns the next ICMP Packet Too Big message.
    pub(crate) fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        match self {
            Self::System(socket) => socket.udp().take_packet_too_big(),
            Self::Custom(socket) => socket.take_packet_too_big(),
        }
    }

    /// Returns the next ICMP message about a datagram that did not reach its destination.
    pub(crate) fn take_unreachable(&self) -> Option<UnreachableReport> {
        match self {
            Self::System(socket) => socket.udp().take_unreachable(),
            Self::Custom(socket) => socket.take_unreachable(),
        }
    }

    /// Returns true if sending has found an ICMP message, which only the driver reads.
    pub(crate) fn has_icmp_messages(&self) -> bool {
        match self {
            Self::System(socket) => socket.udp().has_icmp_messages(),
            // It wakes the driver itself.
            Self::Custom(_) => false,
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            Self::System(socket) => socket.udp().capabilities(),
            Self::Custom(socket) => socket.capabilities(),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        match self {
            Self::System(socket) => socket.udp().counters(),
            Self::Custom(socket) => socket.counters(),
        }
    }

    /// Returns the number of received datagrams that the kernel dropped, if it reports that.
    pub(crate) fn receive_overflow(&self) -> Option<u64> {
        match self {
            Self::System(socket) => socket.udp().receive_overflow(),
            Self::Custom(socket) => socket.receive_overflow(),
        }
    }
}

/// Notifications of writability, requested only while a batch waits.
#[derive(Debug, Default)]
pub(crate) struct Writability(system::Writability);

impl Writability {
    /// Returns `Ready` when another attempt makes sense.
    pub(crate) fn poll(&mut self, socket: &Socket, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match socket {
            Socket::System(socket) => self.0.poll(socket, cx),
            Socket::Custom(socket) => socket.poll_writable(cx),
        }
    }
}
