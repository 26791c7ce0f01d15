//! The number of datagrams that the kernel splits from one batch.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use super::cmsg::ControlBuffer;
use super::sendmsg::sendmsg;
use super::sockopt;

/// Returns the largest number of datagrams in one send call, 1 without segmentation offload. Probes
/// once per process.
pub(super) fn segment_limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        probe(Ipv4Addr::LOCALHOST.into())
            .or_else(|_| probe(Ipv6Addr::LOCALHOST.into()))
            .unwrap_or_else(|_| if is_known() { SMALLEST_LIMIT } else { 1 })
    })
}

/// Finds the limit by sending to the same socket over loopback, because it is a constant in the
/// kernel's source that no interface reports.
fn probe(ip: std::net::IpAddr) -> io::Result<usize> {
    let socket = UdpSocket::bind(SocketAddr::from((ip, 0)))?;
    socket.set_nonblocking(true)?;
    socket.connect(socket.local_addr()?)?;
    // Distinguishes a loopback interface that is down from a batch that is refused.
    socket.send(&[0; SEGMENT])?;
    let takes = |segments: usize| {
        let mut control = ControlBuffer::new();
        control.push_segment_size(Some(SEGMENT));
        let contents = [0; SEGMENT * LARGEST_LIMIT];
        let sent = sendmsg(
            socket.as_fd(),
            None,
            control.filled(),
            &contents[..segments * SEGMENT],
        );
        sent.is_ok()
    };
    Ok([LARGEST_LIMIT, SMALLEST_LIMIT]
        .into_iter()
        .find(|limit| takes(*limit))
        .unwrap_or(1))
}

/// Returns true if the kernel supports the option at all.
fn is_known() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
        .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
        .and_then(|socket| sockopt::get(socket.as_fd(), (libc::SOL_UDP, libc::UDP_SEGMENT)))
        .is_ok()
}

/// `UDP_MAX_SEGMENTS` of Linux 6.9 and later.
const LARGEST_LIMIT: usize = 128;
/// `UDP_MAX_SEGMENTS` of older versions.
const SMALLEST_LIMIT: usize = 64;
const SEGMENT: usize = 8;

#[cfg(test)]
mod tests;
