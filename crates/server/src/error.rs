//! Errors of starting a server.

use std::io;
use std::net::SocketAddr;

use courser_quic::{BindError, ConfigError};

/// The reason why a server could not start. Its text has the failed action, the system's error, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is invalid, or its name cannot be resolved.
    #[error("cannot listen: {0}: use an address such as 127.0.0.1:4433 or [::]:443")]
    Address(io::Error),
    /// The server cannot listen on an address.
    #[error("cannot listen on {transport} {address}: {source}{}", remedy(.source))]
    Listen {
        /// The transport whose socket failed, `UDP` or `TCP`.
        transport: &'static str,
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the system call.
        source: io::Error,
    },
    /// A socket that another process has passed to the server cannot be used; see
    /// [`Server::inherit`](super::Server::inherit).
    #[error("cannot use {socket}, which another process has passed on: {reason}")]
    Passed {
        /// The transport and address of the socket, or the name that its service manager has given it.
        socket: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The address of [`preferred_address`](super::Server::preferred_address) cannot be offered to clients.
    #[error("cannot offer the preferred address {address}: {reason}")]
    PreferredAddress {
        /// The address that was set for the transport parameter (RFC 9000 §9.6).
        address: SocketAddr,
        /// The reason and the remedy.
        reason: &'static str,
    },
    /// A configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The extensions of HTTP/3 claim the streams of sessions, which
    /// [`Server::webtransport`](super::Server::webtransport) needs.
    #[cfg(feature = "webtransport")]
    #[error("cannot serve sessions of WebTransport: {0}")]
    Sessions(#[from] courser_http3_tokio::ClaimError),
    /// Both [`without_tcp`](super::Server::without_tcp) and
    /// [`without_quic`](super::Server::without_quic) were called.
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
            other => Self::Listen {
                transport: "UDP",
                address,
                source: io::Error::other(other),
            },
        }
    }

    pub(super) const fn tcp(address: SocketAddr, source: io::Error) -> Self {
        Self::Listen {
            transport: "TCP",
            address,
            source,
        }
    }

    pub(super) fn passed(socket: impl Into<String>, reason: impl ToString) -> Self {
        Self::Passed {
            socket: socket.into(),
            reason: reason.to_string(),
        }
    }

    /// Returns true if another socket uses the port.
    pub fn is_port_taken(&self) -> bool {
        matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            ": the port is taken, choose another one or stop the program that uses it"
        }
        io::ErrorKind::AddrNotAvailable => ": no interface here has this address",
        io::ErrorKind::PermissionDenied => {
            ": ports below 1024 need privileges (on Linux CAP_NET_BIND_SERVICE)"
        }
        _ if is_out_of_descriptors(error) => {
            ": raise the limit on open files (ulimit -n, LimitNOFILE= of systemd)"
        }
        _ if is_without_family(error) => {
            ": this machine has no IPv6, use an IPv4 address such as 0.0.0.0:443"
        }
        _ => "",
    }
}

/// Returns true for EAFNOSUPPORT, with which a system without IPv6 refuses a socket.
fn is_without_family(error: &io::Error) -> bool {
    let number = if cfg!(target_os = "linux") { 97 } else { 47 };
    cfg!(unix) && error.raw_os_error() == Some(number)
}

/// Returns true for EMFILE and ENFILE: the process or the system has no descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}
