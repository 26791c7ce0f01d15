//! Records of packets and of the parameters that the two ends negotiate.

use courser_wire::ConnectionId;
use courser_wire::packet::PacketKind;
use courser_wire::transport_parameters::TransportParameters;

use crate::FrameRecord;

/// A packet was sent.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketSent {
    /// The kind of packet, as given in its header.
    pub kind: PacketKind,
    /// The packet number, in the packet number space of `kind`.
    pub packet_number: u64,
    /// Size of the packet on the wire in bytes.
    pub len: usize,
    /// Size of the frames in bytes, without header and AEAD tag.
    pub payload_len: usize,
    /// True if the peer must acknowledge the packet.
    pub ack_eliciting: bool,
    /// True if the packet probes the path MTU (RFC 8899).
    pub is_mtu_probe: bool,
    /// The Destination Connection ID.
    pub destination: ConnectionId,
    /// Our Source Connection ID in a long header; 1-RTT packets have none.
    pub source: Option<ConnectionId>,
    /// The version in a long header; 0 for 1-RTT packets, which have none.
    pub version: u32,
    /// The frames, in order.
    pub frames: Vec<FrameRecord>,
}

/// A packet was received and opened. Its frames are about to be processed.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketReceived {
    /// The kind of packet, as given in its header.
    pub kind: PacketKind,
    /// The packet number, in the packet number space of `kind`.
    pub packet_number: u64,
    /// Size of the packet on the wire in bytes.
    pub len: usize,
    /// Size of the frames in bytes, without header and AEAD tag.
    pub payload_len: usize,
    /// The Destination Connection ID, which is one of ours.
    pub destination: ConnectionId,
    /// The peer's Source Connection ID in a long header; 1-RTT packets have none.
    pub source: Option<ConnectionId>,
    /// The version in a long header; 0 for 1-RTT packets, which have none.
    pub version: u32,
    /// The frames, in order, up to the first one that cannot be decoded.
    pub frames: Vec<FrameRecord>,
}

/// The reason for which a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The keys do not exist yet or were discarded.
    KeysUnavailable,
    /// The packet failed authentication.
    NotAuthentic,
    /// The packet was already processed, or its number is too old to tell.
    Duplicate,
    /// The header violates a rule of the protocol.
    Header,
    /// The packet came from an address from which the connection accepts no packets.
    UnknownPath,
}

/// A packet was received and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketDropped {
    /// The kind of packet, as given in its header.
    pub kind: PacketKind,
    /// Size of the packet on the wire in bytes.
    pub len: usize,
    /// The reason for the drop.
    pub reason: Reason,
}

/// A packet was received before its keys and is buffered until they exist (RFC 9001 §5.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketBuffered {
    /// The kind of packet, as given in its header.
    pub kind: PacketKind,
    /// Size of the packet on the wire in bytes.
    pub len: usize,
}

/// The QUIC version was negotiated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionChosen {
    /// The version number on the wire.
    pub version: u32,
}

/// The application protocol was negotiated (ALPN, RFC 7301).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolChosen {
    /// Name of the protocol as in ALPN, which need not be UTF-8.
    pub protocol: Vec<u8>,
}

/// The transport parameters of one end were set or received (RFC 9000 §18).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportParametersSet {
    /// True if they are the peer's, false if they are ours.
    pub by_peer: bool,
    /// The parameters, with the defaults of those that were not sent.
    pub parameters: Box<TransportParameters>,
}
