//! Hand-written HTTP/3, for stream contents that no regular encoder produces.

use courser_base::Side;
use courser_wire::{Direction, Frame, Stream, StreamId};

use crate::connection::Connection;
use crate::encode::{encode, put_varint};
pub use crate::status::HEADERS;

/// The type of DATA frames (RFC 9114 §7.2.1).
pub const DATA: u64 = 0x00;
/// The type of SETTINGS frames (RFC 9114 §7.2.4).
pub const SETTINGS: u64 = 0x04;
/// The type of GOAWAY frames (RFC 9114 §7.2.6).
pub const GOAWAY: u64 = 0x07;
/// The type of PRIORITY_UPDATE frames for requests (RFC 9218 §7.2).
pub const PRIORITY_UPDATE: u64 = 0xf_0700;
/// A reserved frame type that receivers ignore (RFC 9114 §7.2.8).
pub const GREASE: u64 = 0x21;

/// H3_REQUEST_CANCELLED (RFC 9114 §8.1).
pub const REQUEST_CANCELLED: u64 = 0x10c;

/// The type of unidirectional streams that victims of attacks on extensions claim (RFC 9114 §9).
pub const CLAIMED_UNIDIRECTIONAL: u64 = 0x54;
/// The first integer of bidirectional streams that they claim.
pub const CLAIMED_BIDIRECTIONAL: u64 = 0x41;
/// The type of frames on the control stream that they claim.
pub const CLAIMED_ON_CONTROL: u64 = 0x1000;
/// The type of frames on request streams that they claim.
pub const CLAIMED_ON_REQUESTS: u64 = 0x1001;
/// The longest payload of both, in bytes.
pub const LONGEST_CLAIMED: u64 = 65_536;

/// The index of the client's control stream that [`preface`] opens.
pub const CONTROL: u64 = 0;
/// The index of the client's QPACK encoder stream that [`preface`] opens.
pub const ENCODER: u64 = 1;

/// Bytes of a stream in one packet.
pub const CHUNK: usize = 1000;

/// Returns the ID of a client's bidirectional stream.
pub fn request_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

/// Returns the ID of a client's unidirectional stream.
pub fn uni_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Unidirectional, index)
}

/// Encodes a STREAM frame.
pub fn stream(id: StreamId, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    encode(&Frame::Stream(Stream {
        id,
        offset,
        data,
        fin,
    }))
}

/// Splits the content of a stream that begins now into STREAM frames, each of which fits into a packet.
pub fn stream_in_chunks(id: StreamId, data: &[u8], fin: bool) -> impl Iterator<Item = Vec<u8>> {
    let last = data.chunks(CHUNK).count().saturating_sub(1);
    let chunks = data.chunks(CHUNK).enumerate();
    chunks.map(move |(index, chunk)| {
        let offset = (index * CHUNK) as u64;
        stream(id, offset, chunk, fin && index == last)
    })
}

/// Encodes an HTTP/3 frame.
pub fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, payload.len() as u64);
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes the type and length of an HTTP/3 frame. The payload need not follow.
pub fn header(kind: u64, len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, kind);
    put_varint(&mut bytes, len);
    bytes
}

/// Opens the control stream with empty SETTINGS, and the encoder stream. Returns the next offsets of
/// both.
pub fn preface(connection: &mut Connection) -> (u64, u64) {
    let mut control = vec![0x00];
    control.extend(frame(SETTINGS, &[]));
    connection.push_bytes(stream(uni_stream(CONTROL), 0, &control, false));
    connection.push_bytes(stream(uni_stream(ENCODER), 0, &[0x02], false));
    (control.len() as u64, 1)
}

/// Encodes the field section of a request without the dynamic table.
pub fn section(method: Method, path: &str) -> Vec<u8> {
    // Static entries of RFC 9204 §A: 17 is GET, 20 is POST, 23 is https.
    let method = match method {
        Method::Get => 0xc0 | 17,
        Method::Post => 0xc0 | 20,
    };
    let mut bytes = vec![0, 0, method, 0xc0 | 23];
    // Literals with the names of static entries 0, `:authority`, and 1, `:path`.
    put_literal(&mut bytes, 0x50, b"localhost");
    put_literal(&mut bytes, 0x51, path.as_bytes());
    bytes
}

/// Encodes the pseudo-header fields of an extended CONNECT but for the protocol.
pub fn connect_section(path: &str) -> Vec<u8> {
    // Static entries of RFC 9204 §A: 15 is CONNECT, 23 is https.
    let mut bytes = vec![0, 0, 0xc0 | 15, 0xc0 | 23];
    put_literal(&mut bytes, 0x50, b"localhost");
    put_literal(&mut bytes, 0x51, path.as_bytes());
    bytes
}

/// Encodes a complete request without content as a HEADERS frame.
pub fn request(method: Method, path: &str) -> Vec<u8> {
    frame(HEADERS, &section(method, path))
}

/// Appends a field line with a literal name and value (RFC 9204 §4.5.6).
pub fn put_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    put_prefixed(out, 0x20, 3, name.len());
    out.extend_from_slice(name.as_bytes());
    put_prefixed(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Appends a prefixed integer (RFC 9204 §4.1.1): `flags` above the lowest `bits` bits.
pub fn put_prefixed(out: &mut Vec<u8>, flags: u8, bits: u32, value: usize) {
    let max = (1_usize << bits) - 1;
    let low = u8::try_from(value.min(max)).expect("a prefix has seven bits at most");
    out.push(flags | low);
    if value < max {
        return;
    }
    let mut rest = value - max;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push((rest & 0x7f) as u8);
}

/// The methods of hostile requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// A request without content.
    Get,
    /// A request with content.
    Post,
}

fn put_literal(out: &mut Vec<u8>, reference: u8, value: &[u8]) {
    out.push(reference);
    put_prefixed(out, 0, 7, value.len());
    out.extend_from_slice(value);
}
