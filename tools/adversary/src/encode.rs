//! Encoding of single frames and fields.

use courser_wire::{Frame, Writer, varint_len};

/// Returns the encoding of one frame.
pub fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.encoded_len()];
    frame.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// Appends a variable-length integer (RFC 9000 §16).
///
/// # Panics
/// Panics if `value` is above 2^62 - 1.
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; 8];
    let len = varint_len(value);
    Writer::new(&mut bytes).varint(value);
    out.extend_from_slice(&bytes[..len]);
}
