//! The UDP socket that the other crates use.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, RawSocket};

use socket2::{Domain, Protocol, SockRef, Type};

use courser_base::FourTuple;

use crate::batch::{Received, Transmit};
use crate::capabilities::Capabilities;
use crate::counters::{AtomicCounters, Counters};
use crate::portable::{Socket, has_only_connected, share_port, unshare_port};
use crate::too_big::PacketTooBig;
use crate::unreachable::UnreachableReport;

/// A non-blocking UDP socket that sends and receives datagrams in batches.
///
/// All methods take `&self`; several threads may use one socket.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    counters: AtomicCounters,
    /// The address to which this crate bound the socket. `None` for a socket that the caller supplied,
    /// which may have options that only its owner knows.
    own: Option<Binding>,
}

/// The address to which this crate bound a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) address: SocketAddr,
    /// True if other sockets of a [`SocketGroup`](crate::SocketGroup) have the same address.
    pub(crate) is_shared: bool,
}

impl UdpSocket {
    /// Binds a socket. `[::]` receives IPv4 as well.
    ///
    /// Sockets that are [connected to a peer](Self::open_for_path) may remain at the address.
    ///
    /// # Errors
    /// Returns the error of the system, for example if the address is in use, not local, or
    /// requires a privilege.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let (socket, _) = bind_alone(address)?;
        Self::own(socket, address, false)
    }

    /// Wraps a socket that this crate has bound to `address`, or to that address with a port that
    /// the system chose.
    pub(crate) fn own(
        socket: socket2::Socket,
        mut address: SocketAddr,
        is_shared: bool,
    ) -> io::Result<Self> {
        let mut this = Self::from_std(socket.into())?;
        // Zones and mapped addresses stay as the caller wrote them.
        address.set_port(this.local_addr()?.port());
        this.own = Some(Binding { address, is_shared });
        Ok(this)
    }

    /// Opens another socket on the address of this one, which has stopped working. Drop this one once the
    /// other has replaced it.
    ///
    /// In a [`SocketGroup`](crate::SocketGroup) the new socket has the number of this one from then
    /// on.
    ///
    /// # Errors
    /// Returns `Unsupported` for a socket that was passed to [`UdpSocket::from_std`], because its owner may
    /// have set options that a new one would lack. Otherwise returns the error of the system, for example
    /// if the address does not belong to this machine any more.
    pub fn reopen(&self) -> io::Result<Self> {
        let Some(Binding { address, is_shared }) = self.own else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the socket was supplied by the application and cannot be opened again",
            ));
        };
        let open = |shares: bool| -> io::Result<socket2::Socket> {
            let socket = unbound(address)?;
            if shares {
                share_port(&socket)?;
            }
            socket.bind(&address.into())?;
            Ok(socket)
        };
        let socket = match open(is_shared) {
            // The system may not allow two sockets on one address.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !is_shared => {
                self.open_beside(open).map_err(|_| error)?
            }
            result => result?,
        };
        Self::own(socket, address, is_shared)
    }

    /// Wraps a socket that another process of the same program has bound to `address` and handed over. With
    /// `is_shared`, other sockets of a [`SocketGroup`](crate::SocketGroup) have the same address.
    ///
    /// # Errors
    /// Like [`from_std`](Self::from_std).
    pub fn inherit(
        socket: std::net::UdpSocket,
        address: SocketAddr,
        is_shared: bool,
    ) -> io::Result<Self> {
        Self::own(socket.into(), address, is_shared)
    }

    /// Returns a second descriptor of the socket, to hand it over to another process.
    ///
    /// # Errors
    /// Returns the error of the system, such as the limit on descriptors.
    #[cfg(unix)]
    pub fn duplicate(&self) -> io::Result<std::net::UdpSocket> {
        Ok(self.as_fd().try_clone_to_owned()?.into())
    }

    /// Opens a socket on the address of this one for a single path. From then on the system delivers the datagrams
    /// of this peer to the local address there, and all others here.
    ///
    /// Without a local address the system chooses one, which may be another one if this socket is bound to all
    /// addresses.
    ///
    /// # Errors
    /// Returns `Unsupported` for a socket that was passed to [`UdpSocket::from_std`], and on systems where
    /// sockets cannot share an address. Otherwise returns the error of the system.
    pub fn open_for_path(&self, path: FourTuple) -> io::Result<Self> {
        let Some(Binding { address, is_shared }) = self.own else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the socket was supplied by the application, and no other can share its address",
            ));
        };
        let this = self.socket.io();
        let open = || -> io::Result<socket2::Socket> {
            let socket = unbound(address)?;
            share_port(&socket)?;
            // A socket that a service manager has opened belongs to another user, and the kernel lets only sockets of
            // the same user share a port. systemd sets this option, with which all users can. It also lets the next
            // process bind the address.
            socket.set_reuse_address(true)?;
            socket.bind(&receiving_at(address, path.local).into())?;
            // Sockets of the next process would join the group of this one, and their numbers would not begin at 0.
            unshare_port(&socket)?;
            socket.connect(&in_family_of(address, path.peer).into())?;
            Ok(socket)
        };
        share_port(this)?;
        let socket = open();
        if !is_shared {
            unshare_port(this)?;
        }
        let socket = Self::from_std(socket?.into())?;
        // Datagrams of other peers may have arrived before it was connected. They count as lost.
        let mut buffer = vec![0; STRAY_BUFFER];
        for _ in 0..MAX_STRAYS {
            match socket.try_receive(&mut buffer) {
                Ok(received) if received.peer == path.peer => break,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(socket)
    }

    /// Leaves the address to other processes: nothing is received any more, except at the sockets of
    /// [single peers](Self::open_for_path), and [`bind`](Self::bind) succeeds there. Datagrams are still sent.
    ///
    /// # Errors
    /// Like [`open_for_path`](Self::open_for_path).
    pub fn leave_address(&self) -> io::Result<()> {
        let address = self.own.map(|own| own.address);
        let address = address.ok_or(io::ErrorKind::Unsupported)?;
        let this = self.socket.io();
        unshare_port(this)?;
        let this = SockRef::from(this);
        this.set_reuse_address(true)?;
        // A socket that is connected to itself receives what it sends to itself, which is nothing. Closed, it could
        // not send for the others, which can have one source address only.
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
            ip => ip,
        };
        let mut itself = address;
        itself.set_ip(ip);
        this.connect(&itself.into())
    }

    /// Binds a second socket to the address of this one. No other socket can share it.
    fn open_beside(
        &self,
        open: impl FnOnce(bool) -> io::Result<socket2::Socket>,
    ) -> io::Result<socket2::Socket> {
        let this = self.socket.io();
        share_port(this)?;
        let socket = open(true);
        let _ = unshare_port(this);
        if let Ok(socket) = &socket {
            unshare_port(socket)?;
        }
        socket
    }

    /// Wraps a bound socket, connected or not.
    ///
    /// Makes it non-blocking and sets its options. From now on this crate controls the
    /// type-of-service byte of outgoing datagrams.
    ///
    /// # Errors
    /// Fails if the socket cannot be made non-blocking or is not bound. An option that the system
    /// lacks is not an error; see [`UdpSocket::capabilities`].
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: Socket::new(socket)?,
            counters: AtomicCounters::default(),
            own: None,
        })
    }

    /// Requests socket buffers of at least `bytes` bytes each, if the usual size (7 MiB) is too
    /// small. [`UdpSocket::capabilities`] shows the sizes that were granted.
    pub fn enlarge_buffers(&self, bytes: usize) {
        self.socket.enlarge_buffers(bytes);
    }

    /// Reduces the socket buffers to at most `bytes` bytes each, for programs with many sockets: what waits in them is
    /// memory of the system.
    pub fn limit_buffers(&self, bytes: usize) {
        self.socket.limit_buffers(bytes);
    }

    /// Connects the socket to a peer, for clients. Each send then costs less, and the system
    /// reports if no socket is open on the peer's port.
    ///
    /// Datagrams of other peers are no longer received, except those already queued.
    ///
    /// # Errors
    /// Returns `AlreadyExists` if there is a peer already: a client that migrates uses a new
    /// socket. Otherwise returns the error of the system, such as a missing route.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer)
    }

    /// Returns the bound address, with the port that the system chose.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the peer passed to [`UdpSocket::connect`].
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket.peer_addr()
    }

    /// Sends a whole batch.
    ///
    /// Usually this is one system call. It takes more if the batch exceeds the kernel's limits, or
    /// if offload is missing or broken. An error may come after some datagrams were sent; callers
    /// that must not repeat datagrams use [`UdpSocket::try_send_some`].
    ///
    /// On a connected socket, only one thread at a time may send batches with different marks,
    /// because the mark is an option of the socket.
    ///
    /// # Errors
    /// See [`classify`](crate::classify). After `WouldBlock`, try again when the socket is
    /// writable. After other errors that are transient ([`is_transient`](crate::is_transient)), the
    /// batch counts as lost on the path.
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

    /// Sends as much of a batch as the system accepts now and returns the number of bytes sent.
    ///
    /// The result always covers whole datagrams: the rest starts at the returned offset and has the
    /// same `segment_size`. The next call reports the reason for stopping early.
    ///
    /// # Errors
    /// Returns the same errors as [`UdpSocket::try_send`], but only if no datagram was accepted.
    pub fn try_send_some(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.socket
            .send(transmit, &self.counters)
            .inspect_err(|error| self.counters.on_send_error(error))
    }

    /// Receives one batch into `buffer`, which should have
    /// [`RECEIVE_BUFFER_LEN`](crate::RECEIVE_BUFFER_LEN) bytes; data that does not fit is lost.
    ///
    /// Call this until `WouldBlock`, or until a budget is spent. Empty datagrams are batches too
    /// and count against the budget.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no datagram is waiting. A transient error
    /// ([`is_transient`](crate::is_transient)) concerns an earlier send; try again at once.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let received = self
            .socket
            .receive(buffer, &self.counters)
            .inspect_err(|error| self.counters.on_receive_error(error))?;
        self.counters.on_received(received.count(), received.len);
        Ok(received)
    }

    /// Takes the next ICMP message about a datagram that was too large. Each message is returned
    /// once.
    ///
    /// Calls that send or receive read the messages, and at most 64 are kept. So far, only Linux
    /// supports them. They are not authenticated, see [`PacketTooBig`].
    pub fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        self.socket.take_packet_too_big()
    }

    /// Takes the next ICMP message about a datagram that did not reach its destination; otherwise like
    /// [`UdpSocket::take_packet_too_big`].
    pub fn take_unreachable(&self) -> Option<UnreachableReport> {
        self.socket.take_unreachable()
    }

    /// Returns true if [`UdpSocket::take_packet_too_big`] or [`UdpSocket::take_unreachable`] has a message.
    /// Costs next to nothing.
    pub fn has_icmp_messages(&self) -> bool {
        self.socket.has_icmp_messages()
    }

    /// Returns the current capabilities of the socket. Allocates; do not call it for every packet.
    pub fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.socket.capabilities();
        let found = capabilities.find_warnings();
        capabilities.warnings.extend(found);
        capabilities
    }

    /// Returns the largest number of datagrams in one send call. Falls to 1 if offload proves to be
    /// broken.
    ///
    /// A batch is also limited to [`MAX_BATCH_LEN`](crate::MAX_BATCH_LEN) bytes.
    pub fn gso_segments(&self) -> usize {
        self.socket.gso_segments()
    }

    /// Returns false once the system has refused ECN marks. Datagrams then leave without them.
    pub fn can_mark(&self) -> bool {
        self.socket.can_mark()
    }

    /// Returns the counters of the socket.
    pub fn counters(&self) -> Counters {
        self.counters.snapshot()
    }

    /// Returns the largest IP packet that the interface towards `peer` sends, headers included, in
    /// bytes.
    ///
    /// Larger datagrams fail with [`ErrorClass::TooLarge`](crate::ErrorClass::TooLarge). The path
    /// beyond the interface may support less. Returns `None` if the platform does not report the
    /// MTU or there is no route. Costs some ten microseconds of system calls; do not call it for
    /// every packet.
    pub fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.socket.interface_mtu(peer)
    }

    /// Returns the number of buffers of received datagrams that the kernel dropped because they
    /// were not read in time, or `None` if the platform does not report it. Costs a system call.
    pub fn receive_overflow(&self) -> Option<u64> {
        self.socket.receive_overflow()
    }
}

