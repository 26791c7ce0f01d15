//! The sockets of an address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::{Mutex, with_port};
use courser_quic::{BindError, Endpoint, ServerConfig};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::error::Error;
use crate::quic::moves::Moves;
use crate::quic::sinks::{AddressSinks, MakeSinks};

/// The settings of QUIC for the sockets.
#[derive(Debug)]
pub(super) struct Quic {
    pub(super) config: ServerConfig,
    /// The number of shards for each address.
    pub(super) shards: usize,
    pub(super) moves: Moves,
    /// Makes the sinks of connections, in place of those of `config`.
    pub(super) sinks: Option<MakeSinks>,
}

/// A listener: one address and port.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) quic: Option<(Endpoint, QuicSocket)>,
    pub(super) tcp: Option<TcpListener>,
}

impl Door {
    /// Returns the address, and the endpoint of QUIC if there is one.
    pub(super) fn listener(&self) -> Arc<Listener> {
        let endpoint = self.quic.as_ref().map(|(endpoint, _)| endpoint.clone());
        Arc::new(Listener {
            address: self.address,
            endpoint: Mutex::new(endpoint),
        })
    }
}

/// An address of a running server, with its endpoint of QUIC.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    /// `None` without QUIC, and while its socket has failed.
    endpoint: Mutex<Option<Endpoint>>,
}

impl Listener {
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint.lock().clone()
    }

    /// Sets the endpoint that takes the place of one that has failed.
    pub(super) fn set_endpoint(&self, endpoint: Option<Endpoint>) {
        let before = std::mem::replace(&mut *self.endpoint.lock(), endpoint);
        drop(before);
    }
}

/// The settings of an endpoint of QUIC, with which it is opened, and opened again.
#[derive(Debug)]
pub(super) struct QuicSocket {
    config: ServerConfig,
    shards: usize,
    greases_quic_bit: bool,
}

impl QuicSocket {
    pub(super) fn open(&self, address: SocketAddr) -> Result<Endpoint, BindError> {
        Endpoint::builder()
            .server(self.config.clone())
            .shards(self.shards)
            .grease_quic_bit(self.greases_quic_bit)
            .bind(address)
    }
}

/// Opens the requested sockets: QUIC with these settings, and TCP. With port 0 the system chooses a port that is
/// free for both.
pub(super) fn open(
    address: SocketAddr,
    quic: Option<&Quic>,
    with_tcp: bool,
) -> Result<Door, Error> {
    let mut tries = match (address.port(), quic, with_tcp) {
        (0, Some(_), true) => PORT_TRIES,
        _ => 1,
    };
    loop {
        tries -= 1;
        match open_once(address, quic, with_tcp) {
            Err(error) if tries > 0 && error.is_port_taken() => {}
            result => return result,
        }
    }
}

fn open_once(address: SocketAddr, quic: Option<&Quic>, with_tcp: bool) -> Result<Door, Error> {
    let mut door = Door {
        address,
        quic: None,
        tcp: None,
    };
    let make = quic.and_then(|quic| quic.sinks.as_ref());
    let sinks = make.map(AddressSinks::new);
    if let Some(quic) = quic {
        let mut config = quic.config.clone();
        if let Some(sinks) = &sinks {
            config = config.sinks(sinks.clone());
        }
        let socket = QuicSocket {
            config,
            shards: quic.shards,
            greases_quic_bit: quic.moves.greases_quic_bit,
        };
        let opened = socket.open(address);
        let endpoint = opened.map_err(|error| Error::udp(address, error))?;
        let local = endpoint.local_addr();
        let local = local.map_err(|error| Error::udp(address, error.into()))?;
        door.address = with_port(address, local.port());
        door.quic = Some((endpoint, socket));
    }
    if with_tcp {
        let listener = listen(door.address).map_err(|error| Error::tcp(door.address, error))?;
        let local = listener.local_addr();
        door.address = local.map_err(|error| Error::tcp(door.address, error))?;
        door.tcp = Some(listener);
    }
    if let Some(sinks) = sinks {
        sinks.begin(door.address);
    }
    Ok(door)
}

/// Opens the socket of TCP.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
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

/// Maximum of attempts to find a port that is free for both.
const PORT_TRIES: usize = 32;

/// Number of connections that the system may queue; its own limit may be lower.
const BACKLOG: i32 = 4096;
