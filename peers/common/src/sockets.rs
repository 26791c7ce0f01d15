//! Sockets with the shared settings.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::settings;

/// A bound UDP socket with large buffers.
///
/// # Errors
/// When the address is taken or not of this machine.
pub fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(settings::SOCKET_BUFFER)?;
    socket.set_send_buffer_size(settings::SOCKET_BUFFER)?;
    // Above the system's limit, for those who may.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &settings::SOCKET_BUFFER);
    let _ = setsockopt(&socket, sockopt::SndBufForce, &settings::SOCKET_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Gives a TCP socket CUBIC and takes Nagle's delay from it; connections inherit both from
/// their listener.
///
/// # Errors
/// When the kernel has no CUBIC or the socket is closed.
pub fn tune_tcp<'a>(socket: impl Into<SockRef<'a>>) -> io::Result<()> {
    let socket = socket.into();
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_congestion(settings::TCP_CONGESTION)
}
