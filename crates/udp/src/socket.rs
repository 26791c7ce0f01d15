//! The socket that the rest of courser uses.

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, RawSocket};

use socket2::{Domain, Protocol, Type};

use crate::batch::{Received, Transmit};
use crate::capabilities::Capabilities;
use crate::counters::{Counters, Tally};
use crate::portable::Socket;
use crate::too_big::PacketTooBig;

/// A non-blocking UDP socket that sends and receives datagrams in batches.
///
/// All methods take `&self`; several threads may use one socket.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    tally: Tally,
}

impl UdpSocket {
    /// Binds a socket. `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// What the system says: the address is taken, not ours, or needs a privilege.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        if address.is_ipv6() && address.ip().is_unspecified() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        Self::from_std(socket.into())
    }

    /// Takes over a bound socket, connected or not.
    ///
    /// Makes it non-blocking and sets its options; the type-of-service byte of what it sends is
    /// ours from now on.
    ///
    /// # Errors
    /// If it cannot be made non-blocking or is not bound. An option that the system lacks is no
    /// error but shows in [`UdpSocket::capabilities`].
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: Socket::new(socket)?,
            tally: Tally::default(),
        })
    }

    /// Asks for socket buffers of at least so many bytes each way, where the usual ones (7 MiB) are
    /// too small; what was granted shows in [`UdpSocket::capabilities`].
    pub fn enlarge_buffers(&self, bytes: usize) {
        self.socket.enlarge_buffers(bytes);
    }

    /// Fixes the peer, which makes each send cheaper and lets the system report that nobody
    /// listens there. For clients.
    ///
    /// Datagrams of others are no longer received, except what waits already.
    ///
    /// # Errors
    /// `AlreadyExists` if there is a peer already: a client that moves on takes a new socket.
    /// Otherwise what the system says, such as no route.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer)
    }

    /// The address we are bound to, with the port that the system chose.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The peer given to [`UdpSocket::connect`].
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket.peer_addr()
    }

    /// Sends a whole batch.
    ///
    /// Usually one system call; more when the batch exceeds the kernel's limits or offload is
    /// missing or broken. A caller that must not repeat datagrams uses
    /// [`UdpSocket::try_send_some`], since an error here may come after some have left.
    ///
    /// On a connected socket, batches with different marks belong to one thread at a time: the
    /// mark is an option of the socket there.
    ///
    /// # Errors
    /// See [`classify`](crate::classify). After `WouldBlock`, try again when the socket is
    /// writable; after others that [`is_transient`](crate::is_transient), the batch counts as
    /// lost on the way.
    pub fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut rest = *transmit;
        loop {
            let taken = self.try_send_some(&rest)?;
            rest.contents = &rest.contents[taken..];
            if rest.contents.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends as much of a batch as the system takes now and returns how many bytes that is.
    ///
    /// Always whole datagrams: a remainder starts at the returned offset with the same
    /// `segment_size`. The reason for stopping early is told by the next call.
    ///
    /// # Errors
    /// As [`UdpSocket::try_send`], but only if no datagram was taken.
    pub fn try_send_some(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.socket.send(transmit, &self.tally)
    }

    /// Receives one batch into `buffer`, which should have
    /// [`RECEIVE_BUFFER_LEN`](crate::RECEIVE_BUFFER_LEN) bytes; what does not fit is lost.
    ///
    /// Call until `WouldBlock`, or until a budget is spent. Empty datagrams are batches too and
    /// count against the budget.
    ///
    /// # Errors
    /// `WouldBlock` when nothing waits. An error that [`is_transient`](crate::is_transient)
    /// tells of an earlier send; try again at once.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let received = self.socket.receive(buffer, &self.tally)?;
        self.tally.on_received(received.count(), received.len);
        Ok(received)
    }

    /// What a router said of a datagram of ours that was too large; each message once.
    ///
    /// Messages are noticed by calls that send or receive, and at most 64 wait. On Linux only, so
    /// far. Nothing in them is proven, see [`PacketTooBig`].
    pub fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        self.socket.take_packet_too_big()
    }

    /// True if [`UdpSocket::take_packet_too_big`] has something. Costs next to nothing.
    pub fn has_packet_too_big(&self) -> bool {
        self.socket.has_news()
    }

    /// What the socket can do, as of now. Allocates; not for the path of every packet.
    pub fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.socket.capabilities();
        let found = capabilities.find_warnings();
        capabilities.warnings.extend(found);
        capabilities
    }

    /// Most datagrams that one send call takes; falls to 1 if offload turns out to be broken.
    ///
    /// A batch is also held to [`MAX_BATCH_LEN`](crate::MAX_BATCH_LEN) bytes.
    pub fn gso_segments(&self) -> usize {
        self.socket.gso_segments()
    }

    /// What the socket has done so far.
    pub fn counters(&self) -> Counters {
        self.tally.snapshot()
    }

    /// The largest IP packet that the interface towards `peer` takes, headers included, in bytes.
    ///
    /// Larger datagrams are refused with [`ErrorClass::TooLarge`](crate::ErrorClass::TooLarge);
    /// the way beyond the interface may take less. `None` where the platform does not tell or
    /// there is no route. Costs some ten microseconds of system calls; not for every packet.
    pub fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.socket.interface_mtu(peer)
    }

    /// How many buffers of received datagrams the kernel has dropped because nobody took them in
    /// time. `None` where the platform does not tell. Costs a system call.
    pub fn receive_overflow(&self) -> Option<u64> {
        self.socket.receive_overflow()
    }
}

#[cfg(unix)]
impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.io().as_fd()
    }
}

#[cfg(unix)]
impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.io().as_raw_fd()
    }
}

#[cfg(windows)]
impl AsSocket for UdpSocket {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.socket.io().as_socket()
    }
}

#[cfg(windows)]
impl AsRawSocket for UdpSocket {
    fn as_raw_socket(&self) -> RawSocket {
        self.socket.io().as_raw_socket()
    }
}

#[cfg(test)]
mod tests;
