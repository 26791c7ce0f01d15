//! The version-independent properties of QUIC packets. RFC 8999.

use std::ops::Range;

use super::first_byte::LONG_FORM;
use crate::error::DecodeError;
use crate::reader::Reader;

/// The fields of a long header that are the same in every version. RFC 8999 §5.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invariants {
    /// The first byte. The version defines its low seven bits.
    pub first_byte: u8,
    /// The version; 0 for Version Negotiation.
    pub version: u32,
    /// Range of the Destination Connection ID in the datagram: 0 to 255 bytes.
    pub destination: Range<usize>,
    /// Range of the Source Connection ID in the datagram: 0 to 255 bytes.
    pub source: Range<usize>,
    /// Offset of the first version-specific field.
    pub end: usize,
}

/// Reads the version-independent fields of the long header at offset `start`.
///
/// # Errors
/// Fails if the input is truncated.
pub fn decode(datagram: &[u8], start: usize) -> Result<Invariants, DecodeError> {
    let mut reader = Reader::starting_at(datagram, start);
    let first_byte = reader.u8()?;
    let version = reader.u32()?;
    let destination = connection_id(&mut reader)?;
    let source = connection_id(&mut reader)?;
    Ok(Invariants {
        first_byte,
        version,
        destination,
        source,
        end: reader.offset(),
    })
}

/// Returns the Destination Connection ID of a datagram's first packet, of any version. This is
/// enough to find the connection.
///
/// `local_cid_len` is the length of our connection IDs, which short headers do not encode. Returns
/// `None` if the datagram is too short to contain the ID.
#[inline]
pub fn destination_of(datagram: &[u8], local_cid_len: usize) -> Option<&[u8]> {
    if datagram.first()? & LONG_FORM == 0 {
        return datagram.get(1..)?.get(..local_cid_len);
    }
    let len = usize::from(*datagram.get(5)?);
    datagram.get(6..)?.get(..len)
}

fn connection_id(reader: &mut Reader<'_>) -> Result<Range<usize>, DecodeError> {
    let len = usize::from(reader.u8()?);
    let start = reader.offset();
    reader.bytes(len)?;
    Ok(start..start + len)
}

#[cfg(test)]
mod tests;
