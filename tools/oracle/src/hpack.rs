//! HPACK and QPACK. The encoders write only literals, and the decoders read all representations.

use std::collections::VecDeque;

use crate::message::Field;
use crate::tables::{HPACK, HUFFMAN, QPACK};

/// Writes an integer with a prefix of `bits`, below the flags of `first` (RFC 7541 §5.1).
fn write_integer(first: u8, bits: u8, mut value: usize, to: &mut Vec<u8>) {
    let limit = (1_usize << bits) - 1;
    if value < limit {
        to.push(first | u8::try_from(value).expect("below 255"));
        return;
    }
    to.push(first | u8::try_from(limit).expect("below 256"));
    value -= limit;
    while value >= 128 {
        to.push(0x80 | u8::try_from(value % 128).expect("below 128"));
        value /= 128;
    }
    to.push(u8::try_from(value).expect("below 128"));
}

/// Returns true if HTTP/2 and HTTP/3 permit these fields: names in lower case, and none that concern a connection (RFC 9113 §8.2,
/// RFC 9114 §4.2).
pub(crate) fn is_permitted(fields: &[Field]) -> bool {
    const OF_CONNECTIONS: [&[u8]; 5] = [
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ];
    fields.iter().all(|(name, value)| {
        !name.iter().any(u8::is_ascii_uppercase)
            && !OF_CONNECTIONS.contains(&&name[..])
            && (name != b"te" || value == b"trailers")
    })
}

/// Returns a field block of literals without indexing (RFC 7541 §6.2.2).
pub(crate) fn encode(fields: &[Field]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        write_integer(0, 7, name.len(), &mut block);
        block.extend_from_slice(name);
        write_integer(0, 7, value.len(), &mut block);
        block.extend_from_slice(value);
    }
    block
}

/// Returns a field section of literals (RFC 9204 §4.5.6).
pub(crate) fn encode_qpack(fields: &[Field]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        write_integer(0x20, 3, name.len(), &mut section);
        section.extend_from_slice(name);
        write_integer(0, 7, value.len(), &mut section);
        section.extend_from_slice(value);
    }
    section
}

/// Reads a field block byte by byte.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads an integer whose prefix is the low `bits` of `first`.
    fn integer(&mut self, first: u8, bits: u8) -> Option<usize> {
        let limit = (1_usize << bits) - 1;
        let mut value = usize::from(first) & limit;
        if value < limit {
            return Some(value);
        }
        for shift in (0..28).step_by(7) {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a string whose length has a prefix of `bits` in `first`, and the mark of Huffman codes above it.
    fn string(&mut self, first: u8, bits: u8) -> Option<Vec<u8>> {
        let length = self.integer(first, bits)?;
        let text = self.0.get(..length)?;
        self.0 = &self.0[length..];
        if first & 1 << bits == 0 {
            Some(text.to_vec())
        } else {
            unhuffman(text)
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let first = self.byte()?;
        self.string(first, 7)
    }
}

/// Decodes Huffman codes (RFC 7541 §5.2).
fn unhuffman(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let (mut code, mut length) = (0_u32, 0_u8);
    for byte in text {
        for shift in (0..8).rev() {
            code = code << 1 | u32::from(byte >> shift & 1);
            length += 1;
            if let Some(found) = HUFFMAN.iter().position(|entry| *entry == (code, length)) {
                decoded.push(u8::try_from(found).expect("256 entries"));
                (code, length) = (0, 0);
            } else if length > 30 {
                return None;
            }
        }
    }
    // The padding is at most seven bits of ones.
    (length < 8 && code == (1 << length) - 1).then_some(decoded)
}

/// A decoded field section.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Section {
    pub(crate) fields: Vec<Field>,
    /// The names of fields that must stay literals on each hop (RFC 7541 §6.2.3, RFC 9204 §4.5.4).
    pub(crate) never_indexed: Vec<Vec<u8>>,
}

impl Section {
    fn push(&mut self, field: Field, is_never_indexed: bool) {
        if is_never_indexed {
            self.never_indexed.push(field.0.clone());
        }
        self.fields.push(field);
    }
}

/// Decodes the field blocks of one direction of an HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    entries: VecDeque<Field>,
    limit: usize,
}

impl Decoder {
    /// Returns a decoder whose table is empty and may have the size that HTTP/2 begins with.
    pub(crate) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            limit: 4096,
        }
    }
}

