//! Listening sockets that come from another process, or go to one, so that a restart refuses no client.

#[cfg(target_os = "linux")]
mod passed;

use std::net::SocketAddr;

use crate::error::Error;

/// The listening sockets of one address of a server.
///
/// A server [hands them over](crate::ServerHandle::hand_over), and a server in another process
/// [inherits](crate::Server::inherit) them. Service managers pass them too
/// ([`from_service_manager`](Self::from_service_manager)).
#[derive(Debug)]
#[non_exhaustive]
pub struct ListeningSockets {
    /// The address, with the port that the system chose.
    pub address: SocketAddr,
    /// The socket for HTTP/2 and HTTP/1.1, or for plain HTTP.
    pub tcp: Option<std::net::TcpListener>,
    /// The sockets for HTTP/3, one for each shard in their order.
    pub udp: Vec<std::net::UdpSocket>,
    /// True if another process keeps the sockets open after the end of this one, such as a service manager.
    /// Clients that arrive while the server drains then wait for the next process, instead of being refused.
    pub stay_open: bool,
}

impl ListeningSockets {
    /// Combines the sockets of an address.
    pub fn new(
        address: SocketAddr,
        tcp: Option<std::net::TcpListener>,
        udp: Vec<std::net::UdpSocket>,
    ) -> Self {
        Self {
            address,
            tcp,
            udp,
            stay_open: false,
        }
    }

    /// Returns true if a server that should listen on `address` can use these sockets.
    pub fn are_for(&self, address: SocketAddr) -> bool {
        let is_port = [0, self.address.port()].contains(&address.port());
        is_port && courser_base::is_same_host(self.address, address)
    }

    /// Returns an error if the server does not use one of the sockets: clients that connect there would wait.
    pub(crate) fn check(&self, with_quic: bool, with_tcp: bool) -> Result<(), Error> {
        let refused = |transport: &str, protocols: &str| {
            let socket = format!("{transport} {}", self.address);
            let reason = format!("the server does not serve {protocols} at this address");
            Err(Error::passed(socket, reason))
        };
        if self.tcp.is_some() && !with_tcp {
            return refused("TCP", "TCP clients");
        }
        if !self.udp.is_empty() && !with_quic {
            return refused("UDP", "HTTP/3");
        }
        Ok(())
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

/// Returns an error if sockets are left that belong to no address of the server.
pub(crate) fn check_empty(inherited: &[ListeningSockets]) -> Result<(), Error> {
    let Some(left) = inherited.first() else {
        return Ok(());
    };
    let transport = if left.udp.is_empty() { "TCP" } else { "UDP" };
    let socket = format!("{transport} {}", left.address);
    Err(Error::passed(
        socket,
        "the server does not listen on that address: add it there, or remove the socket",
    ))
}
