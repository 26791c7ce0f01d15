//! The messages of the perf protocol.
//!
//! The first 8 bytes of a client's stream are the requested length of the response, most significant byte
//! first. Bytes to be counted follow until the end of the stream. Then the server sends the response and
//! ends its side. Requests on unidirectional streams are answered on streams of the server. quinn-perf,
//! secnetperf and s2n-quic's perf have this much in common.
//!
//! Two lengths that no client requests are extensions: one requests the server's counters as JSON, the
//! other one a measurement of datagrams.

use bytes::Bytes;

/// The name of the protocol in ALPN.
pub const PROTOCOL: &[u8] = b"perf";

/// A request for [`ServerReport`](crate::server_report::ServerReport) in place of bytes.
///
/// No client requests 7 * 10^18 bytes. `u64::MAX` is not suitable, because secnetperf requests that many
/// for downloads with a time limit. A server that takes the value for a length starts to send bytes, which
/// the client recognizes by the first one and stops.
pub(crate) const REPORT_REQUEST: u64 = u64::from_be_bytes(*b"courser?");

/// The beginning of every report.
pub(crate) const REPORT_START: &[u8] = b"{\"courser\"";

/// Largest size of a report.
pub(crate) const MAX_REPORT: usize = 64 * 1024;

/// The length that is requested if time is the limit. The client stops the stream.
pub(crate) const ENDLESS: u64 = 1 << 62;

/// The length of a request's header.
pub(crate) const HEADER: usize = 8;

/// Bytes sent at a time: the content of one send call of 65,507 bytes, without the overhead of packets.
/// With 64 KiB, a packet or two would need a second call.
pub(crate) const CHUNK: usize = 62_000;

/// Streams that a client may have open: well above the number that measurements have in flight, because a
/// stream counts until its end is acknowledged.
pub(crate) const MAX_STREAMS: u64 = 65_536;

/// Received datagrams that may wait to be read: as many as several turns of the driver receive.
pub(crate) const DATAGRAMS: usize = 1024;

/// Bytes of received datagrams that may wait to be read.
pub(crate) const DATAGRAM_BYTES: usize = 2 << 20;

/// The paths that a client may open, as many as a connection can have.
pub(crate) const MAX_PATHS: u8 = 8;

static FILLER: [u8; CHUNK] = [b'c'; CHUNK];

/// Returns up to `most` bytes of filler, at most one chunk.
pub(crate) fn filler(most: u64) -> Bytes {
    Bytes::from_static(filler_slice(most))
}

/// Returns the same bytes as [`filler`], borrowed.
pub(crate) fn filler_slice(most: u64) -> &'static [u8] {
    let len = usize::try_from(most).unwrap_or(CHUNK).min(CHUNK);
    &FILLER[..len]
}

/// A request that can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Header and first chunk, so that they share a packet.
    pub(crate) start: Bytes,
    /// Bytes that follow the first chunk.
    pub(crate) rest: u64,
    /// Requested length of the response.
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

/// Reads the header from a stream that arrives in parts of any size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderReader {
    bytes: [u8; HEADER],
    filled: usize,
}

impl HeaderReader {
    /// Reads bytes of the header from the front of `piece`, and returns their number.
    pub(crate) fn on_bytes(&mut self, piece: &[u8]) -> usize {
        let missing = (HEADER - self.filled).min(piece.len());
        self.bytes[self.filled..self.filled + missing].copy_from_slice(&piece[..missing]);
        self.filled += missing;
        missing
    }

    /// Returns the requested length of the response, once the header is complete.
    pub(crate) fn response_len(&self) -> Option<u64> {
        (self.filled == HEADER).then(|| u64::from_be_bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_the_length_of_the_response_in_network_byte_order() {
        let request = Request::new(3, 0x0102_0304);
        assert_eq!(&request.start[..], b"\0\0\0\0\x01\x02\x03\x04ccc");
        assert_eq!(request.rest, 0);
    }

    #[test]
    fn long_request_is_split_after_the_first_chunk() {
        let request = Request::new(CHUNK as u64 + 5, 0);
        assert_eq!((request.start.len(), request.rest), (HEADER + CHUNK, 5));
    }

    #[test]
    fn header_may_arrive_byte_by_byte() {
        let mut header = HeaderReader::default();
        for byte in 513_u64.to_be_bytes() {
            assert_eq!(header.response_len(), None);
            assert_eq!(header.on_bytes(&[byte]), 1);
        }
        assert_eq!(header.on_bytes(b"and more bytes"), 0);
        assert_eq!(header.response_len(), Some(513));
    }

    #[test]
    fn report_request_differs_from_lengths_that_others_use() {
        assert_ne!(REPORT_REQUEST, u64::MAX);
        assert_ne!(REPORT_REQUEST, ENDLESS);
        assert_ne!(REPORT_REQUEST, crate::datagram::DATAGRAM_REQUEST);
    }
}
