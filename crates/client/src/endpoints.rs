//! The UDP sockets of a client.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use courser_base::{Mutex, ScopedIp};
use courser_quic::{Endpoint, EndpointBuilder};

use super::error::{Error, ErrorKind};

/// The client's UDP sockets: one per address family, shared by all connections.
#[derive(Debug)]
pub(super) struct Endpoints {
    by_family: Mutex<[Option<Endpoint>; 2]>,
    greases_quic_bit: bool,
}

impl Endpoints {
    /// Creates the set without opening a socket.
    pub(super) fn new(greases_quic_bit: bool) -> Self {
        Self {
            by_family: Mutex::default(),
            greases_quic_bit,
        }
    }

    /// Returns the endpoint of the peer's address family, which is opened on first use.
    ///
    /// It sends from the address `local` and through `interface`, if given.
    pub(super) fn of(
        &self,
        local: Option<ScopedIp>,
        interface: Option<&str>,
        peer: SocketAddr,
        is_stopped: bool,
    ) -> Result<Endpoint, Error> {
        let mut endpoints = self.by_family.lock();
        let entry = &mut endpoints[usize::from(peer.is_ipv6())];
        match entry {
            Some(endpoint) if !is_stopped => Ok(endpoint.clone()),
            _ => {
                let builder = Endpoint::builder().grease_quic_bit(self.greases_quic_bit);
                let endpoint = open(builder, local, interface, peer).map_err(|error| {
                    let text = format!("cannot open a UDP socket for {peer}: {error}");
                    let kind = match local.is_some() || interface.is_some() {
                        true => ErrorKind::Bind,
                        false => ErrorKind::ConnectQuic,
                    };
                    Error::new(kind, text)
                })?;
                Ok(entry.insert(endpoint).clone())
            }
        }
    }

    /// Returns all open endpoints.
    pub(super) fn open(&self) -> Vec<Endpoint> {
        let endpoints = self.by_family.lock();
        endpoints.iter().flatten().cloned().collect()
    }
}

fn open(
    builder: EndpointBuilder,
    local: Option<ScopedIp>,
    interface: Option<&str>,
    peer: SocketAddr,
) -> io::Result<Endpoint> {
    let local: SocketAddr = match local {
        Some(local) => local_for(local, peer),
        None if peer.is_ipv4() => (Ipv4Addr::UNSPECIFIED, 0).into(),
        None => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = match interface {
        None => builder.bind(local),
        Some(interface) => {
            let socket = UdpSocket::bind(local)?;
            socket.set_nonblocking(true)?;
            let socket = tokio::net::UdpSocket::from_std(socket)?;
            bind_to_interface(&socket, interface)?;
            builder.socket(socket.into_std()?)
        }
    };
    endpoint.map_err(io::Error::other)
}

/// Returns the local address to bind to. A link-local address without a zone gets the zone of the peer, because
/// it reaches the peer only there.
pub(super) fn local_for(local: ScopedIp, peer: SocketAddr) -> SocketAddr {
    let local = if local.lacks_zone() {
        ScopedIp::in_zone_of(local.ip(), peer)
    } else {
        local
    };
    local.with_port(0)
}

#[cfg(target_os = "linux")]
fn bind_to_interface(socket: &tokio::net::UdpSocket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_to_interface(_: &tokio::net::UdpSocket, _: &str) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