impl Decoder {
    /// Decodes a block, or returns `None` if it is malformed.
    pub(crate) fn decode(&mut self, block: &[u8]) -> Option<Section> {
        let mut reader = Reader(block);
        let mut section = Section::default();
        while let Some(first) = reader.byte() {
            match first {
                0x80.. => {
                    let index = reader.integer(first, 7)?;
                    section.push(self.entry(index)?, false);
                }
                0x40..=0x7f => {
                    let field = self.literal(&mut reader, first, 6)?;
                    self.insert(field.clone());
                    section.push(field, false);
                }
                0x20..=0x3f => {
                    self.limit = reader.integer(first, 5)?;
                    self.evict();
                }
                _ => {
                    let field = self.literal(&mut reader, first, 4)?;
                    section.push(field, first & 0x10 != 0);
                }
            }
        }
        Some(section)
    }

    fn literal(&self, reader: &mut Reader<'_>, first: u8, bits: u8) -> Option<Field> {
        let name = match reader.integer(first, bits)? {
            0 => reader.value()?,
            index => self.entry(index)?.0,
        };
        Some((name, reader.value()?))
    }

    fn entry(&self, index: usize) -> Option<Field> {
        let index = index.checked_sub(1)?;
        match HPACK.get(index) {
            Some((name, value)) => Some(crate::message::field(name, value)),
            None => self.entries.get(index - HPACK.len()).cloned(),
        }
    }

    fn insert(&mut self, field: Field) {
        self.entries.push_front(field);
        self.evict();
    }

    fn evict(&mut self) {
        let size = |entries: &VecDeque<Field>| -> usize {
            let sizes = entries
                .iter()
                .map(|(name, value)| name.len() + value.len() + 32);
            sizes.sum()
        };
        while size(&self.entries) > self.limit {
            self.entries.pop_back();
        }
    }
}

/// Decodes a field section without a dynamic table, which the peer may not use because its capacity is 0.
pub(crate) fn decode_qpack(section: &[u8]) -> Option<Section> {
    let mut reader = Reader(section);
    let (required, _base) = (reader.byte()?, reader.byte()?);
    if required != 0 {
        return None;
    }
    let entry = |index: usize| QPACK.get(index);
    let mut section = Section::default();
    while let Some(first) = reader.byte() {
        match first {
            0xc0.. => {
                let (name, value) = entry(reader.integer(first, 6)?)?;
                section.push(crate::message::field(name, value), false);
            }
            0x40..=0x7f if first & 0x10 != 0 => {
                let (name, _) = entry(reader.integer(first, 4)?)?;
                let field = (name.as_bytes().to_vec(), reader.value()?);
                section.push(field, first & 0x20 != 0);
            }
            0x20..=0x3f => {
                let field = (reader.string(first, 3)?, reader.value()?);
                section.push(field, first & 0x10 != 0);
            }
            _ => return None,
        }
    }
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::field;

    /// RFC 7541 appendix C.4.1 and C.4.2: two requests with Huffman codes and the dynamic table.
    #[test]
    fn examples_of_the_rfc_are_decoded() {
        let mut decoder = Decoder::new();
        let first = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        let expected = [
            field(":method", "GET"),
            field(":scheme", "http"),
            field(":path", "/"),
            field(":authority", "www.example.com"),
        ];
        let decoded = decoder.decode(first).expect("a block");
        assert_eq!(decoded.fields, expected);
        let second = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";
        let more = [&expected[..], &[field("cache-control", "no-cache")]].concat();
        let decoded = decoder.decode(second).expect("a block");
        assert_eq!((decoded.fields, decoded.never_indexed), (more, vec![]));
    }

    /// RFC 7541 appendix C.2.3.
    #[test]
    fn literals_that_are_never_indexed_are_recorded() {
        let block = b"\x10\x08password\x06secret";
        let decoded = Decoder::new().decode(block).expect("a block");
        assert_eq!(decoded.fields, [field("password", "secret")]);
        assert_eq!(decoded.never_indexed, [b"password"]);
    }

    #[test]
    fn what_is_written_is_read() {
        let fields = [field("x-long", "v".repeat(300)), field("a", "")];
        let decoded = Decoder::new().decode(&encode(&fields));
        assert_eq!(decoded.expect("a block").fields, fields);
        let decoded = decode_qpack(&encode_qpack(&fields));
        assert_eq!(decoded.expect("a section").fields, fields);
    }
}
