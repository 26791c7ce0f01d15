//! What travels on a link.

use std::net::SocketAddr;

use bytes::Bytes;
use courser_base::Ecn;

/// A packet that was too large for a link whose entrance tells senders so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooBig {
    /// The packet that was dropped.
    pub packet: Packet,
    /// The largest IP packet that would have passed, headers included.
    pub mtu: u32,
}

impl TooBig {
    /// What routers quote of the UDP payload: as much as makes an ICMP packet of 576 bytes
    /// (RFC 1812 §4.3.2.3).
    pub const QUOTE_LEN: usize = 576 - 20 - 8 - 20 - 8;

    /// How the packet's UDP payload begins.
    pub fn quote(&self) -> &[u8] {
        let payload = &self.packet.payload;
        &payload[..payload.len().min(Self::QUOTE_LEN)]
    }
}

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
