//! Generation of frames from an input: all types with arbitrary field values, and arbitrary bytes.

use courser_adversary::put_varint;

use crate::input::Input;

/// Encodes one frame, or several. Their fields need not be valid.
pub(crate) fn frame(input: &mut Input<'_>) -> Vec<u8> {
    let choice = input.byte();
    let mut out = Vec::new();
    let Some(&(kind, fields)) = KINDS.get(usize::from(choice)) else {
        return other(choice, input);
    };
    put_varint(&mut out, kind);
    for field in fields {
        field.write(&mut out, input);
    }
    out
}

/// Encodes bytes of the input, a STREAM frame, an ACK frame, or a run of one frame type.
fn other(choice: u8, input: &mut Input<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match choice % 4 {
        // Bytes of the input, unchanged.
        0 => out.extend_from_slice(input.bytes()),
        // STREAM with any combination of flags.
        1 => {
            let flags = u64::from(choice >> 2 & 7);
            put_varint(&mut out, 0x08 | flags);
            put_varint(&mut out, input.number());
            if flags & 4 != 0 {
                put_varint(&mut out, input.number());
            }
            let data = input.bytes();
            if flags & 2 != 0 {
                put_varint(&mut out, data.len() as u64);
            }
            out.extend_from_slice(data);
        }
        // ACK with several ranges.
        2 => {
            let has_counts = choice & 4 != 0;
            put_varint(&mut out, 0x02 | u64::from(has_counts));
            put_varint(&mut out, input.number());
            put_varint(&mut out, input.number());
            let ranges = u64::from(choice >> 3 & 7);
            put_varint(&mut out, ranges);
            put_varint(&mut out, input.number());
            for _ in 0..2 * ranges {
                put_varint(&mut out, input.number());
            }
            for _ in 0..3 * u64::from(has_counts) {
                put_varint(&mut out, input.number());
            }
        }
        // A run of one frame type.
        _ => {
            let kind = [0, 1, 0x1e, 0x1f][input.below(4)];
            for _ in 0..input.byte() {
                put_varint(&mut out, kind);
            }
        }
    }
    out
}

/// A field of a frame.
#[derive(Clone, Copy)]
enum Field {
    Number,
    /// A length and that many bytes.
    Bytes,
    /// Bytes without a length.
    Fixed(usize),
    /// A length and that many copies of one byte, for data longer than an input should be.
    Long,
}

impl Field {
    fn write(self, out: &mut Vec<u8>, input: &mut Input<'_>) {
        match self {
            Self::Number => put_varint(out, input.number()),
            Self::Bytes => {
                let data = input.bytes();
                put_varint(out, data.len() as u64);
                out.extend_from_slice(data);
            }
            Self::Fixed(len) => {
                let data = input.take(len);
                out.extend_from_slice(data);
                out.resize(out.len() + len - data.len(), 0);
            }
            Self::Long => {
                let len = usize::from(input.short()) % MAX_LONG;
                put_varint(out, len as u64);
                out.resize(out.len() + len, input.byte());
            }
        }
    }
}

/// The limit of [`Field::Long`], so that the data fits into a packet.
const MAX_LONG: usize = 1150;

use Field::{Bytes, Fixed, Long, Number};

/// Frame types and their fields.
const KINDS: &[(u64, &[Field])] = &[
    (0x01, &[]),
    (0x02, &[Number, Number, Fixed(1), Number]),
    (0x04, &[Number, Number, Number]),
    (0x05, &[Number, Number]),
    (0x06, &[Number, Bytes]),
    (0x06, &[Number, Long]),
    (0x07, &[Bytes]),
    (0x0a, &[Number, Bytes]),
    (0x0b, &[Number, Bytes]),
    (0x0e, &[Number, Number, Bytes]),
    (0x0f, &[Number, Number, Bytes]),
    (0x0e, &[Number, Number, Long]),
    (0x0f, &[Number, Number, Long]),
    (0x0a, &[Number, Long]),
    (0x10, &[Number]),
    (0x11, &[Number, Number]),
    (0x12, &[Number]),
    (0x13, &[Number]),
    (0x14, &[Number]),
    (0x15, &[Number, Number]),
    (0x16, &[Number]),
    (0x17, &[Number]),
    (0x18, &[Number, Number, Bytes, Fixed(16)]),
    (0x18, &[Number, Number, Fixed(9), Fixed(16)]),
    (0x19, &[Number]),
    (0x1a, &[Fixed(8)]),
    (0x1b, &[Fixed(8)]),
    (0x1c, &[Number, Number, Bytes]),
    (0x1d, &[Number, Bytes]),
    (0x1e, &[]),
    (0x1f, &[]),
    (0x31, &[Bytes]),
    (0x31, &[Long]),
    (0xaf, &[Number, Number, Number, Number]),
    (0x9f81a6, &[Number, Fixed(4), Fixed(2)]),
    (0x9f81a7, &[Number, Fixed(16), Fixed(2)]),
    (0x3d7f90, &[Number, Fixed(4), Fixed(2)]),
    (0x3d7f91, &[Number, Fixed(16), Fixed(2)]),
    (0x3d7f92, &[Number, Fixed(4), Fixed(2)]),
    (0x3d7f93, &[Number, Fixed(16), Fixed(2)]),
    (0x3d7f94, &[Number]),
];