/// Binds a socket that no other shares the address with, except those of single peers, which an earlier process may
/// have left behind. Returns true if there are such sockets.
pub(crate) fn bind_alone(address: SocketAddr) -> io::Result<(socket2::Socket, bool)> {
    let socket = unbound(address)?;
    match socket.bind(&address.into()) {
        Ok(()) => Ok((socket, false)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if !has_only_connected(address.port()) {
                return Err(error);
            }
            bind_beside_connected(&socket, address)?;
            Ok((socket, true))
        }
        Err(error) => Err(error),
    }
}

/// Binds a socket to an address where only sockets of single peers remain.
pub(crate) fn bind_beside_connected(
    socket: &socket2::Socket,
    address: SocketAddr,
) -> io::Result<()> {
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // From now on the address is in use for others.
    socket.set_reuse_address(false)
}

/// Returns a socket that may be bound to `address`.
pub(crate) fn unbound(address: SocketAddr) -> io::Result<socket2::Socket> {
    let domain = Domain::for_address(address);
    let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

/// Binds a socket of the system that sends and receives through one network interface only, whatever its routes
/// prefer. Linux and Android.
///
/// # Errors
/// Returns an error if there is no such interface, and `Unsupported` on other systems.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn bind_to_interface(address: SocketAddr, name: &str) -> io::Result<std::net::UdpSocket> {
    let socket = unbound(address)?;
    socket.bind_device(Some(name.as_bytes()))?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Returns `Unsupported`: only Linux and Android bind sockets to interfaces by name.
///
/// # Errors
/// Always.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn bind_to_interface(_: SocketAddr, _: &str) -> io::Result<std::net::UdpSocket> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "sockets are bound to interfaces on Linux only",
    ))
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

/// Returns `peer` as a socket with this address names it: IPv4 clients of `[::]` have mapped addresses.
fn in_family_of(address: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match peer.ip() {
        IpAddr::V4(ip) if address.is_ipv6() => (ip.to_ipv6_mapped(), peer.port()).into(),
        _ => peer,
    }
}

/// Returns the address at which datagrams to `local` arrive, among those of a socket that is bound to `address`.
fn receiving_at(address: SocketAddr, local: Option<IpAddr>) -> SocketAddr {
    match local {
        // A link-local address needs a zone, which the address of the peer has too.
        Some(IpAddr::V6(ip)) if ip.is_unicast_link_local() => address,
        Some(ip) if address.ip().is_unspecified() => {
            in_family_of(address, (ip, address.port()).into())
        }
        _ => address,
    }
}

/// Size of the buffer for datagrams that a socket receives before it is connected.
const STRAY_BUFFER: usize = 64 * 1024;

/// Datagrams that are dropped of those.
const MAX_STRAYS: usize = 64;

#[cfg(test)]
mod tests;
