//! What holds for packets of every version of QUIC. RFC 8999.

use std::ops::Range;

use super::LONG_FORM;
use crate::error::DecodeError;
use crate::reader::Reader;

/// The fields that a long header has in every version. RFC 8999 §5.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invariants {
    /// The first byte, whose low seven bits belong to the version.
    pub first_byte: u8,
    /// The version; 0 for Version Negotiation.
    pub version: u32,
    /// Where the Destination Connection ID is: 0 to 255 bytes.
    pub destination: Range<usize>,
    /// Where the Source Connection ID is: 0 to 255 bytes.
    pub source: Range<usize>,
    /// Where the fields that belong to the version begin.
    pub end: usize,
}

/// Reads the version-independent fields of the long header at byte `start`.
///
/// # Errors
/// Truncated input.
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

/// The Destination Connection ID of a datagram's first packet, of any version: enough to find
/// the connection.
///
/// `local_cid_len` is the length of the connection IDs we gave out; short headers do not say.
/// `None` when the datagram is too short to hold one.
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
