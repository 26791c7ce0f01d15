//! Encoding and decoding of frame headers (RFC 9114 §7).

use bytes::{Buf as _, Bytes, BytesMut};
use courser_wire::{Reader, Writer, varint_len};

/// A frame type that this crate distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameType {
    Data,
    Headers,
    CancelPush,
    Settings,
    PushPromise,
    GoAway,
    MaxPushId,
    /// ORIGIN (RFC 9412), which a server sends on its control stream.
    Origin,
    /// PRIORITY_UPDATE for requests (RFC 9218 §7.2).
    PriorityUpdateRequest,
    /// PRIORITY_UPDATE for pushes (RFC 9218 §7.2).
    PriorityUpdatePush,
    /// A type of HTTP/2, forbidden in HTTP/3 (§7.2.8).
    Http2,
    /// A frame type that the application has claimed.
    Claimed(u64),
    /// The first integer of claimed bidirectional streams, which is not a frame type.
    Signal,
    /// A reserved type or that of an unknown extension.
    Unknown,
}

impl FrameType {
    pub(crate) const fn from_value(value: u64) -> Self {
        match value {
            DATA => Self::Data,
            HEADERS => Self::Headers,
            CANCEL_PUSH => Self::CancelPush,
            SETTINGS => Self::Settings,
            PUSH_PROMISE => Self::PushPromise,
            GOAWAY => Self::GoAway,
            MAX_PUSH_ID => Self::MaxPushId,
            ORIGIN => Self::Origin,
            PRIORITY_UPDATE_REQUEST => Self::PriorityUpdateRequest,
            PRIORITY_UPDATE_PUSH => Self::PriorityUpdatePush,
            0x02 | 0x06 | 0x08 | 0x09 => Self::Http2,
            _ => Self::Unknown,
        }
    }
}

pub(crate) const DATA: u64 = 0x00;
pub(crate) const HEADERS: u64 = 0x01;
pub(crate) const CANCEL_PUSH: u64 = 0x03;
pub(crate) const SETTINGS: u64 = 0x04;
pub(crate) const PUSH_PROMISE: u64 = 0x05;
pub(crate) const GOAWAY: u64 = 0x07;
pub(crate) const ORIGIN: u64 = 0x0c;
pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
pub(crate) const PRIORITY_UPDATE_REQUEST: u64 = 0xf0700;
pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0xf0701;

/// Decodes the type and length at the start of `bytes`, and returns them with the number of bytes that they
/// occupy. `None` if they are incomplete.
pub(crate) fn decode_header(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let mut reader = Reader::new(bytes);
    let frame_type = reader.varint().ok()?;
    let len = reader.varint().ok()?;
    Some((frame_type, len, reader.offset()))
}

/// Removes the type and length of the next frame from the front of `input`. Keeps an incomplete header in
/// `partial`.
pub(crate) fn take_header(input: &mut Bytes, partial: &mut BytesMut) -> Option<(u64, u64)> {
    if partial.is_empty() {
        if let Some((value, len, header)) = decode_header(input) {
            input.advance(header);
            return Some((value, len));
        }
        partial.extend_from_slice(input);
        input.clear();
        return None;
    }
    let held = partial.len();
    let more = input.len().min(LONGEST_HEADER - held);
    partial.extend_from_slice(&input[..more]);
    let Some((value, len, header)) = decode_header(partial) else {
        input.advance(more);
        return None;
    };
    input.advance(header - held);
    partial.clear();
    Some((value, len))
}

/// Appends the type and length of a frame.
pub(crate) fn encode_header(out: &mut Vec<u8>, frame_type: u64, len: usize) {
    put_varint(out, frame_type);
    put_varint(out, len as u64);
}

/// Encodes the header of a DATA frame with `len` bytes of content.
pub fn data_header(len: u64) -> DataHeader {
    let mut bytes = [0; 9];
    let mut writer = Writer::new(&mut bytes);
    writer.varint(DATA);
    writer.varint(len);
    let len = writer.position() as u8; // At most nine.
    DataHeader { bytes, len }
}

/// The header of a DATA frame, created by [`data_header`].
#[derive(Clone, Copy, Debug)]
pub struct DataHeader {
    bytes: [u8; 9],
    len: u8,
}

impl AsRef<[u8]> for DataHeader {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Appends a frame whose payload is one integer.
pub(crate) fn encode_integer(out: &mut Vec<u8>, frame_type: u64, value: u64) {
    encode_header(out, frame_type, varint_len(value));
    put_varint(out, value);
}

/// Appends a variable-length integer (RFC 9000 §16).
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 64 {
        return out.push(value as u8); // The common case.
    }
    let mut bytes = [0; 8];
    let mut writer = Writer::new(&mut bytes);
    writer.varint(value);
    let len = writer.position();
    out.extend_from_slice(&bytes[..len]);
}

/// Returns the reserved frame type, setting or stream type `0x1f * n + 0x21`. It has no meaning and tests that
/// peers ignore unknown ones (§7.2.8, §7.2.4.1, §6.2.3).
pub(crate) const fn reserved(n: u64) -> u64 {
    0x1f * (n % (1 << 50)) + 0x21
}

/// Longest frame header: two integers of eight bytes.
pub(crate) const LONGEST_HEADER: usize = 16;
