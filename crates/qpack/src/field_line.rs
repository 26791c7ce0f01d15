//! Names and values, on their way in and on their way out.

use bytes::Bytes;

/// A field line to be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldLine<'a> {
    /// In lower case; a pseudo-header field with its colon.
    pub name: &'a [u8],
    /// As it is.
    pub value: &'a [u8],
    /// Never to be put into a table, here or at any hop after (RFC 9204 §7.1.3).
    pub is_sensitive: bool,
}

impl<'a> FieldLine<'a> {
    /// A line that may be put into tables.
    pub const fn new(name: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            name,
            value,
            is_sensitive: false,
        }
    }
}

/// A field line that has been decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodedLine<'a> {
    /// Its name.
    pub name: Text<'a>,
    /// Its value.
    pub value: Text<'a>,
    /// Where it stands as a whole, if it does: what was made of it once can be used again.
    pub origin: Origin,
    /// It came as a literal that must stay one at every hop after (RFC 9204 §4.5.4).
    pub is_sensitive: bool,
}

/// The entry that a line as a whole was a reference to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The static table, by its index from 0 to 98.
    Static(usize),
    /// The dynamic table, by its absolute index, which is never given to another entry.
    Dynamic(u64),
    /// None: its value was written out.
    Literal,
}

/// A string, and how long it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text<'a> {
    /// Of the static table.
    Static(&'static str),
    /// Of the dynamic table: can be shared.
    Shared(&'a Bytes),
    /// Of the section itself: to be copied.
    Literal(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Its bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        match self {
            Self::Static(text) => text.as_bytes(),
            Self::Shared(text) => text,
            Self::Literal(text) => text,
        }
    }

    /// As something that lives on; copies only what has to be.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Static(text) => Bytes::from_static(text.as_bytes()),
            Self::Shared(text) => (*text).clone(),
            Self::Literal(text) => Bytes::copy_from_slice(text),
        }
    }
}

/// What a line takes of a table's capacity and of a section's size (RFC 9204 §3.2.1,
/// RFC 9114 §4.2.2).
pub const fn line_size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + OVERHEAD
}

/// What each entry counts on top of its strings.
const OVERHEAD: usize = 32;
