//! Sockets that a service manager has opened for this process (socket activation).

use std::net::{SocketAddr, TcpListener, UdpSocket};

use courser_udp::{MAX_GROUP, PassedDescriptor};
use socket2::{Protocol, Socket, Type};

use super::ListeningSockets;
use crate::error::Error;

impl ListeningSockets {
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
    pub fn from_service_manager() -> Result<Vec<Self>, Error> {
        receive()
    }
}

/// Takes the sockets, and combines those of each address in the order in which they were passed.
fn receive() -> Result<Vec<ListeningSockets>, Error> {
    let passed = courser_udp::take_passed_descriptors();
    let passed = passed.map_err(|error| Error::passed("sockets of the service manager", error))?;
    let mut all = Vec::new();
    for passed in passed {
        let name = format!("{} (descriptor {})", passed.name, passed.number);
        add(&mut all, passed).map_err(|reason| Error::passed(name, reason))?;
    }
    all.iter().try_for_each(check)?;
    Ok(all)
}

/// Adds a socket to those of its address.
///
/// # Errors
/// Returns the reason for which it cannot be used.
fn add(all: &mut Vec<ListeningSockets>, passed: PassedDescriptor) -> Result<(), String> {
    let socket = Socket::from(passed.descriptor);
    let Ok(kind) = socket.r#type() else {
        return Err("it is not a socket".to_owned());
    };
    let local = socket.local_addr().map_err(|error| error.to_string())?;
    let Some(address) = local.as_socket() else {
        return Err(
            "it has no IP address: ListenStream and ListenDatagram need a port or an address such as [::]:443"
                .to_owned(),
        );
    };
    let protocol = socket.protocol().map_err(|error| error.to_string())?;
    match (kind, protocol) {
        (Type::STREAM, Some(Protocol::TCP | Protocol::MPTCP)) => {
            if !socket.is_listener().map_err(|error| error.to_string())? {
                return Err("it is a connection instead of a listener: set Accept=no".to_owned());
            }
            let sockets = of_address(all, address);
            if sockets.tcp.is_some() {
                return Err(format!("another TCP socket listens on {address} too"));
            }
            sockets.tcp = Some(TcpListener::from(socket));
        }
        (Type::DGRAM, Some(Protocol::UDP)) => {
            if socket.peer_addr().is_ok() {
                return Err("it is connected, so that it receives from one client only".to_owned());
            }
            let sockets = of_address(all, address);
            sockets.udp.push(UdpSocket::from(socket));
        }
        _ => return Err("it is neither a TCP nor a UDP socket".to_owned()),
    }
    Ok(())
}

/// Returns the sockets of an address, to which others are added.
fn of_address(all: &mut Vec<ListeningSockets>, address: SocketAddr) -> &mut ListeningSockets {
    let position = all.iter().position(|it| it.address == address);
    let position = position.unwrap_or_else(|| {
        let mut sockets = ListeningSockets::new(address, None, Vec::new());
        sockets.stay_open = true;
        all.push(sockets);
        all.len() - 1
    });
    &mut all[position]
}

/// Checks that the UDP sockets of an address can share its clients.
fn check(sockets: &ListeningSockets) -> Result<(), Error> {
    let udp = &sockets.udp;
    let refused = |reason: String| Err(Error::passed(format!("UDP {}", sockets.address), reason));
    if udp.len() > usize::from(MAX_GROUP) {
        return refused(format!("{} sockets, at most {MAX_GROUP}", udp.len()));
    }
    let is_shared = |socket: &UdpSocket| socket2::SockRef::from(socket).reuse_port();
    if udp.len() > 1 && !udp.iter().all(|socket| is_shared(socket).unwrap_or(false)) {
        return refused(format!(
            "{} sockets without SO_REUSEPORT, of which one would receive everything: set ReusePort=yes",
            udp.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
