//! The sockets of an address of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_base::{Mutex, with_port};
use courser_quic::Endpoint;
use tokio::net::TcpListener;

use crate::error::Error;
use crate::handover::ListeningSockets;
use crate::quic::sinks::AddressSinks;
use crate::quic::socket::{QuicSocket, QuicSockets};
use crate::tcp::listen::{inherit, listen};

/// The open sockets of one address and port.
#[derive(Debug)]
pub(super) struct OpenSockets {
    pub(super) address: SocketAddr,
    pub(super) quic: Option<(Endpoint, QuicSocket)>,
    pub(super) tcp: Option<Arc<TcpListener>>,
    /// True if another process keeps the sockets open after the end of this one.
    pub(super) stay_open: bool,
}

impl OpenSockets {
    /// Returns the address and its QUIC endpoint, if it has one.
    pub(super) fn listener(&self) -> Arc<Listener> {
        let endpoint = self.quic.as_ref().map(|(endpoint, _)| endpoint.clone());
        Arc::new(Listener {
            address: self.address,
            endpoint: Mutex::new(endpoint),
            #[cfg(unix)]
            stay_open: self.stay_open,
            #[cfg(unix)]
            tcp: self.tcp.as_ref().map(Arc::downgrade).unwrap_or_default(),
        })
    }
}

/// An address of a running server with its QUIC endpoint.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    /// `None` without QUIC, and after its socket has failed.
    endpoint: Mutex<Option<Endpoint>>,
    /// True if another process keeps the sockets open after the end of this one.
    #[cfg(unix)]
    pub(super) stay_open: bool,
    /// The listening TCP socket, while clients are accepted from it.
    #[cfg(unix)]
    tcp: std::sync::Weak<TcpListener>,
}

impl Listener {
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint.lock().clone()
    }

    /// Returns another descriptor of the listening TCP socket, if there is one.
    #[cfg(unix)]
    pub(super) fn duplicate_tcp(&self) -> std::io::Result<Option<std::net::TcpListener>> {
        use std::os::fd::AsFd as _;
        let Some(listener) = self.tcp.upgrade() else {
            return Ok(None);
        };
        Ok(Some(listener.as_fd().try_clone_to_owned()?.into()))
    }

    /// Replaces the endpoint after the previous one has failed.
    pub(super) fn set_endpoint(&self, endpoint: Option<Endpoint>) {
        let before = std::mem::replace(&mut *self.endpoint.lock(), endpoint);
        drop(before);
    }
}

/// Opens the requested sockets, unless they are inherited, QUIC with these settings. For port 0 the system chooses a port that is free for
/// both.
pub(super) fn open(
    mut address: SocketAddr,
    quic: Option<&QuicSockets>,
    with_tcp: bool,
    mut inherited: Option<ListeningSockets>,
) -> Result<OpenSockets, Error> {
    if let Some(inherited) = &inherited {
        address = inherited.address;
    }
    let mut tries = match (address.port(), quic, with_tcp) {
        (0, Some(_), true) => PORT_TRIES,
        _ => 1,
    };
    loop {
        tries -= 1;
        match open_once(address, quic, with_tcp, inherited.take()) {
            Err(error) if tries > 0 && error.is_port_taken() => {}
            result => return result,
        }
    }
}

/// Opens a socket. If the port is taken, tries again for a moment, unless the system has chosen it.
fn patiently<T>(is_chosen: bool, open: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..TAKEN_TRIES {
        match open() {
            Err(error) if error.is_port_taken() && !is_chosen => std::thread::sleep(TAKEN_PAUSE),
            result => return result,
        }
    }
    open()
}

fn open_once(
    address: SocketAddr,
    quic: Option<&QuicSockets>,
    with_tcp: bool,
    inherited: Option<ListeningSockets>,
) -> Result<OpenSockets, Error> {
    let inherited = inherited.unwrap_or_else(|| ListeningSockets::new(address, None, Vec::new()));
    inherited.check(quic.is_some(), with_tcp)?;
    let ListeningSockets {
        tcp,
        udp,
        stay_open,
        ..
    } = inherited;
    let mut sockets = OpenSockets {
        address,
        quic: None,
        tcp: None,
        stay_open,
    };
    let is_chosen = address.port() == 0;
    let make = quic.and_then(|quic| quic.sinks.as_ref());
    let sinks = make.map(AddressSinks::new);
    if let Some(quic) = quic {
        let mut config = quic.config.clone();
        if let Some(sinks) = &sinks {
            config = config.sinks(sinks.clone());
        }
        let socket = QuicSocket::new(config, quic);
        let endpoint = match udp.is_empty() {
            true => patiently(is_chosen, || {
                let opened = socket.open(address);
                opened.map_err(|error| Error::udp(address, error))
            }),
            false => {
                let opened = socket.inherit(address, udp);
                opened.map_err(|error| Error::udp(address, error))
            }
        }?;
        let local = endpoint.local_addr();
        let local = local.map_err(|error| Error::udp(address, error.into()))?;
        sockets.address = with_port(address, local.port());
        sockets.quic = Some((endpoint, socket));
    }
    if with_tcp {
        let address = sockets.address;
        let failed = |error| Error::tcp(address, error);
        let listener = match tcp {
            Some(tcp) => inherit(tcp).map_err(failed),
            None => patiently(is_chosen, || listen(address).map_err(failed)),
        }?;
        let local = listener.local_addr();
        sockets.address = local.map_err(|error| Error::tcp(sockets.address, error))?;
        sockets.tcp = Some(Arc::new(listener));
    }
    if let Some(sinks) = sinks {
        sinks.begin(sockets.address);
    }
    Ok(sockets)
}

/// Largest number of attempts to find a port that is free for UDP and TCP.
const PORT_TRIES: usize = 32;

/// Number of attempts to bind a port that is taken. A server that begins to drain leaves its address after some 50 ms,
/// and a script may start the next one at once.
const TAKEN_TRIES: usize = 11;

/// Time between two of these. Nothing else can run before the server has its sockets.
const TAKEN_PAUSE: Duration = Duration::from_millis(50);
