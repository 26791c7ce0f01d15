//! Instructions from the encoder to the decoder (RFC 9204 §4.3).

use crate::error::Malformed;
use crate::string::Literal;
use crate::{prefix_int, static_table, string};

/// The table entry whose name an instruction uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameSource {
    Static(u64),
    /// A relative index. Zero is the newest entry.
    Dynamic(u64),
}

/// An instruction that the encoder sends to the decoder (§4.3).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction<'a> {
    SetCapacity(u64),
    InsertWithNameReference {
        name: NameSource,
        value: Literal<'a>,
    },
    InsertWithLiteralName {
        name: Literal<'a>,
        value: Literal<'a>,
    },
    Duplicate(u64),
}

impl<'a> Instruction<'a> {
    /// Decodes the instruction at the start of `bytes`. A string longer than `most` bytes fails
    /// before it has arrived, because no table entry could contain it.
    pub(crate) fn decode(bytes: &mut &'a [u8], most: usize) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Incomplete)?;
        let mut rest = *bytes;
        let instruction = if first & 0x80 != 0 {
            let index = prefix_int::decode(&mut rest, 6)?;
            let name = match first & 0x40 {
                0 => NameSource::Dynamic(index),
                // The error does not depend on the value, which may never arrive.
                _ if static_table::get(index).is_none() => {
                    return Err(Malformed::Invalid("static index above 98"));
                }
                _ => NameSource::Static(index),
            };
            Self::InsertWithNameReference {
                name,
                value: Literal::decode(&mut rest, 7, most)?,
            }
        } else if first & 0x40 != 0 {
            Self::InsertWithLiteralName {
                name: Literal::decode(&mut rest, 5, most)?,
                value: Literal::decode(&mut rest, 7, most)?,
            }
        } else if first & 0x20 != 0 {
            Self::SetCapacity(prefix_int::decode(&mut rest, 5)?)
        } else {
            Self::Duplicate(prefix_int::decode(&mut rest, 5)?)
        };
        *bytes = rest;
        Ok(instruction)
    }
}

/// Appends Set Dynamic Table Capacity (§4.3.1).
pub(crate) fn encode_set_capacity(out: &mut Vec<u8>, capacity: u64) {
    prefix_int::encode(out, 0x20, 5, capacity);
}

/// Appends Insert with Name Reference (§4.3.2).
pub(crate) fn encode_insert_with_name(out: &mut Vec<u8>, name: NameSource, value: &[u8]) {
    match name {
        NameSource::Static(index) => prefix_int::encode(out, 0xc0, 6, index),
        NameSource::Dynamic(index) => prefix_int::encode(out, 0x80, 6, index),
    }
    string::encode(out, 0, 7, value);
}

/// Appends Insert with Literal Name (§4.3.3).
pub(crate) fn encode_insert(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    string::encode(out, 0x40, 5, name);
    string::encode(out, 0, 7, value);
}

/// Appends Duplicate (§4.3.4) of the entry at a relative index.
pub(crate) fn encode_duplicate(out: &mut Vec<u8>, distance: u64) {
    prefix_int::encode(out, 0, 5, distance);
}

/// Returns the largest length in bytes of any instruction that inserts this field line.
pub(crate) fn longest_insert(name: &[u8], value: &[u8]) -> usize {
    // A name reference takes at most ten bytes.
    string::encoded_len(5, name).max(10) + string::encoded_len(7, value)
}
