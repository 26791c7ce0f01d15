//! Listening sockets that come from another process, or go to one, so that a restart refuses no client.

#[cfg(target_os = "linux")]
mod passed;

use std::net::SocketAddr;
#[cfg(unix)]
use std::sync::Arc;

#[cfg(unix)]
use courser_quic::hooks::EndpointHooks as _;

use crate::error::Error;
#[cfg(unix)]
use crate::listen::Listener;

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

    /// Takes the sockets that a service manager has opened for this process, such as systemd with a socket unit
    /// (`LISTEN_FDS`; socket activation). Pass them to [`Server::inherit`](crate::Server::inherit). They stay open.
    ///
    /// TCP and UDP sockets of an address belong together. Each UDP socket of an address is a shard, in the order in
    /// which they are passed. Returns none on later calls, and if the sockets are for another process.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::server::ListeningSockets;
    ///
    /// let sockets = ListeningSockets::from_service_manager()?;
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?).inherit(sockets).bind()?;
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error that names the first socket that is of no use for a server, and what is wrong with it.
    #[cfg(target_os = "linux")]
    pub fn from_service_manager() -> Result<Vec<Self>, Error> {
        passed::receive()
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

/// Leaves the addresses of these listeners to another process, and returns descriptors of their sockets. From then on,
/// their endpoints receive only from the clients that they have already. Without an error, `take_back` undoes it.
#[cfg(unix)]
pub(crate) async fn give_away(
    listeners: &[Arc<Listener>],
) -> std::io::Result<Vec<ListeningSockets>> {
    keep_peers(listeners)?;
    // Datagrams of these clients that the sockets still hold are received here.
    tokio::time::sleep(LAST_DATAGRAMS).await;
    let sockets = listeners.iter().map(|listener| {
        let udp = listener.endpoint().map(|it| it.give_address_away());
        Ok(ListeningSockets {
            address: listener.address,
            tcp: listener.duplicate_tcp()?,
            udp: udp.transpose()?.unwrap_or_default(),
            stay_open: listener.stay_open,
        })
    });
    let sockets: std::io::Result<_> = sockets.collect();
    // Clients may have been accepted until the last call that received.
    tokio::time::sleep(LAST_DATAGRAMS).await;
    let kept = keep_peers(listeners);
    if sockets.is_err() || kept.is_err() {
        take_back(listeners);
    }
    kept.and(sockets)
}

/// Receives from all clients again after [`give_away`].
#[cfg(unix)]
pub(crate) fn take_back(listeners: &[Arc<Listener>]) {
    for endpoint in listeners.iter().filter_map(|it| it.endpoint()) {
        endpoint.take_address_back();
    }
}

#[cfg(unix)]
fn keep_peers(listeners: &[Arc<Listener>]) -> std::io::Result<()> {
    let mut endpoints = listeners.iter().filter_map(|it| it.endpoint());
    endpoints.try_for_each(|it| it.keep_peers())
}

/// Time for which a server reads on at its address before it leaves it to another process.
#[cfg(unix)]
const LAST_DATAGRAMS: std::time::Duration = std::time::Duration::from_millis(20);
