//! Destinations that cannot be reached.

use std::fmt;

/// The reason why a datagram does not reach its destination, as the system or the network reports it.
///
/// Reports of the network are ICMP messages (RFC 792, RFC 4443 §3.1), which are not authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unreachable {
    /// Nothing listens on the port.
    Port,
    /// The host does not answer in its network, or a filter rejects the datagram.
    Host,
    /// There is no route to the network of the host.
    Network,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Port => "port unreachable",
            Self::Host => "host unreachable",
            Self::Network => "network unreachable",
        })
    }
}
