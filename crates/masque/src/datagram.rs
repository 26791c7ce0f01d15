//! Payloads of HTTP Datagrams: a context ID, then a UDP payload for context 0 (RFC 9298 §5).

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use courser_http3::Code;
use courser_wire::Reader;

/// The longest UDP payload (RFC 768: 65 535 bytes less its header).
pub const MAX_PAYLOAD: usize = 65_527;

/// The longest HTTP Datagram that can be valid, in bytes.
pub const MAX_DATAGRAM: usize = MAX_PAYLOAD + PREFIX_LEN;

/// The bytes before a UDP payload: the context ID 0.
pub const PREFIX_LEN: usize = 1;

/// The first byte of a datagram with a UDP payload.
pub const PREFIX: u8 = 0;

/// A received datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A UDP payload, of context 0.
    Udp(Bytes),
    /// A datagram of another context.
    Other {
        /// The context ID.
        context: u64,
        /// The bytes after the context ID.
        payload: Bytes,
    },
}

/// The reason why a datagram ends its tunnel, with H3_DATAGRAM_ERROR over HTTP/3 (RFC 9298 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// The datagram is empty, or ends inside of its context ID.
    #[error("a datagram without a whole context ID")]
    NoContext,
    /// The UDP payload exceeds 65 527 bytes, or the IP packet 65 575.
    #[error("a payload of {0} bytes, longer than packets can be")]
    TooLong(usize),
}

impl Malformed {
    /// Returns the code with which a stream of HTTP/3 is reset.
    pub const fn code(self) -> Code {
        Code::DATAGRAM_ERROR
    }
}

/// Reads a datagram without copying its payload.
///
/// # Errors
/// Returns an error if the tunnel has to end.
pub fn decode(payload: Bytes) -> Result<Decoded, Malformed> {
    let (context, payload) = split(payload)?;
    match context {
        0 if payload.len() > MAX_PAYLOAD => Err(Malformed::TooLong(payload.len())),
        0 => Ok(Decoded::Udp(payload)),
        context => Ok(Decoded::Other { context, payload }),
    }
}

/// Splits a datagram into its context ID and the bytes after it, without copying them.
///
/// # Errors
/// Returns an error if the tunnel has to end.
pub fn split(mut payload: Bytes) -> Result<(u64, Bytes), Malformed> {
    let mut reader = Reader::new(&payload);
    let context = reader.varint().map_err(|_| Malformed::NoContext)?;
    let prefix = reader.offset();
    payload.advance(prefix);
    Ok((context, payload))
}

/// Returns the datagram of a UDP payload.
pub fn encode(payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(payload.len() + PREFIX_LEN);
    out.put_u8(PREFIX);
    out.extend_from_slice(payload);
    out.freeze()
}

/// Appends the datagrams of a batch of UDP payloads to `out`. All are parts of one allocation.
///
/// `contents` has payloads of `segment_size` bytes each, the last of which may be shorter; no bytes are one empty
/// payload.
pub fn encode_batch(contents: &[u8], segment_size: usize, out: &mut Vec<Bytes>) {
    if contents.is_empty() {
        return out.push(encode(&[]));
    }
    let segments = contents.chunks(segment_size.max(1));
    let count = segments.len();
    let mut all = BytesMut::with_capacity(contents.len() + count * PREFIX_LEN);
    for segment in segments.clone() {
        all.put_u8(PREFIX);
        all.extend_from_slice(segment);
    }
    let mut all = all.freeze();
    out.extend(segments.map(|segment| all.split_to(segment.len() + PREFIX_LEN)));
}

#[cfg(test)]
mod tests;
