//! Retry packets: a token, protected by an integrity tag instead of packet protection.
//! RFC 9000 §17.2.5.

pub(super) mod layout;

use std::ops::Range;

use super::first_byte::{FIXED_BIT, LONG_FORM};
use super::header::{PacketError, PacketKind};
use super::invariants;
use super::long::rotation;
use crate::connection_id::ConnectionId;
use crate::error::DecodeError;
use crate::writer::Writer;
use layout::token_and_tag;

pub use layout::TAG_LEN;

/// The fields of a Retry packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryParts<'a> {
    /// The client's connection ID.
    pub destination: ConnectionId,
    /// The connection ID that the client must use as its destination from now on.
    pub source: ConnectionId,
    /// The token that the client must repeat in its next Initial packets; never empty.
    pub token: &'a [u8],
    /// The Retry Integrity Tag. RFC 9001 §5.8.
    pub tag: [u8; TAG_LEN],
    /// Range of the bytes before the tag. The tag covers the original Destination Connection ID
    /// followed by these bytes.
    pub without_tag: Range<usize>,
}

/// Returns the number of bytes that [`encode_retry`] writes.
pub fn encoded_retry_len(destination: &ConnectionId, source: &ConnectionId, token: &[u8]) -> usize {
    1 + 4 + 2 + destination.len() + source.len() + token.len()
}

/// Writes a Retry packet of `version` without its integrity tag, which must follow immediately.
///
/// The four unused bits are set. They have no meaning, and the example of RFC 9001 §A.4 sets them.
///
/// # Panics
/// Panics if the packet does not fit, or if the token is empty, because clients drop such a Retry.
pub fn encode_retry(
    writer: &mut Writer<'_>,
    version: u32,
    destination: &ConnectionId,
    source: &ConnectionId,
    token: &[u8],
) {
    assert!(!token.is_empty(), "the token of a Retry is empty");
    let type_bits = (RETRY_TYPE + rotation(version)) & 0b11;
    writer.u8(LONG_FORM | FIXED_BIT | type_bits << 4 | UNUSED);
    writer.u32(version);
    destination.encode(writer);
    source.encode(writer);
    writer.bytes(token);
}

/// Reads a datagram that holds a Retry packet.
///
/// # Errors
/// Fails with a [`PacketError`]. Another kind of packet counts as malformed.
pub fn retry_parts(datagram: &[u8]) -> Result<RetryParts<'_>, PacketError> {
    let packet = super::decode(datagram, 0, 0)?;
    if packet.kind != PacketKind::Retry {
        return Err(DecodeError::invalid("not a Retry packet", 0).into());
    }
    let fields = invariants::decode(datagram, 0)?;
    let (token, tag) = token_and_tag(datagram, fields.end)?;
    Ok(RetryParts {
        destination: packet.destination,
        source: packet.source,
        token: &datagram[token],
        without_tag: 0..tag.start,
        tag: *datagram[tag]
            .first_chunk()
            .expect("token_and_tag found as many bytes"),
    })
}

/// The type of a Retry packet in version 1.
const RETRY_TYPE: u8 = 0b11;
const UNUSED: u8 = 0x0f;

#[cfg(test)]
mod tests;
