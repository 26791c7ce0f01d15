//! The addresses that identify a network path.

use std::net::{IpAddr, SocketAddr};

/// Peer address and local address of a datagram: the identity of a network path.
///
/// The local port belongs to the socket, so it does not distinguish paths on it. `local` is `None`
/// if the platform does not report the address at which a datagram arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FourTuple {
    /// The peer's address and port.
    pub peer: SocketAddr,
    /// The local address, if known.
    pub local: Option<IpAddr>,
}

impl FourTuple {
    /// Creates a path to `peer` from an address that the system chooses.
    pub const fn to(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}
