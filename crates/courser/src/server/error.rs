//! Why a server cannot start.

use std::io;
use std::net::SocketAddr;

use crate::error::{BindError, ConfigError};

/// A server could not start. One line: what was wanted, what the system said, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address to listen on is none, or its name is unknown.
    #[error("cannot listen: {0}: use an address such as 127.0.0.1:4433 or [::]:443")]
    Address(io::Error),
    /// An address cannot be listened on.
    #[error("cannot listen on {transport} {address}: {source}{}", remedy(.source))]
    Listen {
        /// `UDP` or `TCP`.
        transport: &'static str,
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A configuration does not work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Both [`without_tcp`](super::Server::without_tcp) and
    /// [`without_quic`](super::Server::without_quic) were asked for.
    #[error("nothing to serve: HTTP/3 and TCP are both disabled")]
    NothingToServe,
}

impl Error {
    pub(super) fn udp(address: SocketAddr, error: BindError) -> Self {
        match error {
            BindError::Io(source) => Self::Listen {
                transport: "UDP",
                address,
                source,
            },
            BindError::Config(error) => Self::Config(error),
        }
    }

    pub(super) const fn tcp(address: SocketAddr, source: io::Error) -> Self {
        Self::Listen {
            transport: "TCP",
            address,
            source,
        }
    }

    /// True when somebody else has the port.
    pub fn is_port_taken(&self) -> bool {
        matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            ": the port is taken, choose another or stop the program that uses it"
        }
        io::ErrorKind::AddrNotAvailable => ": no interface here has this address",
        io::ErrorKind::PermissionDenied => {
            ": ports below 1024 need privileges (on Linux CAP_NET_BIND_SERVICE)"
        }
        _ => "",
    }
}
