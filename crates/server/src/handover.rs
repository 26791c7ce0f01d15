//! Listening sockets on their way from one process to the next, so that a restart refuses no client.

use std::net::SocketAddr;

/// The listening sockets of one address of a server.
///
/// A server [hands them over](crate::ServerHandle::hand_over), and a server in another process
/// [inherits](crate::Server::inherit) them.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListeningSockets {
    /// The address, with the port that the system chose.
    pub address: SocketAddr,
    /// The socket for HTTP/2 and HTTP/1.1.
    pub tcp: Option<std::net::TcpListener>,
    /// The sockets for HTTP/3, one for each shard in their order.
    pub udp: Vec<std::net::UdpSocket>,
}

impl ListeningSockets {
    /// Combines the sockets of an address.
    pub fn new(
        address: SocketAddr,
        tcp: Option<std::net::TcpListener>,
        udp: Vec<std::net::UdpSocket>,
    ) -> Self {
        Self { address, tcp, udp }
    }

    /// Returns true if a server that should listen on `address` can use these sockets.
    pub(crate) fn are_for(&self, address: SocketAddr) -> bool {
        let is_port = [0, self.address.port()].contains(&address.port());
        is_port && courser_base::is_same_host(self.address, address)
    }
}

/// Takes the sockets for this address out of the list.
pub(crate) fn take(
    inherited: &mut Vec<ListeningSockets>,
    address: SocketAddr,
) -> Option<ListeningSockets> {
    let position = inherited.iter().position(|it| it.are_for(address))?;
    Some(inherited.remove(position))
}
