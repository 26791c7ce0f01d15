//! The listening TCP sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Opens the listening socket for an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // As for UDP, `[::]` accepts IPv4 clients too, independently of the system's default.
        socket.set_only_v6(false)?;
    }
    // A restart need not wait for old connections to expire. On Windows this option would share the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Adopts a socket that listens already.
pub(crate) fn inherit(socket: std::net::TcpListener) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// Number of connections that the system may queue. Its own limit may be lower.
const BACKLOG: i32 = 4096;
