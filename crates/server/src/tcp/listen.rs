//! The sockets of TCP.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Opens the socket for an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // As for UDP, `[::]` accepts IPv4 too, whatever the system's default is.
        socket.set_only_v6(false)?;
    }
    // A restart need not wait for old connections. On Windows the option would share the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Number of connections that the system may queue; its own limit may be lower.
const BACKLOG: i32 = 4096;
