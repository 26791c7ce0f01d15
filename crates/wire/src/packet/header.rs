//! The fields of packet headers, and the errors of headers that cannot be read.

use std::fmt;
use std::ops::Range;

use crate::connection_id::ConnectionId;
use crate::error::DecodeError;

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PacketKind {
    /// A packet that starts the handshake. RFC 9000 §17.2.2.
    Initial,
    /// A packet with early data of a client. RFC 9000 §17.2.3.
    ZeroRtt,
    /// A packet that continues the handshake. RFC 9000 §17.2.4.
    Handshake,
    /// A server's request that the client prove its address. RFC 9000 §17.2.5.
    Retry,
    /// A packet after the handshake, the only kind with a short header. RFC 9000 §17.3.1.
    OneRtt,
    /// A list of the versions that a server supports. RFC 9000 §17.2.1.
    VersionNegotiation,
}

/// The fields of a packet that can be read before any protection is removed.
///
/// All offsets count from the start of the datagram and lie within it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The kind of a packet.
    pub kind: PacketKind,
    /// The version field; 0 for Version Negotiation and for short headers, which have none.
    pub version: u32,
    /// The connection ID of the end that receives the packet.
    pub destination: ConnectionId,
    /// The connection ID of the end that sent the packet; empty for a short header.
    pub source: ConnectionId,
    /// Range of the token of an Initial or Retry packet; empty for the other kinds.
    pub token: Range<usize>,
    /// Offset of the packet number. In a Retry packet, it is the offset of the integrity tag; in a
    /// Version Negotiation packet, the offset of the list of versions.
    pub packet_number_offset: usize,
    /// Offset of the first byte after the packet.
    pub end: usize,
}

/// The reason for which a packet cannot be read. None of them is a connection error: the packet is
/// dropped, or answered with Version Negotiation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketError {
    /// The bytes are not a packet of a supported version.
    Malformed(DecodeError),
    /// The long header has an unsupported version. RFC 9000 §5.2.2, §6.1.
    UnknownVersion {
        /// The version number that the sender chose.
        version: u32,
        /// Range of the Destination Connection ID, up to 255 bytes long. RFC 8999 §5.1.
        destination: Range<usize>,
        /// Range of the Source Connection ID, up to 255 bytes long. RFC 8999 §5.1.
        source: Range<usize>,
    },
    /// The Fixed Bit is 0. RFC 9000 §17.2, §17.3.1.
    FixedBit,
}

impl From<DecodeError> for PacketError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::UnknownVersion { version, .. } => write!(f, "unknown version {version:#010x}"),
            Self::FixedBit => f.write_str("fixed bit is 0"),
        }
    }
}

impl std::error::Error for PacketError {}
