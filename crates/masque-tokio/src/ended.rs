//! The ends of tunnels.

use courser_masque::datagram;
use courser_masque::ip::CapsuleError;

/// The reason why a tunnel has ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// This end has closed the tunnel.
    #[error("this end has closed the tunnel")]
    Closed,
    /// The other end has closed the tunnel: a proxy does that if no packet has passed for too long.
    #[error("the other end has closed the tunnel")]
    ByPeer,
    /// The other end has sent a malformed datagram.
    #[error("the other end has sent {0}")]
    Malformed(datagram::Malformed),
    /// The other end has sent a capsule that breaks a rule of IP proxies.
    #[error("the other end has sent an invalid capsule: {0}")]
    Capsule(CapsuleError),
    /// The path does not carry the packets that IPv6 needs (RFC 9484 §7.2).
    #[error(
        "the path carries packets of {0} bytes, and IPv6 needs 1280; without addresses of IPv6 it would do"
    )]
    Narrow(usize),
    /// The stream or its connection was lost. A proxy resets the stream if the target cannot be reached.
    #[error("the stream of the tunnel was lost: {0}")]
    Lost(String),
}
