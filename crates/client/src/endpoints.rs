//! The UDP sockets of a client.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use courser_base::Mutex;
use courser_quic::{Endpoint, EndpointConfig, runtime};

use super::error::{Error, ErrorKind};

/// The client's UDP sockets: one per address family, for all its connections.
#[derive(Debug, Default)]
pub(super) struct Endpoints(Mutex<[Option<Endpoint>; 2]>);

impl Endpoints {
    /// The one of a family, made when it is first needed.
    ///
    /// It sends from the address `local` and through `interface`, if they are named.
    pub(super) fn of(
        &self,
        local: Option<IpAddr>,
        interface: Option<&str>,
        peer: SocketAddr,
        is_stopped: bool,
    ) -> Result<Endpoint, Error> {
        let mut endpoints = self.0.lock();
        let place = &mut endpoints[usize::from(peer.is_ipv6())];
        match place {
            Some(endpoint) if !is_stopped => Ok(endpoint.clone()),
            _ => {
                let endpoint = open(local, interface, peer).map_err(|error| {
                    let text = format!("cannot open a UDP socket for {peer}: {error}");
                    Error::new(ErrorKind::ConnectQuic, text)
                })?;
                Ok(place.insert(endpoint).clone())
            }
        }
    }

    /// Returns the open endpoints.
    pub(super) fn open(&self) -> Vec<Endpoint> {
        let endpoints = self.0.lock();
        endpoints.iter().flatten().cloned().collect()
    }
}

fn open(local: Option<IpAddr>, interface: Option<&str>, peer: SocketAddr) -> io::Result<Endpoint> {
    let local = match local {
        Some(local) => local,
        None if peer.is_ipv4() => Ipv4Addr::UNSPECIFIED.into(),
        None => Ipv6Addr::UNSPECIFIED.into(),
    };
    let local = SocketAddr::new(local, 0);
    let endpoint = match interface {
        None => Endpoint::client(local),
        Some(interface) => {
            let socket = UdpSocket::bind(local)?;
            socket.set_nonblocking(true)?;
            let socket = tokio::net::UdpSocket::from_std(socket)?;
            bind_to_interface(&socket, interface)?;
            let config = EndpointConfig::from_seed(runtime::random_seed()?);
            Endpoint::new(config, None, socket.into_std()?)
        }
    };
    endpoint.map_err(io::Error::other)
}

#[cfg(target_os = "linux")]
fn bind_to_interface(socket: &tokio::net::UdpSocket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_to_interface(_: &tokio::net::UdpSocket, _: &str) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
