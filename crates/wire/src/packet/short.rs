//! The short header of 1-RTT packets. RFC 9000 §17.3.1.

use super::first_byte::FIXED_BIT;
use super::header::{Packet, PacketError, PacketKind};
use crate::connection_id::ConnectionId;
use crate::error::DecodeError;
use crate::writer::Writer;

/// The header of a 1-RTT packet, without its packet number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortHeader {
    /// The peer's connection ID.
    pub destination: ConnectionId,
    /// The latency spin bit. RFC 9000 §17.4.
    pub spin: bool,
    /// The key phase bit. RFC 9001 §6.
    pub key_phase: bool,
}

impl ShortHeader {
    /// Returns the number of bytes that [`ShortHeader::encode`] writes. The packet number is not
    /// included.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        1 + self.destination.len()
    }

    /// Writes the header up to the packet number, with the reserved bits set to zero.
    ///
    /// # Panics
    /// Panics if the header does not fit, or if `packet_number_len` is not 1 to 4.
    #[inline]
    pub fn encode(&self, writer: &mut Writer<'_>, packet_number_len: usize) {
        let number_bits = match packet_number_len {
            1 => 0,
            2 => 1,
            3 => 2,
            4 => 3,
            _ => panic!("a packet number has 1 to 4 bytes"),
        };
        let spin = if self.spin { SPIN } else { 0 };
        let key_phase = if self.key_phase { KEY_PHASE } else { 0 };
        writer.u8(FIXED_BIT | spin | key_phase | number_bits);
        writer.bytes(&self.destination);
    }
}

/// Returns the latency spin bit of a short header's first byte. It is not protected.
/// RFC 9000 §17.4.
#[inline]
pub const fn spin_bit(first_byte: u8) -> bool {
    first_byte & SPIN != 0
}

/// Sets or clears the latency spin bit of a short header's first byte. RFC 9000 §17.4.
#[inline]
pub const fn set_spin_bit(first_byte: &mut u8, spin: bool) {
    *first_byte = *first_byte & !SPIN | if spin { SPIN } else { 0 };
}

/// Returns the key phase bit of a first byte without header protection. RFC 9001 §6.
#[inline]
pub const fn key_phase_bit(first_byte: u8) -> bool {
    first_byte & KEY_PHASE != 0
}

/// Reads the short header at offset `start`. It has no Length field, so the packet extends to the
/// end of the datagram.
#[inline]
pub(super) fn decode(
    datagram: &[u8],
    start: usize,
    local_cid_len: usize,
    accepts_cleared: bool,
) -> Result<Packet, PacketError> {
    let Some((&first_byte, rest)) = datagram.get(start..).and_then(<[u8]>::split_first) else {
        return Err(DecodeError::truncated(start).into());
    };
    if first_byte & FIXED_BIT == 0 && !accepts_cleared {
        return Err(PacketError::FixedBit);
    }
    let Some(destination) = rest.get(..local_cid_len).and_then(ConnectionId::new) else {
        return Err(DecodeError::truncated(start + 1).into());
    };
    let packet_number_offset = start + 1 + local_cid_len;
    Ok(Packet {
        kind: PacketKind::OneRtt,
        version: 0,
        destination,
        source: ConnectionId::EMPTY,
        token: packet_number_offset..packet_number_offset,
        packet_number_offset,
        end: datagram.len(),
    })
}

const SPIN: u8 = 0x20;
const KEY_PHASE: u8 = 0x04;

#[cfg(test)]
mod tests;
