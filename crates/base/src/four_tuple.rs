//! Where a datagram came from and arrived at.

use std::net::{IpAddr, SocketAddr};

/// Peer address and local address of a datagram: the identity of a network path.
///
/// The local port is the socket's own and does not distinguish paths on it. `local` is `None`
/// where the platform does not tell which address a datagram arrived at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FourTuple {
    /// The peer's address and port.
    pub peer: SocketAddr,
    /// Our address, if known.
    pub local: Option<IpAddr>,
}

impl FourTuple {
    /// A path to `peer` from whatever address the system picks.
    pub const fn to(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}
