//! Version Negotiation packets: the versions that a server supports. RFC 9000 §17.2.1, RFC 8999 §6.

use super::first_byte::{FIXED_BIT, LONG_FORM};
use super::header::{Packet, PacketError, PacketKind};
use super::invariants::{self, Invariants};
use super::long;
use crate::error::DecodeError;
use crate::version::NEGOTIATION;
use crate::writer::Writer;

/// The fields of a Version Negotiation packet. None of them is authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionNegotiation<'a> {
    /// The Destination Connection ID, equal to the source of the packet that this one answers.
    pub destination: &'a [u8],
    /// The Source Connection ID, equal to the destination of the packet that this one answers.
    pub source: &'a [u8],
    /// The supported versions, at least one, four bytes each.
    versions: &'a [[u8; 4]],
}

impl VersionNegotiation<'_> {
    /// Iterates over the versions that the server offers, including reserved ones.
    pub fn versions(&self) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        self.versions
            .iter()
            .map(|&version| u32::from_be_bytes(version))
    }
}

/// Returns the number of bytes that [`encode`] writes.
pub fn encoded_len(destination: &[u8], source: &[u8], versions: &[u32]) -> usize {
    1 + 4 + 2 + destination.len() + source.len() + 4 * versions.len()
}

/// Writes a Version Negotiation packet.
///
/// The connection IDs are those of the packet that it answers, swapped, and may have any length
/// (RFC 8999 §6). Six bits of `first_byte_random` are used. The form bit is set, and so is the
/// Fixed Bit, which helps other protocols on the same port (RFC 9000 §17.2.1).
///
/// # Panics
/// Panics if the packet does not fit, or if a connection ID is longer than 255 bytes.
pub fn encode(
    writer: &mut Writer<'_>,
    first_byte_random: u8,
    destination: &[u8],
    source: &[u8],
    versions: &[u32],
) {
    writer.u8(LONG_FORM | FIXED_BIT | first_byte_random);
    writer.u32(NEGOTIATION);
    for id in [destination, source] {
        writer.u8(u8::try_from(id.len()).expect("connection ids have at most 255 bytes"));
        writer.bytes(id);
    }
    for &version in versions {
        writer.u32(version);
    }
}

/// Reads a datagram that contains a Version Negotiation packet. The seven unused bits of the first
/// byte are ignored.
///
/// # Errors
/// Fails if the input is truncated, if it is another kind of packet, or if the list of versions is
/// empty or its last entry is incomplete.
pub fn decode(datagram: &[u8]) -> Result<VersionNegotiation<'_>, PacketError> {
    let fields = invariants::decode(datagram, 0)?;
    if fields.first_byte & LONG_FORM == 0 || fields.version != NEGOTIATION {
        return Err(DecodeError::invalid("not a Version Negotiation packet", 0).into());
    }
    let versions = version_list(datagram, fields.end)?;
    Ok(VersionNegotiation {
        destination: &datagram[fields.destination],
        source: &datagram[fields.source],
        versions,
    })
}

/// Reads a packet of which only the invariants were read. Our own connection IDs have at most 20
/// bytes, so a packet with longer ones does not answer a packet of ours.
pub(super) fn decode_packet(datagram: &[u8], fields: Invariants) -> Result<Packet, PacketError> {
    let (destination, source) = long::short_ids(datagram, &fields)?;
    version_list(datagram, fields.end)?;
    Ok(Packet {
        kind: PacketKind::VersionNegotiation,
        version: NEGOTIATION,
        destination,
        source,
        token: fields.end..fields.end,
        packet_number_offset: fields.end,
        end: datagram.len(),
    })
}

fn version_list(datagram: &[u8], start: usize) -> Result<&[[u8; 4]], DecodeError> {
    match datagram.get(start..).unwrap_or_default().as_chunks() {
        ([], _) => Err(DecodeError::truncated(start)),
        (versions, []) => Ok(versions),
        (_, rest) => Err(DecodeError::truncated(datagram.len() - rest.len())),
    }
}

#[cfg(test)]
mod tests;
