//! Version Negotiation packets: a server lists what it speaks. RFC 9000 §17.2.1, RFC 8999 §6.

use super::invariants::{self, Invariants};
use super::{FIXED_BIT, LONG_FORM, Packet, PacketError, PacketKind, long};
use crate::error::DecodeError;
use crate::version::NEGOTIATION;
use crate::writer::Writer;

/// The fields of a Version Negotiation packet. Nothing in it is authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionNegotiation<'a> {
    /// Destination Connection ID: the source of the packet that this answers.
    pub destination: &'a [u8],
    /// Source Connection ID: the destination of the packet that this answers.
    pub source: &'a [u8],
    /// Four bytes each, at least one.
    versions: &'a [[u8; 4]],
}

impl VersionNegotiation<'_> {
    /// The versions that the server offers, reserved ones among them.
    pub fn versions(&self) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        self.versions
            .iter()
            .map(|&version| u32::from_be_bytes(version))
    }
}

/// Bytes that [`encode`] writes.
pub fn encoded_len(destination: &[u8], source: &[u8], versions: &[u32]) -> usize {
    1 + 4 + 2 + destination.len() + source.len() + 4 * versions.len()
}

/// Writes a Version Negotiation packet.
///
/// The connection IDs are those of the packet it answers, swapped, whatever their length
/// (RFC 8999 §6). Of `first_byte_random` six bits are used: the form bit is set, and so is the
/// Fixed Bit, for the sake of other protocols on the same port (RFC 9000 §17.2.1).
///
/// # Panics
/// Panics when there is no room, or when a connection ID is longer than 255 bytes.
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

/// Reads a datagram that holds a Version Negotiation packet; the seven unused bits of the first
/// byte are ignored.
///
/// # Errors
/// Truncated input, another kind of packet, or a list that is empty or broken off.
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

/// Looks at a packet of which only the invariants were read. Our own connection IDs have 20
/// bytes at most, so longer ones answer nothing that we sent.
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
