//! The listening TCP sockets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
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
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    adopt(socket)
}

/// Silence after which TCP probes whether a client still exists, and the interval of the probes, as in Go.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Adopts a socket that listens already.
pub(crate) fn inherit(socket: std::net::TcpListener) -> io::Result<TcpListener> {
    adopt(socket.into())
}

/// Makes a listening socket one of tokio.
fn adopt(socket: Socket) -> io::Result<TcpListener> {
    // Accepted sockets inherit it, so that it costs nothing per connection. A client that has vanished from a tunnel
    // would hold its socket for ever. Some systems lack the times; then theirs apply.
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE);
    if socket.set_tcp_keepalive(&keepalive).is_err() {
        let _ = socket.set_keepalive(true);
    }
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// Number of connections that the system may queue. Its own limit may be lower.
const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use socket2::SockRef;

    use super::*;

    #[tokio::test]
    async fn accepted_sockets_detect_clients_that_vanish() {
        let listener = listen(([127, 0, 0, 1], 0).into()).expect("a port");
        let address = listener.local_addr().expect("bound");
        let _client = std::net::TcpStream::connect(address).expect("a connection");
        let (accepted, _) = listener.accept().await.expect("a connection");
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().expect("an option"));
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_keepalive_time().expect("an option"), KEEPALIVE);
    }
}
