//! Long headers: Initial, 0-RTT and Handshake. RFC 9000 §17.2, RFC 9369 §3.2.

use super::first_byte::{FIXED_BIT, LONG_FORM};
use super::header::{Packet, PacketError, PacketKind};
use super::invariants::Invariants;
use super::retry::layout::token_and_tag;
use crate::connection_id::ConnectionId;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::version::VERSION_2;
use crate::writer::Writer;

/// The header of an Initial, 0-RTT or Handshake packet, without its packet number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongHeader<'a> {
    /// The kind of packet, one of these three.
    pub kind: PacketKind,
    /// The version. It determines how the kind is encoded; one that is not supported counts as
    /// version 1.
    pub version: u32,
    /// The peer's connection ID.
    pub destination: ConnectionId,
    /// Our connection ID, to which the peer sends its packets.
    pub source: ConnectionId,
    /// The token of an Initial packet. Other kinds of packet have no such field and ignore it.
    pub token: &'a [u8],
}

impl LongHeader<'_> {
    /// Returns the number of bytes that [`LongHeader::encode`] writes. The packet number is not
    /// included.
    pub fn encoded_len(&self) -> usize {
        let token = match self.kind {
            PacketKind::Initial => varint_len(self.token.len() as u64) + self.token.len(),
            _ => 0,
        };
        // The first byte, the version, and the length bytes of the two connection IDs.
        1 + 4 + 2 + self.destination.len() + self.source.len() + token + LENGTH_FIELD
    }

    /// Writes the header up to the packet number, with the reserved bits set to zero. Returns the
    /// offset of the Length field, which [`patch_length`] fills once the length of the payload is
    /// known.
    ///
    /// # Panics
    /// Panics if the header does not fit, if `packet_number_len` is not 1 to 4, or if the kind is
    /// none of the three.
    pub fn encode(&self, writer: &mut Writer<'_>, packet_number_len: usize) -> usize {
        let number_bits = u8::try_from(packet_number_len.wrapping_sub(1)).unwrap_or(u8::MAX);
        assert!(number_bits < 4, "a packet number has 1 to 4 bytes");
        writer.u8(LONG_FORM | FIXED_BIT | type_bits(self.version, self.kind) << 4 | number_bits);
        writer.u32(self.version);
        self.destination.encode(writer);
        self.source.encode(writer);
        if self.kind == PacketKind::Initial {
            writer.varint_bytes(self.token);
        }
        let length_field_offset = writer.position();
        writer.varint_of_len(0, LENGTH_FIELD);
        length_field_offset
    }
}

/// Fills the Length field that [`LongHeader::encode`] reserved at `offset` of `buffer`.
///
/// `length` is the number of bytes of packet number, payload and tag.
///
/// # Panics
/// Panics if `length` is above [`MAX_LENGTH`].
pub fn patch_length(buffer: &mut [u8], offset: usize, length: usize) {
    assert!(
        length <= MAX_LENGTH,
        "a packet with a long header has at most {MAX_LENGTH} bytes"
    );
    Writer::new(&mut buffer[offset..]).varint_of_len(length as u64, LENGTH_FIELD);
}

/// The largest value that fits into a Length field of two bytes.
pub const MAX_LENGTH: usize = (1 << 14) - 1;

/// Reads the fields specific to versions 1 and 2. The caller has checked the form bit and the
/// version.
pub(super) fn decode(
    datagram: &[u8],
    fields: Invariants,
    accepts_cleared: bool,
) -> Result<Packet, PacketError> {
    if fields.first_byte & FIXED_BIT == 0 && !accepts_cleared {
        return Err(PacketError::FixedBit);
    }
    let kind = kind_of(fields.version, fields.first_byte);
    let (destination, source) = short_ids(datagram, &fields)?;
    if kind == PacketKind::Retry {
        let (token, tag) = token_and_tag(datagram, fields.end)?;
        return Ok(Packet {
            kind,
            version: fields.version,
            destination,
            source,
            token,
            packet_number_offset: tag.start,
            end: tag.end,
        });
    }
    let mut reader = Reader::starting_at(datagram, fields.end);
    let token = match kind {
        PacketKind::Initial => {
            let token = reader.varint_bytes()?.len();
            reader.offset() - token..reader.offset()
        }
        _ => fields.end..fields.end,
    };
    let length_offset = reader.offset();
    let length = reader.varint()?;
    let packet_number_offset = reader.offset();
    // RFC 9000 §17.2: a Length that overruns the datagram makes the packet invalid.
    let end = usize::try_from(length)
        .ok()
        .filter(|&length| length <= reader.remaining())
        .map(|length| packet_number_offset + length)
        .ok_or_else(|| DecodeError::truncated(length_offset))?;
    Ok(Packet {
        kind,
        version: fields.version,
        destination,
        source,
        token,
        packet_number_offset,
        end,
    })
}

/// Returns both connection IDs if neither exceeds the limit of versions 1 and 2. RFC 9000 §17.2.
pub(super) fn short_ids(
    datagram: &[u8],
    fields: &Invariants,
) -> Result<(ConnectionId, ConnectionId), DecodeError> {
    let id = |range: &std::ops::Range<usize>| {
        ConnectionId::new(&datagram[range.clone()]).ok_or(DecodeError::invalid(
            "connection id is longer than 20 bytes",
            range.start,
        ))
    };
    Ok((id(&fields.destination)?, id(&fields.source)?))
}

fn kind_of(version: u32, first_byte: u8) -> PacketKind {
    match (first_byte >> 4).wrapping_sub(rotation(version)) & 0b11 {
        0 => PacketKind::Initial,
        1 => PacketKind::ZeroRtt,
        2 => PacketKind::Handshake,
        _ => PacketKind::Retry,
    }
}

fn type_bits(version: u32, kind: PacketKind) -> u8 {
    let in_version_1 = match kind {
        PacketKind::Initial => 0,
        PacketKind::ZeroRtt => 1,
        PacketKind::Handshake => 2,
        PacketKind::Retry | PacketKind::OneRtt | PacketKind::VersionNegotiation => {
            panic!("{kind:?} packets are not encoded by LongHeader")
        }
    };
    (in_version_1 + rotation(version)) & 0b11
}

/// Returns the number to add to the packet types of version 1. Version 2 has the same types, of
/// which each one has the number of the next one. RFC 9369 §3.2.
pub(super) const fn rotation(version: u32) -> u8 {
    (version == VERSION_2) as u8
}

/// Size of the Length field. It is fixed, because the field is written before the length is known.
const LENGTH_FIELD: usize = 2;

#[cfg(test)]
mod tests;
