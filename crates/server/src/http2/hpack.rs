//! The encoding of field lines in HTTP/2 (RFC 7541): integers, strings and representations.

use courser_qpack::hooks::decode_huffman;

/// The block violates RFC 7541, which ends the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Undecodable;

/// The bytes of a block that are not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// The form of a field line (RFC 7541 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A reference to an entry of the tables, which has name and value.
    Indexed,
    /// A literal that becomes an entry of the dynamic table.
    Inserted,
    /// A literal that becomes no entry.
    Literal,
    /// A change of the size of the dynamic table.
    SizeUpdate,
}

impl<'a> Reader<'a> {
    /// Returns the form of the next line and its integer: an index, or a size. Returns `None` at the end.
    #[inline]
    pub(super) fn line(&mut self) -> Option<Result<(Form, usize), Undecodable>> {
        let first = *self.0.first()?;
        let (form, prefix) = match first {
            0x80.. => (Form::Indexed, 7),
            0x40.. => (Form::Inserted, 6),
            0x20.. => (Form::SizeUpdate, 5),
            _ => (Form::Literal, 4),
        };
        Some(self.integer(prefix).map(|number| (form, number)))
    }

    /// Reads an integer whose prefix has this number of bits. h2 accepts five bytes, too.
    #[inline]
    fn integer(&mut self, prefix: u8) -> Result<usize, Undecodable> {
        let (&first, mut rest) = self.0.split_first().ok_or(Undecodable)?;
        let mask = usize::from(u8::MAX >> (8 - prefix));
        let mut value = usize::from(first) & mask;
        if value == mask {
            let mut shift = 0;
            loop {
                let (&byte, after) = rest.split_first().ok_or(Undecodable)?;
                rest = after;
                value += usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
                if shift == 28 {
                    return Err(Undecodable);
                }
            }
        }
        self.0 = rest;
        Ok(value)
    }

    /// Reads a string. One with Huffman coding is decoded into `scratch`.
    #[inline]
    pub(super) fn string<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], Undecodable>
    where
        'a: 's,
    {
        let is_huffman = self.0.first().is_some_and(|first| first & 0x80 != 0);
        let len = self.integer(7)?;
        let (text, rest) = self.0.split_at_checked(len).ok_or(Undecodable)?;
        self.0 = rest;
        if !is_huffman {
            return Ok(text);
        }
        scratch.clear();
        decode_huffman(text, scratch).map_err(|_| Undecodable)?;
        Ok(scratch)
    }
}

/// Appends an integer with the bits of `pattern` above its prefix (RFC 7541 §5.1).
pub(super) fn put_integer(out: &mut Vec<u8>, pattern: u8, prefix: u8, value: usize) {
    let mask = usize::from(u8::MAX >> (8 - prefix));
    let Some(mut rest) = value.checked_sub(mask) else {
        out.push(pattern | value as u8); // Below the mask, which is a byte.
        return;
    };
    out.push(pattern | mask as u8);
    while rest >= 128 {
        out.push(rest as u8 | 128); // The low seven bits.
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string without Huffman coding (RFC 7541 §5.2).
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0, 7, text.len());
    out.extend_from_slice(text);
}

/// Appends a literal that becomes no entry of the dynamic table (RFC 7541 §6.2.2).
pub(super) fn put_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(0);
    put_string(out, name);
    put_string(out, value);
}
