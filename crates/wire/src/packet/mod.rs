//! Packets: headers and the bounds of the protected bytes in a datagram. RFC 9000 §17, RFC 8999.
//!
//! Packets are opened in place, so nothing in this module borrows from the datagram: fields that
//! stay in it are given by their offsets. Header protection hides the packet number and a few bits
//! of the first byte. [`Packet`] holds the fields that can be read before it is removed.

pub mod coalesced;
pub mod invariants;
pub mod long;
pub mod retry;
pub mod short;
pub mod version_negotiation;

use std::fmt;
use std::ops::Range;

use crate::connection_id::ConnectionId;
use crate::error::DecodeError;
use crate::version;

pub use coalesced::Packets;
pub use invariants::destination_of;
pub use long::{LongHeader, patch_length};
pub use retry::{RetryParts, encode_retry, retry_parts};
pub use short::ShortHeader;
pub use version_negotiation::VersionNegotiation;

/// The smallest size of a client's datagram with an Initial packet, in bytes. RFC 9000 §14.1.
pub const MIN_INITIAL_DATAGRAM: usize = 1200;

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
        /// The version.
        version: u32,
        /// Range of the Destination Connection ID, up to 255 bytes long. RFC 8999 §5.1.
        destination: Range<usize>,
        /// Range of the Source Connection ID, up to 255 bytes long. RFC 8999 §5.1.
        source: Range<usize>,
    },
    /// The Fixed Bit is 0. RFC 9000 §17.2, §17.3.1.
    FixedBit,
}

/// Reads the header of the packet at offset `start` of a datagram.
///
/// `local_cid_len` is the length of our connection IDs, which short headers do not encode.
///
/// # Errors
/// Fails with a [`PacketError`]. In all cases this packet and the bytes after it must be dropped.
#[inline]
pub fn decode(datagram: &[u8], start: usize, local_cid_len: usize) -> Result<Packet, PacketError> {
    let Some(first) = datagram.get(start) else {
        return Err(DecodeError::truncated(start).into());
    };
    if first & LONG_FORM == 0 {
        short::decode(datagram, start, local_cid_len)
    } else {
        decode_long(datagram, start)
    }
}

fn decode_long(datagram: &[u8], start: usize) -> Result<Packet, PacketError> {
    let fields = invariants::decode(datagram, start)?;
    match fields.version {
        version::NEGOTIATION => version_negotiation::decode_packet(datagram, fields),
        known if version::is_supported(known) => long::decode(datagram, fields),
        version => Err(PacketError::UnknownVersion {
            version,
            destination: fields.destination,
            source: fields.source,
        }),
    }
}

/// Returns the length of the packet number in bytes, given a first byte without header protection.
/// RFC 9000 §17.1.
#[inline]
pub const fn packet_number_len(first_byte: u8) -> usize {
    (first_byte & PACKET_NUMBER_LEN) as usize + 1
}

/// Returns true if the reserved bits of a first byte without header protection are zero, as
/// required in every packet that opens. RFC 9000 §17.2, §17.3.1.
#[inline]
pub const fn reserved_bits_are_zero(first_byte: u8) -> bool {
    let reserved = if first_byte & LONG_FORM == 0 {
        SHORT_RESERVED
    } else {
        LONG_RESERVED
    };
    first_byte & reserved == 0
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

/// The bit that distinguishes long headers from short ones in every version. RFC 8999 §5.
const LONG_FORM: u8 = 0x80;
/// The bit that distinguishes QUIC from other protocols on the same port. RFC 9000 §17.2.
const FIXED_BIT: u8 = 0x40;
const LONG_RESERVED: u8 = 0x0c;
const SHORT_RESERVED: u8 = 0x18;
const PACKET_NUMBER_LEN: u8 = 0x03;

#[cfg(test)]
mod tests;
