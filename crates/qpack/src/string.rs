//! String literals: a Huffman flag, a length and the bytes (RFC 9204 §4.1.2).

use crate::error::Malformed;
use crate::{huffman, prefix_int};

/// A string literal in encoded form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

impl<'a> Literal<'a> {
    /// Decodes a string literal whose length has a prefix of `prefix` bits below the Huffman flag,
    /// and advances `bytes` past it. A length above `most` fails before the string has arrived.
    pub(crate) fn decode(bytes: &mut &'a [u8], prefix: u8, most: usize) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Incomplete)?;
        let mut rest = *bytes;
        let len = prefix_int::decode(&mut rest, prefix)?;
        let len = usize::try_from(len)
            .ok()
            .filter(|&len| len <= most)
            .ok_or(Malformed::Invalid("string too long"))?;
        let (text, rest) = rest.split_at_checked(len).ok_or(Malformed::Incomplete)?;
        *bytes = rest;
        Ok(Self {
            bytes: text,
            is_huffman: first >> prefix & 1 == 1,
        })
    }

    /// Returns the length of the string in encoded form, and whether it is Huffman-coded.
    pub(crate) const fn form(self) -> (usize, bool) {
        (self.bytes.len(), self.is_huffman)
    }

    /// Returns the string. A Huffman-coded one is decoded into `scratch`.
    pub(crate) fn text<'s>(self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], Malformed>
    where
        'a: 's,
    {
        if !self.is_huffman {
            return Ok(self.bytes);
        }
        scratch.clear();
        huffman::decode(self.bytes, scratch).map_err(Malformed::Invalid)?;
        Ok(scratch)
    }

    /// Decodes the string and appends it to `out`.
    pub(crate) fn append_to(self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if self.is_huffman {
            return huffman::decode(self.bytes, out).map_err(Malformed::Invalid);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// Appends `text` as a string literal with the bits of `pattern` above the Huffman flag. Uses
/// Huffman coding if that is shorter.
pub(crate) fn encode(out: &mut Vec<u8>, pattern: u8, prefix: u8, text: &[u8]) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        prefix_int::encode(out, pattern | 1 << prefix, prefix, coded as u64);
        huffman::encode(text, out);
    } else {
        prefix_int::encode(out, pattern, prefix, text.len() as u64);
        out.extend_from_slice(text);
    }
}

/// Returns the length of `text` as [`encode`] writes it, and whether it is Huffman-coded.
pub(crate) fn form(text: &[u8]) -> (usize, bool) {
    let coded = huffman::encoded_len(text);
    (coded.min(text.len()), coded < text.len())
}

/// Returns the number of bytes that [`encode`] appends.
pub(crate) fn encoded_len(prefix: u8, text: &[u8]) -> usize {
    let len = huffman::encoded_len(text).min(text.len());
    prefix_int::encoded_len(prefix, len as u64) + len
}
