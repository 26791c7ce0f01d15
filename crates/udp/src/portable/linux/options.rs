//! The options of our sockets. All are best effort: a missing one shows in the capabilities.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use courser_base::{Ecn, ScopedIp};
use libc::c_int;
use socket2::{Domain, Protocol, Type};

use super::sockopt::{self, SocketOption};
use crate::capabilities::BUFFER_WANTED;

/// The options that the kernel accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supported {
    pub(super) gro: bool,
    pub(super) ecn: bool,
    pub(super) pktinfo: bool,
}

/// Sets all options of a socket bound to `local`.
pub(super) fn set_all(fd: BorrowedFd<'_>, local: SocketAddr) -> Supported {
    let set = |option, value| sockopt::set(fd, option, value).is_ok();
    let is_ipv6 = local.is_ipv6();
    // Datagrams are never fragmented, and the kernel does not adjust our MTU search to ICMP
    // messages (RFC 9000 §14). An IPv6 socket carries IPv4 as well.
    set(IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
    let mut ecn = set(IP_RECVTOS, 1);
    if is_ipv6 {
        set(IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE);
        set(IPV6_DONTFRAG, 1);
        ecn = set(IPV6_RECVTCLASS, 1);
    }
    // Queues ICMP messages together with the beginning of the datagram that caused them.
    set(IP_RECVERR, 1);
    if is_ipv6 {
        set(IPV6_RECVERR, 1);
    }
    // Wakes tasks that poll for priority data when a message is queued.
    set(SELECT_ERR_QUEUE, 1);
    enlarge_buffers(fd, BUFFER_WANTED);
    let pktinfo = local.ip().is_unspecified() && set(pktinfo_option(is_ipv6), 1);
    Supported {
        gro: set(UDP_GRO, 1),
        ecn,
        pktinfo,
    }
}

/// Returns the largest IP packet that the interface towards `peer` sends unfragmented. Uses a
/// separate socket, because only connected sockets have this value.
pub(super) fn interface_mtu(local: Option<IpAddr>, peer: SocketAddr) -> io::Result<u32> {
    let socket = socket2::Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(local) = local {
        let local = ScopedIp::in_zone_of(local, peer);
        socket.bind(&local.with_port(0).into())?;
    }
    // Sends nothing: the kernel only looks up a route.
    socket.connect(&peer.into())?;
    let option = if peer.is_ipv4() { IP_MTU } else { IPV6_MTU };
    let mtu = sockopt::get(socket.as_fd(), option)?;
    u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Stops the reports of the local address of each datagram.
pub(super) fn stop_pktinfo(fd: BorrowedFd<'_>, is_ipv6: bool) {
    let _ = sockopt::set(fd, pktinfo_option(is_ipv6), 0);
}

/// Sets the ECN mark of all datagrams that a connected socket sends.
pub(super) fn set_mark(fd: BorrowedFd<'_>, mark: Ecn, is_ipv4: bool) -> io::Result<()> {
    let option = if is_ipv4 { IP_TOS } else { IPV6_TCLASS };
    sockopt::set(fd, option, c_int::from(mark.to_bits()))
}

/// Returns the option that reports local addresses. On an IPv6 socket the IPv6 message covers IPv4
/// datagrams too.
fn pktinfo_option(is_ipv6: bool) -> SocketOption {
    if is_ipv6 {
        IPV6_RECVPKTINFO
    } else {
        IP_PKTINFO
    }
}

/// Requests buffers of at least `bytes` bytes each.
pub(super) fn enlarge_buffers(fd: BorrowedFd<'_>, bytes: usize) {
    enlarge(fd, bytes, (libc::SO_RCVBUF, libc::SO_RCVBUFFORCE));
    enlarge(fd, bytes, (libc::SO_SNDBUF, libc::SO_SNDBUFFORCE));
}

/// Reduces the buffers to at most `bytes` bytes each.
pub(super) fn limit_buffers(fd: BorrowedFd<'_>, bytes: usize) {
    let limit = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    for which in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
        if buffer(fd, which) > bytes {
            let _ = sockopt::set(fd, (libc::SOL_SOCKET, which), limit);
        }
    }
}

/// Returns the sizes of the receive buffer and the send buffer.
pub(super) fn buffers(fd: BorrowedFd<'_>) -> (usize, usize) {
    (buffer(fd, libc::SO_RCVBUF), buffer(fd, libc::SO_SNDBUF))
}

/// Returns the size of a buffer in the unit of the request. The kernel doubles the requested number
/// to cover its bookkeeping, and reports the double.
fn buffer(fd: BorrowedFd<'_>, which: c_int) -> usize {
    let reported = sockopt::get(fd, (libc::SOL_SOCKET, which)).unwrap_or(0);
    usize::try_from(reported).unwrap_or(0) / 2
}

fn enlarge(fd: BorrowedFd<'_>, bytes: usize, (plain, forced): (c_int, c_int)) {
    let requested = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    if buffer(fd, plain) < bytes {
        let _ = sockopt::set(fd, (libc::SOL_SOCKET, plain), requested);
    }
    if buffer(fd, plain) < bytes {
        // Exceeds the system's limit, for a process with CAP_NET_ADMIN.
        let _ = sockopt::set(fd, (libc::SOL_SOCKET, forced), requested);
    }
}

const UDP_GRO: SocketOption = (libc::SOL_UDP, libc::UDP_GRO);
const IP_TOS: SocketOption = (libc::SOL_IP, libc::IP_TOS);
const IP_RECVTOS: SocketOption = (libc::SOL_IP, libc::IP_RECVTOS);
const IP_RECVERR: SocketOption = (libc::SOL_IP, libc::IP_RECVERR);
const IP_PKTINFO: SocketOption = (libc::SOL_IP, libc::IP_PKTINFO);
const IP_MTU: SocketOption = (libc::SOL_IP, libc::IP_MTU);
const IPV6_MTU: SocketOption = (libc::SOL_IPV6, libc::IPV6_MTU);
const IP_MTU_DISCOVER: SocketOption = (libc::SOL_IP, libc::IP_MTU_DISCOVER);
const IPV6_TCLASS: SocketOption = (libc::SOL_IPV6, libc::IPV6_TCLASS);
const IPV6_RECVERR: SocketOption = (libc::SOL_IPV6, libc::IPV6_RECVERR);
const IPV6_RECVTCLASS: SocketOption = (libc::SOL_IPV6, libc::IPV6_RECVTCLASS);
const IPV6_RECVPKTINFO: SocketOption = (libc::SOL_IPV6, libc::IPV6_RECVPKTINFO);
const IPV6_MTU_DISCOVER: SocketOption = (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER);
const IPV6_DONTFRAG: SocketOption = (libc::SOL_IPV6, libc::IPV6_DONTFRAG);
const SELECT_ERR_QUEUE: SocketOption = (libc::SOL_SOCKET, libc::SO_SELECT_ERR_QUEUE);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    /// RFC 9000 §14: DF is set on both IP versions, whatever the kernel knows of the path.
    #[test]
    fn datagrams_are_never_fragmented() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let local: SocketAddr = local.parse().expect("the address is valid");
            let Ok(socket) = UdpSocket::bind(local) else {
                assert!(local.is_ipv6(), "no IPv4");
                continue;
            };
            let read = |option| sockopt::get(socket.as_fd(), option).expect("the option is known");
            set_all(socket.as_fd(), local);
            assert_eq!(read(IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE, "{local}");
            if local.is_ipv6() {
                assert_eq!(read(IPV6_MTU_DISCOVER), libc::IPV6_PMTUDISC_PROBE);
                assert_eq!(read(IPV6_DONTFRAG), 1);
            }
        }
    }
}
