//! Packets: headers and the bounds of the protected bytes in a datagram. RFC 9000 §17, RFC 8999.
//!
//! Packets are opened in place, so nothing in this module borrows from the datagram: fields that
//! stay in it are given by their offsets. Header protection hides the packet number and a few bits
//! of the first byte. [`Packet`] holds the fields that can be read before it is removed.

pub mod coalesced;
mod first_byte;
mod header;
pub mod invariants;
pub mod long;
pub mod retry;
pub mod short;
pub mod version_negotiation;

use crate::error::DecodeError;
use crate::version;
use first_byte::LONG_FORM;

pub use coalesced::Packets;
pub use first_byte::{clear_fixed_bit, has_fixed_bit, packet_number_len, reserved_bits_are_zero};
pub use header::{Packet, PacketError, PacketKind};
pub use invariants::destination_of;
pub use long::{LongHeader, patch_length};
pub use retry::{RetryParts, encode_retry, retry_parts};
pub use short::ShortHeader;
pub use version_negotiation::VersionNegotiation;

/// The smallest size of a client's datagram with an Initial packet, in bytes. RFC 9000 §14.1.
pub const MIN_INITIAL_DATAGRAM: usize = 1200;

/// Reads the header of the packet at offset `start` of a datagram.
///
/// `local_cid_len` is the length of our connection IDs, which short headers do not encode.
///
/// # Errors
/// Fails with a [`PacketError`]. In all cases this packet and the bytes after it must be dropped.
#[inline]
pub fn decode(datagram: &[u8], start: usize, local_cid_len: usize) -> Result<Packet, PacketError> {
    decode_greased(datagram, start, local_cid_len, false)
}

/// Reads a header like [`decode`]. With `accepts_cleared` the Fixed Bit may be 0, as peers send it
/// to an end that advertised grease_quic_bit. RFC 9287 §3.
///
/// # Errors
/// As [`decode`].
#[inline]
pub fn decode_greased(
    datagram: &[u8],
    start: usize,
    local_cid_len: usize,
    accepts_cleared: bool,
) -> Result<Packet, PacketError> {
    let Some(first) = datagram.get(start) else {
        return Err(DecodeError::truncated(start).into());
    };
    if first & LONG_FORM == 0 {
        short::decode(datagram, start, local_cid_len, accepts_cleared)
    } else {
        decode_long(datagram, start, accepts_cleared)
    }
}

fn decode_long(
    datagram: &[u8],
    start: usize,
    accepts_cleared: bool,
) -> Result<Packet, PacketError> {
    let fields = invariants::decode(datagram, start)?;
    match fields.version {
        version::NEGOTIATION => version_negotiation::decode_packet(datagram, fields),
        known if version::is_supported(known) => long::decode(datagram, fields, accepts_cleared),
        version => Err(PacketError::UnknownVersion {
            version,
            destination: fields.destination,
            source: fields.source,
        }),
    }
}

#[cfg(test)]
mod tests;
