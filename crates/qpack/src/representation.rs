//! Field line representations (RFC 9204 §4.5).

use crate::error::Malformed;
use crate::string::Literal;
use crate::{prefix_int, string};

/// The prefix of an encoded field section (§4.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    /// The Encoded Insert Count. [`insert_count`](crate::insert_count) converts it.
    pub(crate) encoded_insert_count: u64,
    pub(crate) is_negative: bool,
    pub(crate) delta_base: u64,
}

impl Prefix {
    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let encoded_insert_count = prefix_int::decode(bytes, 8)?;
        let sign = *bytes.first().ok_or(Malformed::Incomplete)?;
        Ok(Self {
            encoded_insert_count,
            is_negative: sign & 0x80 != 0,
            delta_base: prefix_int::decode(bytes, 7)?,
        })
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        prefix_int::encode(out, 0, 8, self.encoded_insert_count);
        let sign = if self.is_negative { 0x80 } else { 0 };
        prefix_int::encode(out, sign, 7, self.delta_base);
    }

    /// Returns the Base, from which relative indices count, or `None` if it would be negative
    /// (§4.5.1.2).
    pub(crate) fn base(self, required: u64) -> Option<u64> {
        if self.is_negative {
            required.checked_sub(self.delta_base)?.checked_sub(1)
        } else {
            required.checked_add(self.delta_base)
        }
    }
}

/// A reference to a table entry, for its name or for the whole field line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reference {
    Static(u64),
    /// An index relative to the Base, downwards. Zero is the last entry before the Base.
    Relative(u64),
    /// An index relative to the Base, upwards.
    PostBase(u64),
}

/// An encoded field line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Representation<'a> {
    Indexed(Reference),
    NameReference {
        name: Reference,
        value: Literal<'a>,
        never_indexed: bool,
    },
    Literal {
        name: Literal<'a>,
        value: Literal<'a>,
        never_indexed: bool,
    },
}

impl<'a> Representation<'a> {
    /// Decodes the field line at the start of `bytes`.
    #[inline]
    pub(crate) fn decode(bytes: &mut &'a [u8]) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Incomplete)?;
        // A string cannot be longer than the rest of the section.
        let most = bytes.len();
        if first & 0x80 != 0 {
            let index = prefix_int::decode(bytes, 6)?;
            return Ok(Self::Indexed(static_or_relative(first & 0x40 != 0, index)));
        }
        if first & 0x40 != 0 {
            let index = prefix_int::decode(bytes, 4)?;
            return Ok(Self::NameReference {
                name: static_or_relative(first & 0x10 != 0, index),
                value: Literal::decode(bytes, 7, most)?,
                never_indexed: first & 0x20 != 0,
            });
        }
        if first & 0x20 != 0 {
            return Ok(Self::Literal {
                name: Literal::decode(bytes, 3, most)?,
                value: Literal::decode(bytes, 7, most)?,
                never_indexed: first & 0x10 != 0,
            });
        }
        if first & 0x10 != 0 {
            let index = prefix_int::decode(bytes, 4)?;
            return Ok(Self::Indexed(Reference::PostBase(index)));
        }
        let index = prefix_int::decode(bytes, 3)?;
        Ok(Self::NameReference {
            name: Reference::PostBase(index),
            value: Literal::decode(bytes, 7, most)?,
            never_indexed: first & 0x08 != 0,
        })
    }
}

fn static_or_relative(is_static: bool, index: u64) -> Reference {
    if is_static {
        Reference::Static(index)
    } else {
        Reference::Relative(index)
    }
}

/// Appends an Indexed Field Line (§4.5.2), with Post-Base Index if needed (§4.5.3).
pub(crate) fn encode_indexed(out: &mut Vec<u8>, line: Reference) {
    match line {
        Reference::Static(index) => prefix_int::encode(out, 0xc0, 6, index),
        Reference::Relative(index) => prefix_int::encode(out, 0x80, 6, index),
        Reference::PostBase(index) => prefix_int::encode(out, 0x10, 4, index),
    }
}

/// Appends a Literal Field Line with Name Reference (§4.5.4), post-Base if needed (§4.5.5).
pub(crate) fn encode_name_reference(
    out: &mut Vec<u8>,
    name: Reference,
    value: &[u8],
    never_indexed: bool,
) {
    let flag = |bit: u8| if never_indexed { bit } else { 0 };
    match name {
        Reference::Static(index) => prefix_int::encode(out, 0x50 | flag(0x20), 4, index),
        Reference::Relative(index) => prefix_int::encode(out, 0x40 | flag(0x20), 4, index),
        Reference::PostBase(index) => prefix_int::encode(out, flag(0x08), 3, index),
    }
    string::encode(out, 0, 7, value);
}

/// Appends a Literal Field Line with Literal Name (§4.5.6).
pub(crate) fn encode_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8], never_indexed: bool) {
    string::encode(out, if never_indexed { 0x30 } else { 0x20 }, 3, name);
    string::encode(out, 0, 7, value);
}
