//! What perf clients and servers say to each other.
//!
//! The first 8 bytes of a client's stream are the length of the response that it wants, most
//! significant byte first; bytes to be counted follow until the end of the stream. Then the
//! server sends the response and ends its side. Requests on unidirectional streams are answered
//! on the server's. That much is common to quinn-perf, secnetperf and s2n-quic's perf.
//!
//! One length that nobody wants is a question of our own: how the server fares, as JSON.

use bytes::Bytes;

/// The name of the protocol in ALPN.
pub const PROTOCOL: &[u8] = b"perf";

/// A request for [`ServerReport`](crate::counters::ServerReport) in place of bytes.
///
/// 7 * 10^18 is a length that no client asks for; `u64::MAX` would not do, since secnetperf asks
/// for that much when a download is limited by time. A server that takes it for a length begins
/// to send that much, which is seen from the first byte and stopped.
pub(crate) const REPORT_REQUEST: u64 = u64::from_be_bytes(*b"courser?");

/// What a report begins with.
pub(crate) const REPORT_START: &[u8] = b"{\"courser\"";

/// More bytes than any report has.
pub(crate) const MAX_REPORT: usize = 64 * 1024;

/// The length asked for when the time is the limit: the client stops the stream.
pub(crate) const ENDLESS: u64 = 1 << 62;

/// The length of a request's header.
pub(crate) const HEADER: usize = 8;

/// Bytes sent at a time: what one send call carries, 65,507 bytes, less what packets add. Of
/// 64 KiB, a packet or two would be left for a second call.
pub(crate) const CHUNK: usize = 62_000;

/// Streams that a client may have open: well above what measurements keep in flight, since a
/// place comes free only when its stream's end is acknowledged.
pub(crate) const MAX_STREAMS: u64 = 65_536;

static FILLER: [u8; CHUNK] = [b'c'; CHUNK];

/// At most a chunk of bytes that mean nothing.
pub(crate) fn filler(most: u64) -> Bytes {
    Bytes::from_static(filler_slice(most))
}

/// Like [`filler`].
pub(crate) fn filler_slice(most: u64) -> &'static [u8] {
    let len = usize::try_from(most).unwrap_or(CHUNK).min(CHUNK);
    &FILLER[..len]
}

/// A request that can be sent again and again.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Header and first chunk, to share a packet.
    pub(crate) start: Bytes,
    /// Bytes that follow.
    pub(crate) rest: u64,
    /// Bytes wanted in return.
    pub(crate) response: u64,
    /// Bytes of the request, without the header.
    pub(crate) size: u64,
}

impl Request {
    pub(crate) fn new(size: u64, response: u64) -> Self {
        let first = filler_slice(size);
        let start = [&response.to_be_bytes(), first].concat();
        Self {
            start: start.into(),
            rest: size - first.len() as u64,
            response,
            size,
        }
    }
}

/// Picks the header out of a stream that arrives in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderReader {
    bytes: [u8; HEADER],
    filled: usize,
}

impl HeaderReader {
    /// Takes what belongs to the header from the front of `piece`.
    pub(crate) fn on_bytes(&mut self, piece: &[u8]) {
        let wanted = (HEADER - self.filled).min(piece.len());
        self.bytes[self.filled..self.filled + wanted].copy_from_slice(&piece[..wanted]);
        self.filled += wanted;
    }

    /// The wanted length, once it is known.
    pub(crate) fn wanted(&self) -> Option<u64> {
        (self.filled == HEADER).then(|| u64::from_be_bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_the_wanted_length_most_significant_byte_first() {
        let request = Request::new(3, 0x0102_0304);
        assert_eq!(&request.start[..], b"\0\0\0\0\x01\x02\x03\x04ccc");
        assert_eq!(request.rest, 0);
    }

    #[test]
    fn long_request_has_its_rest_behind_the_first_chunk() {
        let request = Request::new(CHUNK as u64 + 5, 0);
        assert_eq!((request.start.len(), request.rest), (HEADER + CHUNK, 5));
    }

    #[test]
    fn header_may_arrive_byte_by_byte() {
        let mut header = HeaderReader::default();
        for byte in 513_u64.to_be_bytes() {
            assert_eq!(header.wanted(), None);
            header.on_bytes(&[byte]);
        }
        header.on_bytes(b"and what follows");
        assert_eq!(header.wanted(), Some(513));
    }

    #[test]
    fn report_is_not_asked_for_with_a_length_that_others_use() {
        assert_ne!(REPORT_REQUEST, u64::MAX);
        assert_ne!(REPORT_REQUEST, ENDLESS);
    }
}
