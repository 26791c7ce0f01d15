//! What travels on a link.

use std::net::SocketAddr;

use bytes::Bytes;
use courser_base::Ecn;

/// One UDP datagram under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Who sent it, as the receiver will see it.
    pub source: SocketAddr,
    /// Whom it is for.
    pub destination: SocketAddr,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The UDP payload; often a slice of a batch.
    pub payload: Bytes,
}
