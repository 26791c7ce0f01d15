//! Packets: what stands around the protected bytes of a datagram. RFC 9000 §17, RFC 8999.
//!
//! Packets are opened in place, so nothing in here borrows: fields that stay in the datagram
//! are given by their offsets. Header protection hides the packet number and a few bits of the
//! first byte; what can be read before it is removed is in [`Packet`].

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

/// A client's datagram with an Initial carries at least this many bytes. RFC 9000 §14.1.
pub const MIN_INITIAL_DATAGRAM: usize = 1200;

/// What kind of packet it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PacketKind {
    /// Starts the handshake. RFC 9000 §17.2.2.
    Initial,
    /// Early data of a client. RFC 9000 §17.2.3.
    ZeroRtt,
    /// Goes on with the handshake. RFC 9000 §17.2.4.
    Handshake,
    /// A server asks the client to prove its address. RFC 9000 §17.2.5.
    Retry,
    /// Everything after the handshake; the only kind with a short header. RFC 9000 §17.3.1.
    OneRtt,
    /// A server lists its versions. RFC 9000 §17.2.1.
    VersionNegotiation,
}

/// What can be read of a packet before any protection is removed.
///
/// All offsets count from the start of the datagram, and all of them lie within it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// What kind of packet it is.
    pub kind: PacketKind,
    /// The version field; 0 for Version Negotiation and for short headers, which have none.
    pub version: u32,
    /// The connection ID of the end that the packet is for.
    pub destination: ConnectionId,
    /// The connection ID of the end that sent it; empty with a short header.
    pub source: ConnectionId,
    /// Where the token of an Initial or Retry is; empty for the other kinds.
    pub token: Range<usize>,
    /// Where the packet number starts. A Retry has its integrity tag here and Version
    /// Negotiation its list of versions.
    pub packet_number_offset: usize,
    /// One past the last byte of the packet.
    pub end: usize,
}

/// Why a packet cannot be read. None of these is an error of a connection: the packet is
/// dropped, or answered with Version Negotiation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketError {
    /// The bytes are no packet of a version that we speak.
    Malformed(DecodeError),
    /// A long header of a version that we do not speak. RFC 9000 §5.2.2, §6.1.
    UnknownVersion {
        /// The version.
        version: u32,
        /// Where the Destination Connection ID is, up to 255 bytes long. RFC 8999 §5.1.
        destination: Range<usize>,
        /// Where the Source Connection ID is, up to 255 bytes long. RFC 8999 §5.1.
        source: Range<usize>,
    },
    /// The Fixed Bit is 0. RFC 9000 §17.2, §17.3.1.
    FixedBit,
}

/// Reads the header of the packet at byte `start` of a datagram.
///
/// `local_cid_len` is the length of the connection IDs we gave out; short headers do not say.
///
/// # Errors
/// See [`PacketError`]; every one means that this packet and the bytes behind it are dropped.
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

/// Bytes of the packet number, from a first byte without header protection. RFC 9000 §17.1.
#[inline]
pub const fn packet_number_len(first_byte: u8) -> usize {
    (first_byte & PACKET_NUMBER_LEN) as usize + 1
}

/// True when the reserved bits of a first byte without header protection are zero, as they must
/// be in every packet that opens. RFC 9000 §17.2, §17.3.1.
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

/// The bit that tells long headers from short ones in every version. RFC 8999 §5.
const LONG_FORM: u8 = 0x80;
/// The bit that tells QUIC from other protocols on the same port. RFC 9000 §17.2.
const FIXED_BIT: u8 = 0x40;
const LONG_RESERVED: u8 = 0x0c;
const SHORT_RESERVED: u8 = 0x18;
const PACKET_NUMBER_LEN: u8 = 0x03;

#[cfg(test)]
mod tests;
