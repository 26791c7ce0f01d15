//! Packets on a link.

use std::net::SocketAddr;

use bytes::Bytes;
use courser_base::Ecn;

/// A report to the sender of a packet that was too large, as in ICMP Packet Too Big.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooBig {
    /// The packet that was dropped.
    pub packet: Packet,
    /// The largest IP packet that would have passed, headers included.
    pub mtu: u32,
}

impl TooBig {
    /// The number of payload bytes that routers quote, so that the ICMP packet has 576 bytes
    /// (RFC 1812 §4.3.2.3).
    pub const QUOTE_LEN: usize = 576 - 20 - 8 - 20 - 8;

    /// Returns the part of the UDP payload that the report quotes.
    pub fn quote(&self) -> &[u8] {
        let payload = &self.packet.payload;
        &payload[..payload.len().min(Self::QUOTE_LEN)]
    }
}

/// A UDP datagram with the fields of its IP header that links use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The source address, as the receiver will see it.
    pub source: SocketAddr,
    /// The destination address, by which NATs and hosts are found.
    pub destination: SocketAddr,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The UDP payload, often a slice of a batch.
    pub payload: Bytes,
}

impl Packet {
    /// Returns the bytes of the IP packet: payload, UDP header, and IPv4 (20) or IPv6 (40) header.
    pub fn wire_size(&self) -> u64 {
        let headers = if self.destination.is_ipv4() { 28 } else { 48 };
        self.payload.len() as u64 + headers
    }
}
