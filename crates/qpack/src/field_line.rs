//! Field lines before encoding and after decoding.

use bytes::Bytes;

/// A field line to encode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldLine<'a> {
    /// The name in lower case. Pseudo-header fields include the colon.
    pub name: &'a [u8],
    /// The value, encoded unchanged.
    pub value: &'a [u8],
    /// Prevents insertion into a table, here and at every later hop (RFC 9204 §7.1.3).
    pub is_sensitive: bool,
}

impl<'a> FieldLine<'a> {
    /// Creates a field line that may be inserted into tables.
    pub const fn new(name: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            name,
            value,
            is_sensitive: false,
        }
    }
}

/// A decoded field line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodedLine<'a> {
    /// The name of the field.
    pub name: Text<'a>,
    /// The value of the field.
    pub value: Text<'a>,
    /// The table entry with both name and value, if any. Callers can cache what they derive from
    /// an entry.
    pub origin: Origin,
    /// The field line must remain a literal at every later hop (RFC 9204 §4.5.4).
    pub is_sensitive: bool,
}

/// The table entry that an indexed field line refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An entry of the static table with its index, 0 to 98.
    Static(usize),
    /// An entry of the dynamic table with its absolute index, which is never reused.
    Dynamic(u64),
    /// No entry: the value was a literal.
    Literal,
}

/// A decoded name or value. The variant determines its lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text<'a> {
    /// A string of the static table.
    Static(&'static str),
    /// A string of the dynamic table, which can be shared without copying.
    Shared(&'a Bytes),
    /// A literal of the field section, which must be copied to outlive it.
    Literal(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Returns the bytes of the string.
    pub fn as_bytes(&self) -> &'a [u8] {
        match self {
            Self::Static(text) => text.as_bytes(),
            Self::Shared(text) => text,
            Self::Literal(text) => text,
        }
    }

    /// Returns the string as owned bytes. Only literals are copied.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Static(text) => Bytes::from_static(text.as_bytes()),
            Self::Shared(text) => (*text).clone(),
            Self::Literal(text) => Bytes::copy_from_slice(text),
        }
    }
}

/// Returns the size of a field line, as counted in the table capacity (RFC 9204 §3.2.1) and in the
/// size of a field section (RFC 9114 §4.2.2).
pub const fn line_size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + OVERHEAD
}

/// Bytes that each field line counts in addition to name and value.
const OVERHEAD: usize = 32;
