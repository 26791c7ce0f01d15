//! Interpretation of an input as a sequence of decisions or of steps.

/// Reads decisions from the bytes of an input. After its end, every decision is zero.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        byte
    }

    /// Returns a number below `limit`, which must be 1 to 256.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// Returns a number of 16 bits.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Reads a length byte and returns that many bytes, or the rest of the input if it is shorter.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    /// Returns the next `len` bytes, or the rest of the input if it is shorter.
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Returns a number that fits into a variable-length integer. Small numbers and those near the
    /// limits of fields and windows are the most likely.
    pub(crate) fn number(&mut self) -> u64 {
        let first = self.byte();
        match first {
            0..SMALL => u64::from(first),
            SMALL..WIDE => {
                let edge = EDGES[usize::from(first - SMALL) % EDGES.len()];
                edge.wrapping_add_signed(i64::from(self.byte() as i8)) & MAX_VARINT
            }
            _ => {
                let mut bytes = [0; 8];
                let given = self.take(8);
                bytes[..given.len()].copy_from_slice(given);
                u64::from_le_bytes(bytes) & MAX_VARINT
            }
        }
    }
}

/// Splits an input into steps. Each has an operation and the bytes that it uses.
///
/// A step is encoded as one byte for the operation, one byte for the length, and that many bytes.
pub(crate) struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[operation, len], rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(len)));
        self.0 = rest;
        Some((operation, bytes))
    }
}

/// A first byte below this is the number itself.
const SMALL: u8 = 192;

/// A first byte from this on is followed by a number of eight bytes.
const WIDE: u8 = 248;

/// The largest variable-length integer (RFC 9000 §16).
const MAX_VARINT: u64 = (1 << 62) - 1;

/// Limits of fields, windows and formats. A byte moves them by up to 128 in either direction.
const EDGES: [u64; 14] = [
    0,
    1 << 6,
    1 << 8,
    1200,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 30,
    1 << 31,
    1 << 32,
    1 << 60,
    1 << 61,
    MAX_VARINT,
];
