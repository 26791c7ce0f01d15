//! Packets, and what the two ends agree on.

use courser_wire::ConnectionId;
use courser_wire::packet::PacketKind;
use courser_wire::transport_parameters::TransportParameters;

use crate::FrameRecord;

/// A packet left.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketSent {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
    /// Bytes on the wire.
    pub len: usize,
    /// Bytes of frames, without header and tag.
    pub payload_len: usize,
    /// The peer must acknowledge it.
    pub ack_eliciting: bool,
    /// It asks whether the path carries datagrams of its size (RFC 8899).
    pub is_mtu_probe: bool,
    /// Whom it is addressed to.
    pub destination: ConnectionId,
    /// Our own ID in a long header; 1-RTT packets have none.
    pub source: Option<ConnectionId>,
    /// What it carries, in order.
    pub frames: Vec<FrameRecord>,
}

/// A packet arrived and was opened. Its frames are about to be processed.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketReceived {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
    /// Bytes on the wire.
    pub len: usize,
    /// Bytes of frames, without header and tag.
    pub payload_len: usize,
    /// Which of our IDs it is addressed to.
    pub destination: ConnectionId,
    /// The peer's ID in a long header; 1-RTT packets have none.
    pub source: Option<ConnectionId>,
    /// What it carries, in order. Stops at the first frame that cannot be read.
    pub frames: Vec<FrameRecord>,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No keys for it yet, or not any more.
    KeysUnavailable,
    /// It did not authenticate.
    NotAuthentic,
    /// It was processed before, or may have been.
    Duplicate,
    /// A header rule says so.
    Header,
    /// It came from an address the connection does not take packets from.
    UnknownPath,
}

/// A packet arrived and was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketDropped {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Bytes on the wire.
    pub len: usize,
    /// Why.
    pub reason: Reason,
}

/// A packet arrived before its keys and waits for them (RFC 9001 §5.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketBuffered {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Bytes on the wire.
    pub len: usize,
}

/// The QUIC version is settled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionChosen {
    /// The version on the wire.
    pub version: u32,
}

/// The application protocol is settled (ALPN, RFC 7301).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolChosen {
    /// Its name; any bytes.
    pub protocol: Vec<u8>,
}

/// Transport parameters of one end are known (RFC 9000 §18).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportParametersSet {
    /// They are the peer's.
    pub by_peer: bool,
    /// All of them.
    pub parameters: Box<TransportParameters>,
}
